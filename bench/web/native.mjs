// The package under Node beside the native tool, `tg bench`, which computes the same. On the GPU both
// use the same WebGPU library; on the CPU both have one thread, and the tool has SSE4's vectors, which
// are as wide as those of WebAssembly. Rounds alternate; a ratio is that of one round: the package's
// time by the tool's.
//
//   ./tg bench --models addition && ./tg web --sizes
//   node bench/web/native.mjs --device webgpu|cpu [--rounds 5] [--seconds 2] [--models a,b] [--json]
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { values: options } = parseArgs({
  options: {
    device: { type: 'string', default: 'cpu' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' }, // for each side of a round
    models: { type: 'string' },
    package: { type: 'string', default: `${root}build/web/package` },
    tool: { type: 'string', default: `${root}build/release/bin/tg` },
    webgpu: { type: 'string', default: `${root}build/webgpu` }, // the folder with npm's `webgpu`
    worker: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const on_gpu = options.device === 'webgpu';
const names = (options.models ?? (on_gpu ? 'gpt_small,addition' : 'addition,gemm_512')).split(',');

// The package takes navigator.gpu where it finds one.
if (on_gpu) {
  const { create, globals } = createRequire(`${options.webgpu}/package.json`)('webgpu');
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis.navigator ?? (globalThis.navigator = {}), 'gpu', {
    value: create([]),
    configurable: true,
  });
}
const tg = await import(pathToFileURL(`${options.package}/dist/index.js`));
const where = { device: options.device, worker: options.worker };

// ---- the models of tools/tg/bench_models.cpp

const transformers = {
  addition: { vocab: 12, dim: 64, context: 8, layers: 3, heads: 4, activation: 'relu', batch: 128 },
  gpt_small: { vocab: 65, dim: 128, context: 128, layers: 4, heads: 4, batch: 32 },
};

// What is measured: a program, its feed, and `run(feed, read)`, which makes one step or run.
async function compile(name) {
  const gemm = /^gemm_(\d+)$/.exec(name);
  return gemm ? compile_gemm(Number(gemm[1])) : compile_transformer(transformers[name]);
}

async function compile_transformer({ batch, ...config }) {
  const shape = [batch, config.context];
  const program = await tg.compile({
    model: new tg.Transformer(config),
    loss: (m, { tokens, targets, mask }) => tg.crossEntropy(m.fwd(tokens), targets, { mask }),
    inputs: {
      tokens: { shape, dtype: 'i32' },
      targets: { shape, dtype: 'i32' },
      mask: { shape, dtype: 'f32' },
    },
    optimizer: { kind: 'adamw', lr: 0.001, weightDecay: 0.01, clipGradNorm: 1 },
    snapshotEvery: 0, // the tool takes none
    seed: 1,
    ...where,
  });
  const count = shape[0] * shape[1];
  const ids = () => Int32Array.from({ length: count }, () => Math.floor(config.vocab * Math.random()));
  const feed = { tokens: ids(), targets: ids(), mask: new Float32Array(count).fill(1) };
  await program.setInputs(feed);
  return { program, feed, run: (given, read) => program.step(given, { read }) };
}

// The operands are parameters, which stay where they are.
async function compile_gemm(N) {
  const values = () => Float32Array.from({ length: N * N }, () => 2 * Math.random() - 1);
  class Operands extends tg.Module {
    a = this.param([N, N], { init: tg.init.literal(values()) });
    b = this.param([N, N], { init: tg.init.literal(values()) });
  }
  const forward = (m) => tg.matmul(m.a, m.b);
  const program = await tg.compileForward({ model: new Operands(), forward, inputs: {}, ...where });
  return { program, feed: {}, run: () => program.run({}) };
}

// ---- measuring

// Steps one after the other, with a wait at the end. The tool reads no loss; nor do `quick` steps but
// for the last one. The others are fed and read.
async function ms_per_step({ feed, run }, steps, quick) {
  const start = performance.now();
  for (let i = 1; i < steps; ++i) {
    const step = run(quick ? {} : feed, !quick);
    if (i % 64 === 0) await step;
    else void step;
  }
  const last = await run(quick ? {} : feed, true);
  if (last.kind !== 'completed') throw last.error;
  return (performance.now() - start) / steps;
}

async function measure(model, quick) {
  await ms_per_step(model, 3, quick);
  const ms = await ms_per_step(model, 10, quick);
  const steps = Math.max(3, Math.min(2000, Math.round((1000 * Number(options.seconds)) / 5 / ms)));
  const runs = [];
  for (let i = 0; i < 5; ++i) runs.push(await ms_per_step(model, steps, quick));
  return runs.sort((a, b) => a - b)[2];
}

function native(name) {
  const words = ['bench', '--models', name, '--seconds', options.seconds, '--json'];
  words.push('--device', options.device, ...(on_gpu ? [] : ['--threads', '1']));
  const env = on_gpu ? process.env : { ...process.env, TENSORGRAD_SIMD: 'SSE4' };
  const stdio = ['ignore', 'pipe', 'inherit'];
  return JSON.parse(execFileSync(options.tool, words, { encoding: 'utf8', env, stdio }).trim());
}

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
const median = (numbers) => sorted(numbers)[numbers.length >> 1];
const fixed = (x) => Number(x.toFixed(3));

if (!options.json) console.log(`${cpus()[0].model}, Node ${process.versions.node}, ${options.device}`);
for (const name of names) {
  const model = await compile(name);
  const rounds = [];
  let other;
  for (let i = 0; i < Number(options.rounds); ++i) {
    const quick = await measure(model, true);
    other = native(name);
    rounds.push({ quick, native: other.ms_per_step, whole: await measure(model, false) });
  }
  const { dispatches, passes, submits } = model.program.counts;
  for (const [what, own] of Object.entries({ dispatches, passes, submits }))
    if (own !== other[what]) throw new Error(`${name}: ${own} ${what}, natively ${other[what]}`);
  const of = (f) => rounds.map(f);
  const ratios = sorted(of((r) => r.quick / r.native)).map(fixed);
  const line = {
    model: name,
    device: options.device,
    ms_per_step: median(of((r) => r.quick)),
    native_ms: median(of((r) => r.native)),
    ratio: median(ratios),
    lowest: ratios[0],
    highest: ratios.at(-1),
    ms_with_feed_and_loss: median(of((r) => r.whole)),
    ratio_with_feed_and_loss: fixed(median(of((r) => r.whole / r.native))),
    dispatches,
    passes,
    submits,
  };
  model.program.destroy();
  if (options.json) console.log(JSON.stringify(line));
  else
    console.log(
      `${name}: ${fixed(line.ms_per_step)} ms, natively ${fixed(line.native_ms)} ms: ratio ${line.ratio} ` +
        `(${line.lowest} to ${line.highest}); fed and read ${fixed(line.ms_with_feed_and_loss)} ms, ratio ` +
        `${line.ratio_with_feed_and_loss}; ${dispatches} dispatches, ${submits} submits`,
    );
}
process.exit(0); // a device that is open would keep the process
