// The package on a GPU in Node, through npm's `webgpu`: on the machine's GPU, or on a software
// driver (chromium's SwiftShader, Mesa's llvmpipe). Skipped where there is neither.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { package_folder } from './package.mjs';

const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-gpu-'));
after(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'node_modules'));
cpSync(package_folder, join(folder, 'node_modules/tensorgrad'), { recursive: true });
symlinkSync(
  fileURLToPath(new URL('../node_modules/webgpu', import.meta.url)),
  join(folder, 'node_modules/webgpu'),
);

const swiftshader = '/usr/lib/chromium/vk_swiftshader_icd.json';
const env = { ...process.env };
if (!env.VK_ICD_FILENAMES && !env.TENSORGRAD_TEST_GPU && existsSync(swiftshader))
  env.VK_ICD_FILENAMES = swiftshader;

// Runs a program where the package and webgpu are installed, and returns what it prints as JSON.
function run(code) {
  writeFileSync(join(folder, 'program.mjs'), `${code}\nprocess.exit();\n`);
  const output = execFileSync(process.execPath, ['program.mjs'], {
    cwd: folder,
    encoding: 'utf8',
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 240_000,
  });
  return JSON.parse(output.split('\n').find((line) => line.startsWith('{')));
}

function find_adapter() {
  try {
    return run(`
      import { create, globals } from 'webgpu';
      Object.assign(globalThis, globals);
      const adapter = await create([]).requestAdapter();
      console.log(JSON.stringify({ found: adapter !== null, name: adapter?.info.description }));
    `);
  } catch {
    return { found: false };
  }
}
const adapter = find_adapter();
// ./tg test installs a software driver; without it, the tests say that they are skipped.
const skip = !adapter.found && 'there is no adapter';
test('there is an adapter', { skip: !process.env.CI && skip }, () => assert.ok(adapter.found));

const program = `
  import { capture, compile, dropout, init, Linear, mean, Module } from 'tensorgrad';
  import { mul, relu, square, sub, tanh } from 'tensorgrad';
  // Software drivers take seconds to compile a matmul, so that only one test has one.
  class Curve extends Module {
    a = this.param([1, 8], { init: init.randn({ scale: 1 }) });
    b = this.param([1, 8], { init: init.randn({ scale: 1 }) });
  }
  class Mlp extends Module { l1 = new Linear(1, 16); l2 = new Linear(16, 1); }
  const predict = (m, x) => {
    if (m.l1) return m.l2.fwd(relu(m.l1.fwd(x)));
    return mean(mul(tanh(mul(x, m.a)), m.b), -1, { keepDims: true });
  };
  const spec = (options) => ({
    model: new Curve(),
    loss: (m, { x, y }) => mean(square(sub(dropout(predict(m, x), 0.1), y))),
    inputs: { x: [64, 1], y: [64, 1] },
    optimizer: { kind: 'adam', lr: 0.02 },
    seed: 1,
    device: 'webgpu',
    ...options,
  });
  const batch = (i) => {
    const x = Float32Array.from({ length: 64 }, (_, k) => 3 * Math.sin(64 * i + k));
    return { x, y: x.map(Math.sin) };
  };
  const plain = (params) =>
    Object.fromEntries(Object.entries(params).map(([name, values]) => [name, [...values]]));
  async function train_steps(options, steps, during = () => undefined) {
    const train = await compile(spec(options));
    const events = [];
    train.addEventListener('devicelost', ({ reason }) => events.push(reason));
    train.addEventListener('recovered', ({ snapshotStep }) => events.push(snapshotStep));
    const losses = [];
    const lost = [];
    for (let i = 0; i < steps; ++i) {
      during(i, train);
      const step = await train.step(batch(i));
      if (step.kind !== 'completed') throw step.error;
      losses.push(step.loss);
      if (step.deviceLost) lost.push(i);
    }
    const params = plain(await train.downloadParams());
    const { device, gpu, counts } = train;
    train.destroy();
    return { losses, params, device, gpu, counts, events, lost };
  }
`;

test('training on the GPU is like training on the CPU', { skip }, () => {
  const { gpu, cpu, auto } = run(`${program}
    const gpu = await train_steps({ model: new Mlp() }, 20);
    const cpu = await train_steps({ model: new Mlp(), device: 'cpu' }, 20);
    const { device, gpu: report } = await train_steps({ device: 'auto' }, 1);
    console.log(JSON.stringify({ gpu, cpu, auto: { device, report } }));
  `);
  assert.match(gpu.device, /^webgpu/);
  assert.deepEqual(gpu.gpu, { ok: true, message: '' });
  assert.equal(gpu.counts.submits, 1);
  assert.equal(gpu.counts.passes, 1);
  gpu.losses.forEach((loss, i) =>
    assert.ok(Math.abs(loss - cpu.losses[i]) < 1e-4 * cpu.losses[i] + 1e-6),
  );
  assert.ok(gpu.losses.at(-1) < gpu.losses[0]);
  if (auto.device === 'cpu') assert.equal(auto.report.reason, 'software');
  else assert.ok(auto.report.ok);
});

test('a lost GPU: the same bits as without the loss', { skip }, () => {
  for (const worker of [true, false]) {
    const { whole, broken } = run(`${program}
      const options = { worker: ${worker}, snapshotEvery: 6 };
      const whole = await train_steps(options, 24);
      const lose = (i, train) => i % 9 === 4 && train.loseDevice();
      const broken = await train_steps(options, 24, lose);
      console.log(JSON.stringify({ whole, broken }));
    `);
    assert.deepEqual(broken.losses, whole.losses);
    assert.deepEqual(broken.params, whole.params);
    assert.deepEqual(broken.events, ['destroyed', 0, 'destroyed', 12, 'destroyed', 18].flat());
    assert.deepEqual(broken.lost, [4, 13, 22]);
    assert.deepEqual(whole.lost, []);
  }
});

test('steps in flight, attached programs, captures and failures', { skip }, () => {
  const found = run(`${program}
    const loss = (m, { x, y }) => mean(square(sub(capture('guess', predict(m, x)), y)));
    const train = await compile(spec({ loss }));
    const forward = (m, { x }) => predict(m, x);
    const infer = await train.attach({ forward, inputs: { x: [null, 1] } });
    const flying = Array.from({ length: 8 }, (_, i) => train.step(batch(i)));
    const runs = [3, 5, 3].map((size) => infer.run({ x: new Float32Array(size) }));
    const steps = await Promise.all(flying);
    const bad = await train.step({ ...batch(0), x: new Float32Array(64).fill(NaN) });
    const after = await train.step(batch(8));
    console.log(JSON.stringify({
      steps: steps.map(({ kind, step }) => kind + step),
      sizes: (await Promise.all(runs)).map(({ output }) => output.length),
      captured: steps[0].captures.get('guess').length,
      bad: bad.error?.kind,
      after: after.kind,
    }));
    train.destroy();
  `);
  assert.deepEqual(
    found.steps,
    Array.from({ length: 8 }, (_, i) => `completed${i + 1}`),
  );
  assert.deepEqual(found.sizes, [3, 5, 3]);
  assert.equal(found.captured, 64);
  assert.equal(found.bad, 'non_finite');
  assert.equal(found.after, 'completed');
});

const slow =
  /swiftshader|llvmpipe/i.test(adapter.name) && 'a software driver takes minutes to compile it';
test('text models on the GPU', { skip: skip || slow }, () => {
  const { losses, text, pieces } = run(`
    import { TextGenerator, TextTrainer, Tokenizer } from 'tensorgrad';
    const source = 'abcd efgh '.repeat(100);
    const trainer = await TextTrainer.create({
      text: source,
      tokenizer: await Tokenizer.characters(source),
      model: { kind: 'mamba', dim: 8, layers: 1, state: 4, context: 16 },
      training: { steps: 6, batch: 2 },
      device: 'webgpu',
    });
    const losses = [];
    for (let i = 0; i < 6; ++i) {
      if (i === 3) trainer.loseDevice();
      losses.push((await trainer.step()).loss);
    }
    const generator = await TextGenerator.create(await trainer.save(), { device: 'webgpu' });
    const pieces = [];
    const text = await generator.generate('ab', { tokens: 5 }, (piece) => pieces.push(piece));
    console.log(JSON.stringify({ losses, text, pieces }));
  `);
  assert.equal(losses.length, 6);
  assert.ok(losses.every((loss) => loss > 0 && loss < 5));
  assert.equal(pieces.join(''), text);
  assert.equal(text.length, 5);
});
