// The smaller entry, the package in a worker, and what is there without a GPU.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { package_folder, tg } from './package.mjs';

const core_url = pathToFileURL(`${package_folder}/dist/core.js`).href;

// Runs a module in a worker. It posts one message.
function in_worker(source) {
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const worker = new Worker(url);
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  }).finally(() => worker.terminate());
}

const training = (url, options) => `
  import { parentPort } from 'node:worker_threads';
  const { compile, Linear, mean, Module, square, sub } = await import(${JSON.stringify(url)});
  class Net extends Module { fc = new Linear(2, 1); }
  const train = await compile({
    model: new Net(),
    loss: (m, { x }) => mean(square(sub(m.fc.fwd(x), 1))),
    inputs: { x: [4, 2] },
    optimizer: { kind: 'sgd', lr: 0.1 },
    seed: 1,
    ${options},
  });
  const losses = [];
  const x = new Float32Array(8).fill(1);
  for (let i = 0; i < 5; ++i) losses.push((await train.step({ x })).loss);
  train.destroy();
  parentPort.postMessage(losses);
`;

test('the package works in a worker, with a worker of its own and without', async () => {
  const url = pathToFileURL(`${package_folder}/dist/index.js`).href;
  const own = await in_worker(training(url, "device: 'cpu'"));
  const same = await in_worker(training(url, "device: 'cpu', worker: false"));
  assert.equal(own.length, 5);
  assert.ok(own[4] < own[0]);
  assert.deepEqual(own, same);
});

test('tensorgrad/core trains, and has no text models', async () => {
  const losses = await in_worker(training(core_url, "device: 'cpu'"));
  assert.ok(losses[4] < losses[0]);
  const core = await import(core_url);
  assert.equal(core.Tokenizer, undefined);
  assert.equal(core.TextTrainer, undefined);
  const missing = Object.keys(tg).filter((name) => !(name in core));
  assert.deepEqual(missing.sort(), ['TextGenerator', 'TextTrainer', 'Tokenizer']);
  const names = await in_worker(`
    import { parentPort } from 'node:worker_threads';
    const core = await import(${JSON.stringify(core_url)});
    await core.ready();
    parentPort.postMessage(typeof core.trace(() => core.zeros([2])).ops.length);
  `);
  assert.equal(names, 'number');
});

test('checkWebGPU names the reason', async () => {
  const { ok, reason, message } = await tg.checkWebGPU();
  if (ok) return assert.equal(message, '');
  assert.ok(['no-webgpu', 'no-adapter', 'software'].includes(reason), reason);
  assert.ok(message.length > 20);
});

test('without a GPU, auto is the CPU and says why', async () => {
  class Net extends tg.Module {
    fc = new tg.Linear(2, 1);
  }
  const net = await tg.compileForward({
    ...{ model: new Net(), forward: (m, { x }) => m.fc.fwd(x), inputs: { x: [1, 2] } },
    worker: false,
  });
  if (net.gpu.ok) assert.match(net.device, /^webgpu/);
  else assert.ok(net.device === 'cpu' && net.gpu.reason !== 'not-asked' && net.gpu.message !== '');
  net.destroy();
});

test('memory that is exhausted is an error, and others go on', async () => {
  class Net extends tg.Module {
    constructor(size) {
      super();
      this.w = this.param([size, size]);
    }
  }
  const spec = (size) => ({
    model: new Net(size),
    loss: (m) => tg.mean(m.w),
    inputs: {},
    optimizer: { kind: 'sgd', lr: 1 },
    device: 'cpu',
    worker: false,
  });
  const train = await tg.compile(spec(4));
  await assert.rejects(tg.compile(spec(40_000)), (error) => {
    assert.equal(error.kind, 'out_of_memory');
    assert.match(error.message, /out of memory.*w f32\[40000,40000\]/s);
    return true;
  });
  assert.equal((await train.step({})).kind, 'completed');
  train.destroy();
});
