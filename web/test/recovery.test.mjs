// A lost device: the model goes on from its last snapshot, and ends with the weights of a run that
// lost nothing. On the CPU, where loseDevice() throws the instance of the library away.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { random, sine_batch, tg } from './package.mjs';

const { compile, Linear, mean, Module, relu, square, sub } = tg;

class Mlp extends Module {
  l1 = new Linear(1, 16);
  l2 = new Linear(16, 1);
}
const predict = (m, x) => m.l2.fwd(tg.dropout(relu(m.l1.fwd(x)), 0.1));
const spec = (options = {}) => ({
  model: new Mlp(),
  loss: (m, { x, y }) => mean(square(sub(predict(m, x), y))),
  inputs: { x: [32, 1], y: [32, 1] },
  optimizer: { kind: 'adam', lr: tg.lr.linear({ peak: 0.01, final: 0.001, steps: 40 }) },
  seed: 1,
  device: 'cpu',
  snapshotEvery: 8,
  ...options,
});

// Trains 40 steps. `during(i, train)` is called before step i.
async function run(options, during = () => undefined) {
  const train = await compile(spec(options));
  const events = [];
  train.addEventListener('devicelost', (event) => events.push(event));
  train.addEventListener('recovered', (event) => events.push(event));
  const next = random(3);
  const losses = [];
  const lost = [];
  for (let i = 0; i < 40; ++i) {
    await during(i, train);
    const result = await train.step(sine_batch(next, 32));
    if (result.kind !== 'completed') throw result.error ?? new Error(result.kind);
    losses.push(result.loss);
    if (result.deviceLost) lost.push(i);
  }
  const params = await train.downloadParams();
  const saved = await train.save();
  train.destroy();
  return { losses, params, saved, events, lost };
}

for (const worker of [true, false]) {
  const where = worker ? 'in a worker' : 'in this thread';

  test(`a model that loses its device ends with the same weights, ${where}`, async () => {
    const whole = await run({ worker });
    const broken = await run({ worker }, (i, train) => {
      if (i === 5 || i === 21 || i === 22 || i === 39) train.loseDevice();
    });
    assert.deepEqual(broken.losses, whole.losses);
    assert.deepEqual(broken.params, whole.params);
    assert.deepEqual(broken.saved, whole.saved);
    assert.deepEqual(
      broken.events.map(({ type }) => type),
      Array(4).fill(['devicelost', 'recovered']).flat(),
    );
    const [, first, , second] = broken.events;
    assert.equal(first.snapshotStep, 0);
    assert.ok(first.repeatedSteps >= 5);
    assert.ok(second.snapshotStep >= 8 && second.snapshotStep <= 16);
    assert.ok(second.repeatedSteps < 21);
    assert.ok(broken.lost.includes(5) || broken.lost.includes(6));
    assert.deepEqual(whole.lost, []);
  });

  test(`steps in flight are made when the device is back, ${where}`, async () => {
    const results = async (lose) => {
      const train = await compile(spec({ worker }));
      const next = random(3);
      const flying = Array.from({ length: 30 }, () => train.step(sine_batch(next, 32)));
      if (lose) train.loseDevice();
      const steps = await Promise.all(flying);
      const params = await train.downloadParams();
      train.destroy();
      return { losses: steps.map(({ loss }) => loss), params };
    };
    assert.deepEqual(await results(true), await results(false));
  });
}

test('everything that changes the state is repeated', async () => {
  const acts = async (i, train) => {
    if (i === 10) await train.setLR(0.02);
    if (i === 12) await train.reset({ params: false });
    if (i === 14) {
      const params = await train.downloadParams();
      params['l1.b'].fill(0.1);
      await train.uploadParams(params);
    }
    if (i === 16) await train.uploadParams({ 'l2.b': new Float32Array([3]) }, { partial: true });
    if (i === 18) await train.setLR(tg.lr.linear({ peak: 0.05, final: 0, steps: 100 }));
    if (i === 20) await train.reset({ optimizer: false });
    if (i === 30) await train.reset({ seed: 4 });
  };
  const whole = await run({ snapshotEvery: 6 }, acts);
  const broken = await run({ snapshotEvery: 6 }, async (i, train) => {
    await acts(i, train);
    if (i % 5 === 1 || i === 30) train.loseDevice();
  });
  assert.deepEqual(broken.losses, whole.losses);
  assert.deepEqual(broken.params, whole.params);
});

test('a rate that is a function is not asked again', async () => {
  const seen = [];
  const rate = (update) => (seen.push(update), 0.01 / update);
  const optimizer = { kind: 'adam', lr: rate };
  const whole = await run({ optimizer });
  const broken = await run({ optimizer }, (i, train) => i === 13 && train.loseDevice());
  assert.deepEqual(broken.params, whole.params);
  assert.deepEqual(
    seen,
    [...whole.losses, ...broken.losses].map((_, i) => (i % 40) + 1),
  );
});

test('a failed step fails again in the repetition, and changes nothing', async () => {
  const final = async (lose) => {
    const train = await compile(spec());
    const next = random(3);
    for (let i = 0; i < 12; ++i) {
      const batch = sine_batch(next, 32);
      if (i === 9) batch.x[0] = NaN;
      assert.equal((await train.step(batch)).kind, i === 9 ? 'failed' : 'completed');
    }
    if (lose) train.loseDevice();
    const params = await train.downloadParams();
    train.destroy();
    return params;
  };
  assert.deepEqual(await final(true), await final(false));
});

test('attached programs come back', async () => {
  const train = await compile(spec());
  const forward = (m, { x }) => predict(m, x);
  const infer = await train.attach({ forward, inputs: { x: [null, 1] } });
  const run_at = async (size) => (await infer.run({ x: new Float32Array(size).fill(0.5) })).output;
  const before = await run_at(3);
  await run_at(5);
  train.loseDevice();
  assert.deepEqual(await run_at(3), before);
  assert.equal((await run_at(4)).length, 4);
  train.destroy();
});

test('forward programs alone recover their parameters', async () => {
  const net = await tg.compileForward({
    ...{ model: new Mlp(), forward: (m, { x }) => predict(m, x), inputs: { x: [2, 1] } },
    ...{ device: 'cpu', snapshotEvery: 1 },
  });
  const params = await net.downloadParams();
  params['l2.b'].fill(11);
  await net.uploadParams(params);
  net.loseDevice();
  assert.deepEqual(await net.downloadParams(), params);
  net.destroy();
});

test('a replaced model recovers as the new one', async () => {
  const train = await compile(spec());
  await train.replaceModel(new Mlp(), { seed: 2 });
  const batch = sine_batch(random(3), 32);
  await train.step(batch);
  const params = await train.downloadParams();
  train.loseDevice();
  assert.deepEqual(await train.downloadParams(), params);
  train.destroy();
});

test('without snapshots, a lost device is an error of every call', async () => {
  const train = await compile(spec({ snapshotEvery: 0 }));
  await train.step(sine_batch(random(3), 32));
  train.loseDevice();
  const result = await train.step(sine_batch(random(3), 32));
  assert.equal(result.kind, 'failed');
  assert.equal(result.error.kind, 'device');
  assert.match(result.error.message, /the device was lost.*\n {2}hint: with snapshotEvery/);
  await assert.rejects(train.downloadParams(), /the device was lost/);
  train.destroy();
});

for (const worker of [true, false])
  test(`a device may be lost at any moment, ${worker ? 'in a worker' : 'in this thread'}`, async () => {
    const acts = [
      (train) => train.step(sine_batch(random(1), 32)),
      (train) =>
        train.attach({ forward: (m, { x }) => predict(m, x), inputs: { x: [2, 1] } }),
      (train) => train.save(),
      (train) => train.downloadParams(),
      (train) => train.reset({ params: false }),
      (train) => train.setInputs({ x: new Float32Array(32).fill(0.5) }),
      (train) => train.step({ y: new Float32Array(32) }),
    ];
    const run = async (lost) => {
      const train = await compile(spec({ worker, snapshotEvery: 2 }));
      for (const [i, act] of acts.entries()) {
        const acting = act(train);
        if (i === lost) train.loseDevice();
        await acting;
      }
      const params = await train.downloadParams();
      train.destroy();
      return params;
    };
    const whole = await run(-1);
    for (const lost of acts.keys()) assert.deepEqual(await run(lost), whole, `act ${lost}`);
  });

test('a model may be destroyed while its device is opened again', async () => {
  const train = await compile(spec({ worker: false }));
  const flying = train.step(sine_batch(random(3), 32));
  train.loseDevice();
  train.destroy();
  assert.equal((await flying).kind, 'aborted');
  let recovered = false;
  train.addEventListener('recovered', () => (recovered = true));
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(recovered, false);
});
