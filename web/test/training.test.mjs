// Training: from a worker and in the calling thread.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { random, sine_batch, tg } from './package.mjs';

const { compile, Linear, lr, mean, Module, mul, relu, square, sub, sum } = tg;

class Mlp extends Module {
  constructor(width = 64) {
    super();
    this.l1 = new Linear(1, width);
    this.l2 = new Linear(width, width);
    this.l3 = new Linear(width, 1);
  }
}
const predict = (m, x) => m.l3.fwd(relu(m.l2.fwd(relu(m.l1.fwd(x)))));
const loss = (m, { x, y }) => mean(square(sub(predict(m, x), y)));

const sine = (options = {}) => ({
  model: new Mlp(),
  loss,
  inputs: { x: [256, 1], y: [256, 1] },
  optimizer: { kind: 'adam', lr: 0.005 },
  seed: 1,
  device: 'cpu',
  ...options,
});

async function train_sine(steps, options) {
  const train = await compile(sine(options));
  const next = random(7);
  const results = [];
  for (let i = 0; i < steps; ++i) results.push(await train.step(sine_batch(next)));
  return { train, results };
}
function completed(result) {
  if (result.kind === 'failed') throw result.error;
  assert.equal(result.kind, 'completed');
  return result;
}

// w starts at 3, and its gradient is 2 w: one number that shows what an update does.
class One extends Module {
  w = this.param([1], { init: tg.init.literal(new Float32Array([3])) });
}
const one = (optimizer, options = {}) =>
  compile({
    model: new One(),
    loss: (m) => sum(square(m.w)),
    inputs: {},
    optimizer,
    device: 'cpu',
    worker: false,
    ...options,
  });
const weight = async (train) => (await train.downloadParams()).w[0];

for (const worker of [true, false])
  test(`a perceptron learns a sine, ${worker ? 'in a worker' : 'in this thread'}`, async () => {
    const { train, results } = await train_sine(300, { worker });
    const losses = results.map((result) => completed(result).loss);
    assert.ok(losses[0] > 0.2, `first loss ${losses[0]}`);
    assert.ok(losses.at(-1) < 0.002, `last loss ${losses.at(-1)}`);
    assert.equal(train.device.startsWith('cpu'), true);
    assert.equal(results.at(-1).step, 300);
    train.destroy();
  });

test('the same seed gives the same weights, in a worker and in this thread', async () => {
  const [a, b, c] = await Promise.all([
    train_sine(5, { worker: true }),
    train_sine(5, { worker: false }),
    train_sine(5, { worker: false, seed: 2 }),
  ]);
  const [x, y, z] = await Promise.all([a, b, c].map(({ train }) => train.downloadParams()));
  assert.deepEqual(x, y);
  assert.notDeepEqual(x, z);
  for (const { train } of [a, b, c]) train.destroy();
});

test('steps that are in flight together are made in the order of the calls', async () => {
  const one_by_one = await train_sine(20);
  const train = await compile(sine());
  const next = random(7);
  const all = await Promise.all(Array.from({ length: 20 }, () => train.step(sine_batch(next))));
  assert.deepEqual(
    all.map((result) => result.loss),
    one_by_one.results.map((result) => result.loss),
  );
  assert.deepEqual(
    all.map((result) => result.step),
    all.map((_, i) => i + 1),
  );
  train.destroy();
  one_by_one.train.destroy();
});

test('the caller may change its arrays right after the call', async () => {
  const { train, results } = await train_sine(2);
  const other = await compile(sine());
  const next = random(7);
  const batch = sine_batch(next);
  const first = other.step(batch);
  batch.x.fill(NaN);
  assert.equal(completed(await first).loss, results[0].loss);
  assert.equal(completed(await other.step(sine_batch(next))).loss, results[1].loss);
  train.destroy();
  other.destroy();
});

test('a part of a larger array is an input', async () => {
  const train = await compile(sine({ worker: true }));
  const { x, y } = sine_batch(random(7), 512);
  const part = await train.step({ x: x.subarray(256), y: y.subarray(256) });
  const other = await compile(sine({ worker: true }));
  const copy = await other.step({ x: x.slice(256), y: y.slice(256) });
  assert.equal(completed(part).loss, completed(copy).loss);
  train.destroy();
  other.destroy();
});

test('the fields of a training handle', async () => {
  const train = await compile(sine());
  assert.deepEqual(train.paramNames, ['l1.W', 'l1.b', 'l2.W', 'l2.b', 'l3.W', 'l3.b']);
  assert.deepEqual(train.parameters[2].shape, [64, 64]);
  assert.equal(train.seed, 1);
  assert.deepEqual(train.outputShape, []);
  assert.ok(train.kernels.length > 5);
  assert.equal(train.kernelCount, train.kernels.length);
  assert.equal(train.counts.kernels, train.kernels.length);
  const phases = new Set(train.kernels.map(({ phase }) => phase));
  assert.deepEqual([...phases].sort(), ['backward', 'forward', 'update']);
  assert.deepEqual(train.gpu, { ok: false, message: '', reason: 'not-asked' });
  assert.match(await train.show('plan'), /matmul/);
  await assert.rejects(train.show('nonsense'), /there is no stage 'nonsense'/);
  train.destroy();
});

test('without a seed there is a new one, which gives the same weights again', async () => {
  const first = await compile(sine({ seed: undefined }));
  const again = await compile(sine({ seed: first.seed }));
  assert.deepEqual(await first.downloadParams(), await again.downloadParams());
  first.destroy();
  again.destroy();
});

test('parameters are uploaded strictly, or in part', async () => {
  const train = await compile(sine());
  const params = await train.downloadParams();
  params['l1.b'].fill(0.25);
  await train.uploadParams(params);
  assert.deepEqual((await train.downloadParams())['l1.b'], new Float32Array(64).fill(0.25));
  const { 'l1.b': bias, ...others } = params;
  await assert.rejects(train.uploadParams(others), /l1\.b/);
  await assert.rejects(train.uploadParams({ ...params, 'l9.W': bias }), /l9\.W/);
  await assert.rejects(
    train.uploadParams({ ...params, 'l1.b': bias.slice(1) }),
    /l1\.b.*63|63.*l1\.b/s,
  );
  await train.uploadParams({ 'l1.b': bias.fill(0.5) }, { partial: true });
  assert.deepEqual((await train.downloadParams())['l1.b'], new Float32Array(64).fill(0.5));
  train.destroy();
});

test('gradients can be read', async () => {
  const train = await one({ kind: 'none' });
  completed(await train.step({}));
  assert.deepEqual(await train.downloadParamGrads(), { w: new Float32Array([6]) });
  assert.equal(await weight(train), 3);
  train.destroy();
});

test('reset: weights, optimizer, or both', async () => {
  const { train, results } = await train_sine(5);
  const trained = await train.downloadParams();
  await train.reset({ params: false });
  assert.deepEqual(await train.downloadParams(), trained);
  await train.reset({ optimizer: false });
  const initial = await train.downloadParams();
  assert.notDeepEqual(initial, trained);
  await train.reset();
  const next = random(7);
  for (const { loss: wanted } of results)
    assert.equal((await train.step(sine_batch(next))).loss, wanted);
  await train.reset({ seed: 9 });
  assert.notDeepEqual(await train.downloadParams(), initial);
  train.destroy();
});

test('reset of the weights alone keeps the momentum', async () => {
  const train = await one({ kind: 'sgd', lr: 0.1, momentum: 0.5 });
  await train.step({}); // v = 6, w = 3 - 0.6
  await train.reset({ optimizer: false });
  assert.equal(await weight(train), 3);
  await train.step({}); // v = 3 + 6
  assert.ok(Math.abs((await weight(train)) - 2.1) < 1e-6);
  train.destroy();
});

test('setLR: a number, and a schedule that starts now', async () => {
  const train = await one({ kind: 'sgd', lr: 0.1 });
  await train.step({});
  await train.setLR(0);
  const before = await weight(train);
  assert.equal(completed(await train.step({})).lr, 0);
  assert.equal(await weight(train), before);
  await train.setLR(lr.linear({ peak: 0.1, final: 0, steps: 2 }));
  const rates = [];
  for (let i = 0; i < 4; ++i) rates.push(completed(await train.step({})).lr);
  assert.deepEqual(rates, [0.1, 0.05, 0, 0]);
  train.destroy();
});

test('setLR: a schedule that JavaScript computes starts now, too', async () => {
  const train = await one({ kind: 'sgd', lr: 0.1 });
  for (let i = 0; i < 5; ++i) await train.step({});
  await train.setLR(lr.warmup({ peak: 0.4, steps: 2, after: 0.1 }));
  const rates = [];
  for (let i = 0; i < 4; ++i) rates.push(+completed(await train.step({})).lr.toFixed(6));
  assert.deepEqual(rates, [0.2, 0.4, 0.1, 0.1]);
  await train.setLR(lr.warmup({ peak: 0.4, steps: 2, after: 0.1, startStep: 10 }));
  assert.equal(+completed(await train.step({})).lr.toFixed(6), 0.2); // update 10
  train.destroy();
});

test('schedules', async () => {
  const rates = async (rate, steps) => {
    const train = await one({ kind: 'sgd', lr: rate });
    const found = [];
    for (let i = 0; i < steps; ++i) found.push(+completed(await train.step({})).lr.toFixed(6));
    train.destroy();
    return found;
  };
  assert.deepEqual(
    await rates(lr.cosineAnnealing({ peak: 0.2, final: 0, steps: 2 }), 4),
    [0.2, 0.1, 0, 0],
  );
  assert.deepEqual(
    await rates(lr.staircase({ peak: 0.8, every: 2, gamma: 0.5 }), 5),
    [0.8, 0.8, 0.4, 0.4, 0.2],
  );
  assert.deepEqual(
    await rates(lr.multiStep({ peak: 0.8, milestones: [1, 3], gamma: 0.5 }), 4),
    [0.8, 0.4, 0.4, 0.2],
  );
  assert.deepEqual(await rates(lr.warmup({ peak: 0.4, steps: 2, after: 0.4 }), 3), [0.2, 0.4, 0.4]);
  // The rate after the warmup is another one: JavaScript computes it.
  assert.deepEqual(
    await rates(lr.warmup({ peak: 0.4, steps: 2, after: 0.1 }), 4),
    [0.2, 0.4, 0.1, 0.1],
  );
  assert.deepEqual(
    await rates(lr.linear({ peak: 0.4, final: 0, steps: 4, startStep: 1 }), 4),
    [0.4, 0.4, 0.3, 0.2],
  );
});

test('a rate that is a function is called before each step, with its update', async () => {
  const seen = [];
  const rate = (update) => {
    seen.push(update);
    return 0.1 / update;
  };
  const train = await one({ kind: 'sgd', lr: rate }, { worker: true });
  const results = await Promise.all(Array.from({ length: 4 }, () => train.step({})));
  assert.deepEqual(seen, [1, 2, 3, 4]);
  assert.deepEqual(
    results.map((result) => +completed(result).lr.toFixed(6)),
    [0.1, 0.05, 0.033333, 0.025],
  );
  const same = await one({ kind: 'sgd', lr: 0.1 });
  for (let i = 1; i <= 4; ++i) {
    await same.setLR(0.1 / i);
    await same.step({});
  }
  assert.equal(await weight(train), await weight(same));
  await train.reset();
  await train.step({});
  assert.deepEqual(seen.slice(4), [1]);
  train.destroy();
  same.destroy();
});

test('with accumulated gradients, a rate is asked by update, not by step', async () => {
  const seen = [];
  const rate = (update) => (seen.push(update), 0.1);
  const train = await one({ kind: 'sgd', lr: rate }, { accumulate: 2 });
  for (let i = 0; i < 4; ++i) await train.step({});
  assert.deepEqual(seen, [1, 1, 2, 2]);
  assert.ok(Math.abs((await weight(train)) - 3 * 0.8 ** 2) < 1e-5); // two updates
  train.destroy();
});

test('a rate that throws fails its step and changes nothing', async () => {
  let broken = true;
  const rate = () => {
    if (broken) throw new RangeError('my own error');
    return 0.1;
  };
  const train = await one({ kind: 'sgd', lr: rate });
  const result = await train.step({});
  assert.equal(result.kind, 'failed');
  assert.match(result.error.message, /my own error/);
  assert.equal(await weight(train), 3);
  broken = false;
  completed(await train.step({}));
  assert.ok(Math.abs((await weight(train)) - 2.4) < 1e-6);
  train.destroy();
});

test('optimizers and their options', async () => {
  const after = async (optimizer) => {
    const train = await one(optimizer);
    const result = completed(await train.step({}));
    const found = await weight(train);
    train.destroy();
    return { weight: +found.toFixed(5), gradNorm: result.gradNorm };
  };
  assert.equal((await after({ kind: 'sgd', lr: 0.1 })).weight, 2.4);
  assert.equal((await after({ kind: 'adam', lr: 0.1 })).weight, 2.9);
  assert.equal((await after({ kind: 'adamw', lr: 0.1, weightDecay: 0.1 })).weight, 2.87);
  assert.equal(
    (await after({ kind: 'adamw', lr: 0.1, weightDecay: 0.1, decayFilter: (name) => name === 'w' }))
      .weight,
    2.87,
  );
  const clipped = await after({ kind: 'sgd', lr: 0.1, clipGradNorm: 1 });
  assert.equal(clipped.weight, 2.9);
  assert.equal(clipped.gradNorm, 6);
  assert.equal((await after({ kind: 'sgd', lr: 0.1, normalizeGrads: true })).weight, 2.9);
  await assert.rejects(
    after({ kind: 'sgd', lr: 0.1, normalizeGrads: (name) => name === 'typo' }),
    /normalizeGrads: no parameter matches/,
  );
  await assert.rejects(after({ kind: 'sgd', lr: 0.1, nesterov: true }), /nesterov.*momentum/);
  await assert.rejects(after({ kind: 'sgd', lr: 0.1, momentun: 0.9 }), /unknown name 'momentun'/);
  await assert.rejects(after({ kind: 'adagrad', lr: 0.1 }), /adagrad/);
});

test('frozen parameters are not trained', async () => {
  const train = await compile(sine({ freeze: (name) => name.startsWith('l1.') }));
  const before = await train.downloadParams();
  completed(await train.step(sine_batch(random(1))));
  const after = await train.downloadParams();
  assert.deepEqual(after['l1.W'], before['l1.W']);
  assert.notDeepEqual(after['l2.W'], before['l2.W']);
  train.destroy();
});

test('captured tensors are in the result', async () => {
  const train = await compile(
    sine({
      loss: (m, { x, y }) => {
        const h = tg.capture('hidden', relu(m.l1.fwd(x)));
        return mean(square(sub(m.l3.fwd(relu(m.l2.fwd(h))), y)));
      },
    }),
  );
  const { captures } = completed(await train.step(sine_batch(random(7))));
  assert.deepEqual(captures.names(), ['hidden']);
  assert.deepEqual(captures.shapeOf('hidden'), [256, 64]);
  assert.equal(captures.get('hidden').length, 256 * 64);
  assert.ok(captures.get('hidden').every((value) => value >= 0));
  assert.throws(() => captures.get('other'), /there is no 'other'.*hidden/s);
  const without = completed(await train.step(sine_batch(random(7)), { captures: false }));
  assert.equal(without.captures.has('hidden'), false);
  train.destroy();
});

test('a loss function may return more tensors', async () => {
  const train = await compile(
    sine({
      loss: (m, { x, y }) => {
        const guess = predict(m, x);
        return { loss: mean(square(sub(guess, y))), guess };
      },
    }),
  );
  const { outputs, loss: value } = completed(await train.step(sine_batch(random(7))));
  assert.equal(outputs.guess.length, 256);
  assert.equal(typeof value, 'number');
  train.destroy();
});

test('a step that is not finite fails, and the next one goes on', async () => {
  const train = await compile(sine());
  const batch = sine_batch(random(7));
  const before = await train.downloadParams();
  const bad = await train.step({ x: batch.x.map(() => NaN), y: batch.y });
  assert.equal(bad.kind, 'failed');
  assert.equal(bad.error.kind, 'non_finite');
  assert.match(bad.error.message, /the loss is NaN: the input 'x' contains NaN values/);
  assert.deepEqual(await train.downloadParams(), before);
  completed(await train.step(batch));
  train.destroy();

  const logs = await compile(sine({ loss: (m, { x, y }) => mean(tg.log(sub(predict(m, x), y))) }));
  const { error } = await logs.step(batch);
  assert.match(error.message, /log.*training\.test\.mjs:\d+/s);
  logs.destroy();

  const skips = await compile(sine({ nonFinite: 'skip' }));
  const skipped = completed(await skips.step({ x: batch.x.map(() => NaN), y: batch.y }));
  assert.equal(skipped.finite, false);
  skips.destroy();
});

test('replaceModel: another model behind the same handle', async () => {
  const train = await compile(sine({ worker: true }));
  const infer = await train.attach({
    forward: (m, { x }) => predict(m, x),
    inputs: { x: [null, 1] },
  });
  completed(await infer.run({ x: new Float32Array(3) }));
  await train.replaceModel(new Mlp(8), { seed: 5 });
  assert.equal(train.seed, 5);
  assert.deepEqual(train.parameters[2].shape, [8, 8]);
  completed(await train.step(sine_batch(random(7))));
  assert.equal(completed(await infer.run({ x: new Float32Array(3) })).output.length, 3);
  assert.deepEqual(Object.keys(await infer.downloadParams()).length, 6);
  await train.replaceModel(new Mlp(8), { seed: 5, optimizer: { kind: 'sgd', lr: 0.25 } });
  assert.equal(completed(await train.step(sine_batch(random(7)))).lr, 0.25);
  train.destroy();
});

test('a model that cannot be built does not replace the one before', async () => {
  class Huge extends Module {
    l1 = new Linear(1, 64);
    l2 = new Linear(64, 64);
    l3 = new Linear(64, 1);
    huge = this.param([40_000, 40_000]);
  }
  const train = await compile(sine({ worker: true }));
  const infer = await train.attach({
    forward: (m, { x }) => predict(m, x),
    inputs: { x: [3, 1] },
  });
  const next = random(7);
  completed(await train.step(sine_batch(next)));
  const before = await train.downloadParams();
  const { output } = completed(await infer.run({ x: new Float32Array(3) }));
  await assert.rejects(train.replaceModel(new Huge()), { kind: 'out_of_memory' });
  await assert.rejects(train.replaceModel(new Linear(3, 4)), /l1|undefined|fwd/);
  assert.equal(train.seed, 1);
  assert.deepEqual(await train.downloadParams(), before);
  assert.deepEqual(completed(await infer.run({ x: new Float32Array(3) })).output, output);
  assert.equal(completed(await train.step(sine_batch(next))).step, 2);
  train.destroy();
});

test('calls after destroy() are aborted', async () => {
  for (const worker of [true, false]) {
    const train = await compile(sine({ worker }));
    const infer = await train.attach({
      forward: (m, { x }) => predict(m, x),
      inputs: { x: [4, 1] },
    });
    train.destroy();
    assert.equal((await train.step(sine_batch(random(7)))).kind, 'aborted');
    assert.equal((await infer.run({ x: new Float32Array(4) })).kind, 'aborted');
    await assert.rejects(train.downloadParams(), { name: 'AbortError' });
  }
});

test('steps in flight are aborted when the model is replaced or destroyed', async () => {
  const train = await compile(sine({ worker: true }));
  const next = random(7);
  const flying = Array.from({ length: 50 }, () => train.step(sine_batch(next)));
  train.destroy();
  const kinds = new Set((await Promise.all(flying)).map(({ kind }) => kind));
  assert.ok(kinds.has('aborted'));
  assert.equal(kinds.has('failed'), false);
});

test('modules in fields and arrays give the names', async () => {
  class Block extends Module {
    scale = this.param([2], { init: tg.init.ones() });
    inner = new Linear(2, 2, { bias: false });
  }
  class Net extends Module {
    blocks = [new Block(), new Block()];
    width = 2;
    note = { W: 'no parameter' };
    shared = this.blocks[0];
  }
  const train = await compile({
    model: new Net(),
    loss: (m, { x }) => {
      let h = x;
      for (const block of m.blocks) h = mul(block.inner.fwd(h), block.scale);
      return mean(square(mul(h, m.shared.scale)));
    },
    inputs: { x: [3, 2] },
    optimizer: { kind: 'adam', lr: 0.01 },
    device: 'cpu',
    worker: false,
  });
  assert.deepEqual(train.paramNames, [
    'blocks.0.scale',
    'blocks.0.inner.W',
    'blocks.1.scale',
    'blocks.1.inner.W',
  ]);
  assert.deepEqual(Object.fromEntries(train.parameters.map(({ name, decay }) => [name, decay])), {
    'blocks.0.scale': false,
    'blocks.0.inner.W': true,
    'blocks.1.scale': false,
    'blocks.1.inner.W': true,
  });
  completed(await train.step({ x: new Float32Array(6).fill(1) }));
  train.destroy();
});

test('initial values', async () => {
  const { init } = tg;
  class Net extends Module {
    zeros = this.param([4], { init: init.zeros() });
    ones = this.param([4], { init: 'ones' });
    constant = this.param([4], { init: init.constant(2.5) });
    literal = this.param([2, 2], { init: init.literal(new Float32Array([1, 2, 3, 4])) });
    made = this.param([2, 2], { init: (size, shape) => new Float32Array(size).fill(shape.length) });
    randn = this.param([100, 100]);
    wide = this.param([100, 100], { init: init.randn({ scale: 2 }) });
    uniform = this.param([100, 100], { init: init.uniform(-1, 3) });
    kaiming = this.param([200, 50], { init: init.kaiming({ gain: 1 }) });
    linear = new Linear(3, 2, { init: init.ones(), params: { b: { init: init.constant(7) } } });
  }
  const net = await tg.compileForward({
    model: new Net(),
    forward: () => tg.zeros([1]),
    inputs: {},
    device: 'cpu',
    worker: false,
  });
  const params = await net.downloadParams();
  const deviation = (values) => Math.sqrt(values.reduce((s, v) => s + v * v, 0) / values.length);
  assert.deepEqual([...params.zeros], [0, 0, 0, 0]);
  assert.deepEqual([...params.ones], [1, 1, 1, 1]);
  assert.deepEqual([...params.constant], [2.5, 2.5, 2.5, 2.5]);
  assert.deepEqual([...params.literal], [1, 2, 3, 4]);
  assert.deepEqual([...params.made], [2, 2, 2, 2]);
  assert.ok(Math.abs(deviation(params.randn) - 0.02) < 1e-3);
  assert.ok(Math.abs(deviation(params.wide) - 2) < 0.1);
  assert.ok(params.uniform.every((value) => value >= -1 && value < 3));
  assert.ok(Math.abs(deviation(params.kaiming) - 1 / Math.sqrt(200)) < 5e-3);
  assert.deepEqual([...params['linear.W']], [1, 1, 1, 1, 1, 1]);
  assert.deepEqual([...params['linear.b']], [7, 7]);
  net.destroy();
});
