// What the compiler makes of a program, without a device.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tg } from './package.mjs';

const { compilerStages, Linear, mean, Module, relu, square, sub, trace, traceForward } = tg;

class Net extends Module {
  l1 = new Linear(4, 8);
  l2 = new Linear(8, 4);
}
const forward = (m, { x }) => m.l2.fwd(relu(m.l1.fwd(x)));
const loss = (m, { x, y }) => mean(square(sub(forward(m, { x }), y)));
const spec = {
  model: new Net(),
  loss,
  inputs: { x: [2, 4], y: [2, 4] },
  optimizer: { kind: 'adam', lr: 0.001 },
};
const count = (ir, kind) => ir.graph.ops.filter((op) => op.kind === kind).length;

test('trace: the whole training step', async () => {
  const ir = await trace(spec);
  assert.equal(count(ir, 'tensor_input'), 2);
  assert.ok(count(ir, 'matmul') >= 4); // two forward, and those of the gradients
  assert.equal(count(ir, 'state_input'), 0);
  assert.ok(ir.kernels.some(({ phase }) => phase === 'update'));
  assert.deepEqual(Object.keys(ir.paramGrads).sort(), ['l1.W', 'l1.b', 'l2.W', 'l2.b']);
  assert.deepEqual(ir.paramGrads['l1.W'].shape, [4, 8]);
  assert.deepEqual(ir.loss.shape, []);
  assert.match(ir.plan, /matmul/);
  const params = ir.graph.ops
    .filter((op) => op.kind === 'param_input')
    .map((op) => [op.name, ir.graph.tensors[op.out].shape]);
  assert.deepEqual(Object.fromEntries(params), {
    'l1.W': [4, 8],
    'l1.b': [8],
    'l2.W': [8, 4],
    'l2.b': [4],
  });
});

test('traceForward: no gradients, no update', async () => {
  const ir = await traceForward({ model: new Net(), forward, inputs: { x: [2, 4] } });
  assert.equal(count(ir, 'param_input'), 4);
  assert.equal(count(ir, 'matmul'), 2);
  assert.ok(ir.kernels.every(({ phase }) => phase === 'forward'));
  assert.deepEqual(ir.paramGrads, {});
  const matmul = ir.graph.ops.find((op) => op.kind === 'matmul');
  assert.equal(tg.getOpInputs(matmul).length, 2);
  assert.match(ir.graph.tensors[matmul.out].site, /ir\.test\.mjs:\d+/);
  for (const op of ir.graph.ops) assert.equal(ir.graph.ops[ir.graph.tensors[op.out].source], op);
});

test('a handle has the graph of its step, and captures have names', async () => {
  const train = await tg.compile({
    ...spec,
    loss: (m, { x, y }) => mean(square(sub(tg.capture('guess "1"', forward(m, { x })), y))),
    device: 'cpu',
    worker: false,
  });
  const { graph } = train;
  assert.equal(graph, train.graph);
  const id = graph.captures.get('guess "1"');
  assert.deepEqual(graph.tensors[id].shape, [2, 4]);
  assert.deepEqual(
    graph.outputs.map((output) => graph.tensors[output].shape),
    [[]],
  );
  train.destroy();
});

test('the same model twice gives the same graph', async () => {
  const [a, b] = [await trace(spec), await trace(spec)];
  assert.deepEqual(a.graph.ops, b.graph.ops);
});

test('compilerStages: what is true after each stage', async () => {
  const stages = await compilerStages();
  const names = stages.map(({ name }) => name);
  assert.deepEqual([names[0], names.at(-1)], ['trace', 'load']);
  for (const { what, from, to } of stages) assert.ok(what && from && to);
});
