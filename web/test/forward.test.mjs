// Forward programs: fixed and open sizes, attached and alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tg } from './package.mjs';

const { compile, compileForward, Linear, mean, Module, relu, square, sub } = tg;

class Net extends Module {
  l1 = new Linear(3, 8);
  l2 = new Linear(8, 2);
}
const forward = (m, { x }) => m.l2.fwd(relu(m.l1.fwd(x)));
const cpu = { device: 'cpu', worker: false };

function completed(result) {
  if (result.kind === 'failed') throw result.error;
  assert.equal(result.kind, 'completed');
  return result;
}
const numbers = (size) => Float32Array.from({ length: size }, (_, i) => Math.sin(i));

test('a forward program with parameters of its own', async () => {
  const net = await compileForward({
    model: new Net(),
    forward,
    inputs: { x: [4, 3] },
    seed: 3,
    device: 'cpu',
  });
  assert.deepEqual(net.paramNames, ['l1.W', 'l1.b', 'l2.W', 'l2.b']);
  const { output, shape } = completed(await net.run({ x: numbers(12) }));
  assert.deepEqual(shape, [4, 2]);
  const params = await net.downloadParams();
  params['l2.W'].fill(0);
  params['l2.b'].set([1, -2]);
  await net.uploadParams(params);
  assert.deepEqual(
    [...completed(await net.run({ x: numbers(12) })).output],
    [1, -2, 1, -2, 1, -2, 1, -2],
  );
  assert.notDeepEqual([...output], [1, -2, 1, -2, 1, -2, 1, -2]);
  net.destroy();
});

test('null is the size that the values have', async () => {
  const net = await compileForward({ model: new Net(), forward, inputs: { x: [null, 3] }, ...cpu });
  const params = await net.downloadParams(); // before the first run
  assert.equal(params['l1.W'].length, 24);
  const whole = completed(await net.run({ x: numbers(30) }));
  assert.deepEqual(whole.shape, [10, 2]);
  for (let i = 0; i < 10; ++i) {
    const row = completed(await net.run({ x: numbers(30).slice(3 * i, 3 * i + 3) }));
    assert.ok(Math.abs(row.output[0] - whole.output[2 * i]) < 1e-6);
  }
  net.destroy();
});

test('the least recently used sizes are dropped', async () => {
  let traced = [];
  const counting = (m, { x }) => {
    traced.push(x.shape[0]);
    return forward(m, { x });
  };
  const train = await compile({
    model: new Net(),
    loss: (m, { x }) => mean(square(forward(m, { x }))),
    inputs: { x: [2, 3] },
    optimizer: { kind: 'sgd', lr: 0.1 },
    ...cpu,
  });
  const net = await train.attach({
    forward: counting,
    inputs: { x: [null, 3] },
    maxCachedShapes: 2,
  });
  const run = async (rows) => completed(await net.run({ x: numbers(3 * rows) }));
  for (const rows of [1, 2, 1, 3, 1, 2]) await run(rows);
  assert.deepEqual(traced, [1, 2, 3, 2]); // 2 was dropped for 3, and 1 was used
  traced = [];
  const eight = await train.attach({ forward: counting, inputs: { x: [null, 3] } });
  for (let rows = 1; rows <= 9; ++rows) completed(await eight.run({ x: numbers(3 * rows) }));
  for (let rows = 2; rows <= 9; ++rows) completed(await eight.run({ x: numbers(3 * rows) }));
  assert.deepEqual(traced, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  completed(await eight.run({ x: numbers(3) }));
  assert.deepEqual(traced.at(-1), 1);
  train.destroy();
});

test('runs that overlap with dropped sizes have their results', async () => {
  const net = await compileForward({
    ...{ model: new Net(), forward, inputs: { x: [null, 3] }, maxCachedShapes: 1, device: 'cpu' },
  });
  const runs = [1, 2, 3, 1, 2, 3].map((rows) => net.run({ x: numbers(3 * rows) }));
  const shapes = (await Promise.all(runs)).map((result) => completed(result).shape[0]);
  assert.deepEqual(shapes, [1, 2, 3, 1, 2, 3]);
  net.destroy();
});

test('all nulls of a call are the same size', async () => {
  const net = await compileForward({
    model: new Net(),
    forward: (m, { x, y }) => sub(forward(m, { x }), y),
    inputs: { x: [null, 3], y: [null, 2] },
    ...cpu,
  });
  completed(await net.run({ x: numbers(6), y: numbers(4) }));
  const wrong = await net.run({ x: numbers(6), y: numbers(6) });
  assert.equal(wrong.kind, 'failed');
  assert.match(wrong.error.message, /null is 2 by input 'x', and 3 by 'y'/);
  const uneven = await net.run({ x: numbers(7), y: numbers(4) });
  assert.match(uneven.error.message, /7 values do not divide by 3/);
  net.destroy();
});

test('null is for forward programs only, once per input', async () => {
  const spec = {
    model: new Net(),
    loss: (m, { x }) => mean(forward(m, { x })),
    optimizer: { kind: 'sgd', lr: 1 },
    ...cpu,
  };
  await assert.rejects(
    compile({ ...spec, inputs: { x: [null, 3] } }),
    /'x' is \[null, 3\]: null is for forward programs/,
  );
  await assert.rejects(
    compileForward({ model: new Net(), forward, inputs: { x: [null, null] }, ...cpu }),
    /'x' has more than one null/,
  );
});

test('an attached program sees every update', async () => {
  const train = await compile({
    model: new Net(),
    loss: (m, { x, y }) => mean(square(sub(forward(m, { x }), y))),
    inputs: { x: [2, 3], y: [2, 2] },
    optimizer: { kind: 'sgd', lr: 0.1 },
    device: 'cpu',
  });
  const infer = await train.attach({ forward, inputs: { x: [2, 3] } });
  const before = completed(await infer.run({ x: numbers(6) })).output;
  const step = train.step({ x: numbers(6), y: new Float32Array(4).fill(9) });
  const after = infer.run({ x: numbers(6) }); // behind the step
  completed(await step);
  assert.notDeepEqual(completed(await after).output, before);
  assert.deepEqual(await infer.downloadParams(), await train.downloadParams());
  infer.destroy();
  train.destroy();
});

test('outputs are f32 or i32, as declared', async () => {
  const model = new Net();
  const largest = (m, { x }) => tg.argmax(forward(m, { x }), -1);
  const net = await compileForward({
    model,
    forward: largest,
    inputs: { x: [4, 3] },
    output: 'i32',
    ...cpu,
  });
  const { output } = completed(await net.run({ x: numbers(12) }));
  assert.ok(output instanceof Int32Array && output.length === 4);
  net.destroy();
  await assert.rejects(
    compileForward({ model, forward: largest, inputs: { x: [4, 3] }, ...cpu }),
    /compileForward: the output is i32, and the spec says 'f32'/,
  );
});

test('several outputs have names', async () => {
  const net = await compileForward({
    model: new Net(),
    forward: (m, { x }) => {
      const hidden = relu(m.l1.fwd(x));
      return { y: m.l2.fwd(hidden), hidden };
    },
    inputs: { x: [4, 3] },
    ...cpu,
  });
  const { output, outputs } = completed(await net.run({ x: numbers(12) }));
  assert.equal(output.length, 8);
  assert.equal(outputs.hidden.length, 32);
  net.destroy();
});

test('dropout is active in training only', async () => {
  const train = await compile({
    model: new Net(),
    loss: (m, { x }) => mean(tg.dropout(forward(m, { x }), 0.5)),
    inputs: { x: [2, 3] },
    optimizer: { kind: 'none' },
    ...cpu,
  });
  const through = (m, { x }) => tg.dropout(x, 0.5);
  const ones = { x: new Float32Array(300).fill(1) };
  const inputs = { x: [100, 3] };
  const off = await train.attach({ forward: through, inputs });
  assert.ok(completed(await off.run(ones)).output.every((value) => value === 1));
  const on = await train.attach({ forward: through, inputs, training: true });
  const values = new Set(completed(await on.run(ones)).output);
  assert.deepEqual([...values].sort(), [0, 2]);
  train.destroy();
});

test('perHead gives the parts of captured attention', async () => {
  const net = await compileForward({
    model: new Net(),
    forward: (m, { x }) => {
      tg.capture('ids', tg.arange(4));
      return tg.capture('attention', tg.softmaxCausal(x));
    },
    inputs: { x: [1, 2, 3, 3] },
    ...cpu,
  });
  const { captures } = completed(await net.run({ x: numbers(18) }));
  const heads = captures.perHead('attention');
  assert.equal(heads.length, 2);
  assert.deepEqual([...heads[1].slice(0, 3)], [1, 0, 0]);
  assert.throws(() => captures.perHead('ids'), /'ids' is i32\[4\]/);
  net.destroy();
});

test('graphFor shows what is compiled for a size', async () => {
  const net = await compileForward({ model: new Net(), forward, inputs: { x: [null, 3] }, ...cpu });
  const ir = await net.graphFor({ x: numbers(6) });
  assert.ok(ir.kernels.length > 0);
  assert.deepEqual(ir.loss.shape, [2, 2]);
  net.destroy();
});

test('singleFlight keeps the newest call', async () => {
  const started = [];
  const waiting = [];
  const call = tg.singleFlight((n) => {
    started.push(n);
    return new Promise((resolve) => waiting.push(() => resolve(n * 10)));
  });
  const first = call(1);
  const second = call(2);
  const third = call(3);
  assert.deepEqual(await second, { kind: 'aborted' });
  waiting[0]();
  assert.deepEqual(await first, { kind: 'completed', value: 10 });
  await new Promise((resolve) => setTimeout(resolve));
  waiting[1]();
  assert.deepEqual(await third, { kind: 'completed', value: 30 });
  assert.deepEqual(started, [1, 3]);
  const failing = tg.singleFlight(async () => {
    throw new Error('mine');
  });
  await assert.rejects(failing(1), /mine/);
});
