// The order of calls, inputs that stay on the device, steps that nobody reads, and threads.
import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { random, sine_batch, tg } from './package.mjs';

const { compile, init, Linear, mean, Module, relu, square, sub, sum } = tg;

class Mlp extends Module {
  l1 = new Linear(1, 32);
  l2 = new Linear(32, 1);
}
const predict = (m, x) => m.l2.fwd(relu(m.l1.fwd(x)));
const sine = (options = {}) =>
  compile({
    model: new Mlp(),
    loss: (m, { x, y }) => mean(square(sub(predict(m, x), y))),
    inputs: { x: [256, 1], y: [256, 1] },
    optimizer: { kind: 'adam', lr: 0.005 },
    seed: 1,
    device: 'cpu',
    ...options,
  });
function completed(result) {
  if (result.kind === 'failed') throw result.error;
  assert.equal(result.kind, 'completed');
  return result;
}

class One extends Module {
  w = this.param([1], { init: init.literal(new Float32Array([3])) });
}
// The gradient of w is 2 w.
const one = (optimizer) =>
  compile({
    model: new One(),
    loss: (m) => sum(square(m.w)),
    inputs: {},
    optimizer,
    device: 'cpu',
    worker: false,
  });
const weight = async (train) => (await train.downloadParams()).w[0];

for (const worker of [true, false]) {
  const where = worker ? 'in a worker' : 'in this thread';

  test(`inputs that are fixed are fed to every step, ${where}`, async () => {
    const { x, y } = sine_batch(random(7));
    const fed = await sine({ worker });
    const fixed = await sine({ worker });
    const losses = [];
    for (let i = 0; i < 6; ++i) losses.push(completed(await fed.step({ x, y })).loss);

    assert.equal((await fixed.step({ x })).kind, 'failed');
    assert.equal(await fixed.setInputs({ x }), fixed);
    const missing = await fixed.step({});
    assert.match(missing.error.message, /'y'.*f32\[256,1\]/);
    for (let i = 0; i < 3; ++i) assert.equal(completed(await fixed.step({ y })).loss, losses[i]);
    await fixed.setInputs({ y });
    for (let i = 3; i < 6; ++i) assert.equal(completed(await fixed.step({})).loss, losses[i]);
    assert.deepEqual(await fixed.downloadParams(), await fed.downloadParams());
    // What is fed to a step replaces what is fixed, for that step.
    const other = completed(await fixed.step({ y: y.map((value) => value + 1) })).loss;
    assert.ok(other > losses[5] + 0.5, `${other}`);

    await assert.rejects(fixed.setInputs({ z: x }), /'z'/);
    await assert.rejects(fixed.setInputs({ x: x.subarray(1) }), /'x'.*f32\[256,1\].*255/s);
    fed.destroy();
    fixed.destroy();
  });

  test(`steps that nobody reads change the same weights, ${where}`, async () => {
    const read = await sine({ worker });
    const unread = await sine({ worker });
    const [next, again] = [random(7), random(7)];
    for (let i = 0; i < 9; ++i) completed(await read.step(sine_batch(next)));
    for (let i = 0; i < 9; ++i)
      assert.deepEqual(await unread.step(sine_batch(again), { read: false }), { kind: 'enqueued' });
    assert.deepEqual(await unread.downloadParams(), await read.downloadParams());
    const last = completed(await unread.step(sine_batch(again)));
    assert.equal(last.step, 10);
    assert.equal(last.loss, completed(await read.step(sine_batch(next))).loss);
    read.destroy();
    unread.destroy();
  });

  test(`the failure of a step that nobody reads is that of the next one, ${where}`, async () => {
    const train = await sine({ worker });
    const { x, y } = sine_batch(random(7));
    const before = await train.downloadParams();
    assert.equal((await train.step({ x: x.map(() => NaN), y }, { read: false })).kind, 'enqueued');
    const next = await train.step({ x, y });
    assert.equal(next.kind, 'failed');
    assert.equal(next.error.kind, 'non_finite');
    assert.match(next.error.message, /^step 1: /);
    assert.deepEqual(await train.downloadParams(), before);
    completed(await train.step({ x, y }));
    train.destroy();
  });

  test(`inputs that are fixed and unread steps survive a lost device, ${where}`, async () => {
    const run = async (lose) => {
      const train = await sine({ worker, snapshotEvery: 4 });
      const next = random(7);
      const { x, y } = sine_batch(next);
      await train.setInputs({ x, y });
      for (let i = 0; i < 15; ++i) {
        if (i === 7) await train.setInputs(sine_batch(next));
        if (lose && (i === 2 || i === 9)) train.loseDevice();
        await train.step({}, { read: i % 3 === 0 });
      }
      const params = await train.downloadParams();
      train.destroy();
      return params;
    };
    assert.deepEqual(await run(true), await run(false));
  });
}

test('calls keep their order behind a rate that is a function', async () => {
  const train = await one({ kind: 'sgd', lr: () => 0.25 }); // a step halves w
  const first = train.step({});
  const after_one = train.downloadParams();
  const second = train.step({});
  const reset = train.reset();
  const third = train.step({});
  completed(await first);
  assert.deepEqual([...(await after_one).w], [1.5]);
  completed(await second);
  await reset;
  completed(await third);
  assert.equal(await weight(train), 1.5);
  train.destroy();
});

test('rates that are no rates', async () => {
  for (const lr of [NaN, -1, Infinity, 'fast', null, undefined])
    await assert.rejects(one({ kind: 'sgd', lr }), (error) => {
      assert.match(error.message, /^lr: .*(rate)/);
      return true;
    });
  const train = await one({ kind: 'sgd', lr: () => -0.5 });
  const failed = await train.step({});
  assert.match(failed.error.message, /lr: a rate must be a finite number.*: -0\.5, for update 1/);
  assert.equal(await weight(train), 3);
  await assert.rejects(train.setLR(NaN), /lr: a rate must be a finite number.*NaN/);
  await train.setLR(0.25);
  completed(await train.step({}));
  assert.equal(await weight(train), 1.5);
  train.destroy();
});

test('a checkpoint brings its seed', async () => {
  const a = await sine({ seed: 1 });
  const initial = await a.downloadParams();
  completed(await a.step(sine_batch(random(3))));
  const b = await sine({ seed: 2 });
  const info = await b.load(await a.save());
  assert.equal(info.seed, 1);
  assert.equal(info.step, 1);
  assert.equal(b.seed, 1);
  assert.deepEqual(await b.downloadParams(), await a.downloadParams());
  await b.reset();
  assert.deepEqual(await b.downloadParams(), initial);
  a.destroy();
  b.destroy();
});

test('a reset with a seed', async () => {
  const a = await sine({ seed: 5 });
  const b = await sine({ seed: 1 });
  await b.reset({ seed: 5 });
  assert.equal(b.seed, 5);
  assert.deepEqual(await b.downloadParams(), await a.downloadParams());
  await assert.rejects(b.reset({ params: false, seed: 5 }), /reset: a seed draws new weights/);
  a.destroy();
  b.destroy();
});

test('attached programs end with their model', async () => {
  const train = await sine();
  const infer = await train.attach({
    forward: (m, { x }) => predict(m, x),
    inputs: { x: [null, 1] },
  });
  train.destroy();
  const run = await infer.run({ x: new Float32Array(2) });
  assert.equal(run.kind, 'aborted');
  const late = train.attach({ forward: (m, { x }) => predict(m, x), inputs: { x: [2, 1] } });
  await assert.rejects(late, { name: 'AbortError' });
});

test('an attached program that was destroyed is aborted, and its model goes on', async () => {
  const train = await sine();
  const spec = { forward: (m, { x }) => predict(m, x), inputs: { x: [2, 1] } };
  const gone = await train.attach(spec);
  gone.destroy();
  assert.equal((await gone.run({ x: new Float32Array(2) })).kind, 'aborted');
  const other = await train.attach(spec);
  assert.equal(completed(await other.run({ x: new Float32Array(2) })).output.length, 2);
  train.destroy();
});

const several = { skip: availableParallelism() < 2 && 'there is one processor' };
test('several threads compute the same bits as one', several, async () => {
  const steps = async (threads) => {
    const inputs = { x: [4096, 1], y: [4096, 1] };
    const train = await sine({ threads, inputs });
    const next = random(7);
    const losses = [];
    for (let i = 0; i < 20; ++i) losses.push(completed(await train.step(sine_batch(next, 4096))).loss);
    const params = await train.downloadParams();
    const { threads: used, notes } = train;
    train.destroy();
    return { losses, params, used, notes };
  };
  const [single, two] = [await steps(1), await steps(2)];
  assert.equal(single.used, 1);
  assert.equal(two.used, 2);
  assert.deepEqual(two.notes, []);
  assert.deepEqual(two.losses, single.losses);
  assert.deepEqual(two.params, single.params);
});

test('several threads recover from a loss', several, async () => {
  const train = await sine({ threads: 2, snapshotEvery: 2 });
  const plain = await sine();
  const [next, again] = [random(7), random(7)];
  for (let i = 0; i < 6; ++i) {
    if (i === 3) train.loseDevice();
    const { loss } = completed(await train.step(sine_batch(next)));
    assert.equal(loss, completed(await plain.step(sine_batch(again))).loss);
  }
  train.destroy();
  plain.destroy();
});

test('the calling thread has one thread, and the handle says why', async () => {
  const train = await sine({ threads: 4, worker: false });
  assert.equal(train.threads, 1);
  assert.deepEqual(train.notes, [
    'one thread: the model lives in the calling thread, which may not block',
  ]);
  train.destroy();
  await assert.rejects(sine({ threads: 0 }), /threads: 0 is not a number of threads/);
});
