// A training step of the package under Node, on the GPU through npm's `webgpu`, beside the native step
// of `tg bench` with the same library. Rounds alternate; a ratio is that of one round.
//
//   ./tg bench --models addition --device webgpu && ./tg web --sizes
//   node bench/web/gpu.mjs [--rounds 5] [--seconds 2] [--models addition,gpt_small] [--json]
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' }, // for each side of a round
    models: { type: 'string', default: 'gpt_small,addition' },
    package: { type: 'string', default: `${root}build/web/package` },
    tool: { type: 'string', default: `${root}build/release/bin/tg` },
    webgpu: { type: 'string', default: `${root}build/webgpu` }, // the folder with npm's `webgpu`
    worker: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

// The package takes navigator.gpu where it finds one.
const { create, globals } = createRequire(`${options.webgpu}/package.json`)('webgpu');
Object.assign(globalThis, globals);
Object.defineProperty(globalThis.navigator ?? (globalThis.navigator = {}), 'gpu', {
  value: create([]),
  configurable: true,
});
const tg = await import(pathToFileURL(`${options.package}/dist/index.js`));

// As in tools/tg/bench_models.cpp.
const models = {
  addition: { vocab: 12, dim: 64, context: 8, layers: 3, heads: 4, activation: 'relu', batch: 128 },
  gpt_small: { vocab: 65, dim: 128, context: 128, layers: 4, heads: 4, batch: 32 },
};

async function compile({ batch, ...config }) {
  const shape = [batch, config.context];
  const train = await tg.compile({
    model: new tg.Transformer(config),
    loss: (m, { tokens, targets, mask }) => tg.crossEntropy(m.fwd(tokens), targets, { mask }),
    inputs: {
      tokens: { shape, dtype: 'i32' },
      targets: { shape, dtype: 'i32' },
      mask: { shape, dtype: 'f32' },
    },
    optimizer: { kind: 'adamw', lr: 0.001, weightDecay: 0.01, clipGradNorm: 1 },
    device: 'webgpu',
    worker: options.worker,
    snapshotEvery: 0, // the native program takes none
    seed: 1,
  });
  const ids = () =>
    Int32Array.from({ length: shape[0] * shape[1] }, () => Math.floor(config.vocab * Math.random()));
  const feed = { tokens: ids(), targets: ids(), mask: new Float32Array(shape[0] * shape[1]).fill(1) };
  return { train, feed };
}

// Steps one after the other, with a wait at the end. The loss is read once per `read_every` steps; the
// native program reads none.
async function ms_per_step({ train, feed }, steps, quick) {
  const start = performance.now();
  for (let i = 1; i < steps; ++i) {
    const step = quick ? train.step({}, { read: false }) : train.step(feed);
    if (i % 64 === 0) await step;
    else void step;
  }
  const last = await train.step(quick ? {} : feed);
  if (last.kind !== 'completed') throw last.error;
  return (performance.now() - start) / steps;
}

async function measure(model, quick) {
  if (quick) await model.train.setInputs(model.feed);
  await ms_per_step(model, 3, quick);
  const ms = await ms_per_step(model, 10, quick);
  const steps = Math.max(3, Math.min(2000, Math.round((1000 * Number(options.seconds)) / 5 / ms)));
  const runs = [];
  for (let i = 0; i < 5; ++i) runs.push(await ms_per_step(model, steps, quick));
  return runs.sort((a, b) => a - b)[2];
}

function native(name) {
  const words = ['bench', '--models', name, '--device', 'webgpu', '--seconds', options.seconds, '--json'];
  const out = execFileSync(options.tool, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  return JSON.parse(out.trim());
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
for (const name of options.models.split(',')) {
  const model = await compile(models[name]);
  const { dispatches, passes, submits } = model.train.counts;
  const rounds = [];
  let other;
  for (let i = 0; i < Number(options.rounds); ++i) {
    const quick = typeof model.train.setInputs === 'function' ? await measure(model, true) : NaN;
    other = native(name);
    const whole = await measure({ ...model }, false);
    rounds.push({ quick, whole, native: other.ms_per_step });
  }
  for (const [what, own] of Object.entries({ dispatches, passes, submits }))
    if (own !== other[what]) throw new Error(`${name}: ${own} ${what}, natively ${other[what]}`);
  const of = (f) => rounds.map(f);
  const line = {
    model: name,
    ms_per_step: median(of((r) => r.quick)),
    ms_with_feed_and_loss: median(of((r) => r.whole)),
    native_ms: median(of((r) => r.native)),
    ratio: median(of((r) => r.quick / r.native)),
    ratios: of((r) => Number((r.quick / r.native).toFixed(3))),
    ratio_with_feed_and_loss: median(of((r) => r.whole / r.native)),
    dispatches,
    passes,
    submits,
  };
  model.train.destroy();
  if (options.json) console.log(JSON.stringify(line));
  else
    console.log(
      `${name}: ${line.ms_per_step.toFixed(3)} ms, natively ${line.native_ms.toFixed(3)} ms: ratio ` +
        `${line.ratio.toFixed(2)} (rounds: ${line.ratios.join(', ')}); with feed and loss ` +
        `${line.ms_with_feed_and_loss.toFixed(3)} ms; ${dispatches} dispatches in ${submits} submit(s)`,
    );
}
process.exit(0); // a device that is open would keep the process
