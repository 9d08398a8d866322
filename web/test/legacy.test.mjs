// The names of version 0.0.12.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { random, sine_batch, tg } from './package.mjs';

const cpu = { device: 'cpu', worker: false };
const { add, Module, matmul, mul, relu, reshape, sub, sumLast } = tg;

class Linear extends Module {
  constructor(inDim, outDim) {
    super();
    this.W = this.param([inDim, outDim], { scale: 0.3 });
    this.b = this.param([outDim], { init: 'zeros' });
  }
}
class Mlp extends Module {
  l1 = new Linear(1, 16);
  l2 = new Linear(16, 1);
}
const forward = (m, x) => tg.linearFwd(m.l2, relu(tg.linearFwd(m.l1, x)));
const loss = (m, { x, y }) => {
  const diff = sub(tg.capture('guess', forward(m, x)), y);
  return mul(sumLast(reshape(mul(diff, diff), [64])), 1 / 64);
};
const inputs = { x: { shape: [64, 1], dtype: 'f32' }, y: { shape: [64, 1], dtype: 'f32' } };

test('compileModule: step returns the loss', async () => {
  const seen = [];
  const compiled = await tg.compileModule(() => new Mlp(), loss, {
    adam: {
      lr: (step) => (seen.push(step), 0.02),
      b1: 0.9,
      b2: 0.99,
      eps: 1e-8,
      weightDecay: 0.01,
      decayFilter: (name) => name.endsWith('.W'),
    },
    inputs,
    seed: 2,
    ...cpu,
  });
  const next = random(1);
  const first = await compiled.step(sine_batch(next, 64));
  assert.equal(typeof first, 'number');
  let last = first;
  for (let i = 0; i < 150; ++i) last = await compiled.step(sine_batch(next, 64));
  assert.ok(last < first / 5, `${first} -> ${last}`);
  assert.equal(seen[0], 1);
  assert.equal(seen.at(-1), 151);
  const { loss: value, captures } = await compiled.step(sine_batch(next, 64), {
    withCaptures: true,
  });
  assert.equal(typeof value, 'number');
  assert.deepEqual(captures.shapeOf('guess'), [64, 1]);
  assert.ok(compiled.kernelCount > 0);
  assert.deepEqual(compiled.outputShape, []);
  assert.ok(compiled.ir.graph.ops.length > 10);
  assert.equal((await compiled.downloadParamGrads())['l1.W'].length, 16);

  const infer = await compiled.compileForward((m, { x }) => forward(m, x), {
    inputs: { x: { shape: [2, 1] } },
  });
  const output = await infer.run({ x: new Float32Array([0.5, -0.5]) });
  assert.ok(output instanceof Float32Array && output.length === 2);

  const params = await compiled.downloadParams();
  await compiled.uploadParams({ 'l1.b': new Float32Array(16).fill(1) }, { partial: true });
  assert.notDeepEqual(await compiled.downloadParams(), params);
  await compiled.resetOptimizerState();
  await compiled.reset();
  await assert.rejects(compiled.step({}), /'x'/);
  compiled.destroy();
});

test('compileForward with a factory', async () => {
  const net = await tg.compileForward(
    () => new Mlp(),
    (m, { x }) => forward(m, x),
    { inputs: { x: { shape: [2, 1] } }, ...cpu },
  );
  assert.equal((await net.run({ x: new Float32Array(2) })).length, 2);
  net.destroy();
});

test('compile with a function that declares what it uses', async () => {
  const fn = () => {
    const w = tg.paramInput('w', [2, 3]);
    const x = tg.tensorInput('x', [4, 2]);
    const shift = tg.stateInput('shift', [3], 'f32', 2);
    return tg.sumAll(add(matmul(x, w), shift));
  };
  const runtime = await tg.compile(fn, cpu);
  await runtime.uploadParams({ w: new Float32Array([1, 2, 3, 4, 5, 6]) });
  const x = new Float32Array(8).fill(1);
  assert.equal(await runtime.step({ x }), 4 * (5 + 7 + 9) + 4 * 3 * 2);
  assert.deepEqual(await runtime.downloadParamGrads(), { w: new Float32Array(6).fill(4) });
  runtime.destroy();

  await tg.ready();
  const ir = tg.compileToIR(fn);
  assert.ok(ir.paramGrads.w);
  const graph = tg.trace(fn);
  const names = graph.ops.filter(({ kind }) => kind.endsWith('_input')).map(({ name }) => name);
  assert.deepEqual(names.sort(), ['w', 'x']);
  assert.throws(() => tg.paramInput('w', [1]), /paramInput: only in a function for compile/);
  assert.throws(
    () => tg.trace(() => add(tg.tensorInput('x', [1]), tg.tensorInput('x', [1]))),
    /tensorInput: the name 'x' is taken/,
  );
});

test('ops under their old names', async () => {
  const x = Float32Array.from({ length: 18 }, (_, i) => Math.cos(i));
  const compare = async (old, current, shape = [2, 3, 3]) => {
    const net = await tg.compileForward({
      model: new Mlp(),
      forward: (m, t) => ({ old: old(t.x), current: current(t.x) }),
      inputs: { x: shape },
      ...cpu,
    });
    const result = await net.run({ x });
    if (result.kind !== 'completed') throw result.error;
    assert.deepEqual(result.outputs.old, result.outputs.current, String(old));
    net.destroy();
  };
  await compare(
    (t) => tg.addScalar(t, 2),
    (t) => add(t, 2),
  );
  await compare(
    (t) => tg.mulScalar(t, 2),
    (t) => mul(2, t),
  );
  await compare(
    (t) => tg.meanLast(t),
    (t) => tg.mean(t, -1, { keepDims: true }),
  );
  await compare(
    (t) => tg.sumLast(t),
    (t) => tg.sum(t, 2),
  );
  await compare(
    (t) => tg.sumAll(t),
    (t) => tg.sum(t),
  );
  await compare(
    (t) => tg.sliceLastRange(t, 1, 3),
    (t) => tg.narrow(t, 2, 1, 2),
  );
  await compare(
    (t) => tg.transpose(t, [2, 0, 1]),
    (t) => tg.permute(t, [2, 0, 1]),
  );
  await compare(
    (t) => tg.matmulBatched(t, t),
    (t) => matmul(t, t),
  );
  await compare(
    (t) => tg.softmaxCausalLast(t),
    (t) => tg.softmaxCausal(t),
  );
  await compare(
    (t) => tg.logSoftmaxLast(t),
    (t) => tg.logSoftmax(t, -1),
  );
  await compare(
    (t) => tg.broadcastTo(tg.sumLast(t), [2, 2, 3]),
    (t) => tg.broadcastTo(tg.sum(t, -1), [2, 2, 3]),
  );
  await compare(
    (t) => tg.layerNormFwd({ g: tg.ones([3]), b: tg.zeros([3]) }, t),
    (t) => tg.layerNorm(t, tg.ones([3])),
  );
  await compare(
    (t) => tg.sumToShape(t, [3, 1]),
    (t) => tg.sum(tg.sum(t, 0), -1, { keepDims: true }),
  );
  await compare(
    (t) => tg.nn.crossEntropyLast(t, tg.zeros([2, 3], 'i32')),
    (t) => tg.crossEntropy(t, tg.zeros([2, 3], 'i32'), { reduction: 'none' }),
  );
});
