// What the types of the package allow, and what they refuse. tsc --strict reads this file
// (types.test.mjs); nothing runs it.
import {
  add,
  argmax,
  attention,
  Captures,
  checkWebGPU,
  compile,
  compileForward,
  compileModule,
  Conv2d,
  conv2d,
  crossEntropy,
  Embedding,
  init,
  LayerNorm,
  less,
  Linear,
  loadSafetensors,
  lr,
  mean,
  Module,
  singleFlight,
  softmax,
  split,
  square,
  sub,
  sum,
  TextTrainer,
  Tokenizer,
  trace,
  traceForward,
  where,
  type CompiledForward,
  type CompiledTraining,
  type InputDecls,
  type KernelTime,
  type LR,
  type OptimizerConfig,
  type PlannedKernel,
  type StepResult,
  type Tensor,
  type TypedInputs,
} from 'tensorgrad';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Equal<A, B>): void {}

class Net extends Module {
  embed = new Embedding(100, 16, { init: init.randn({ scale: 1 }) });
  norm = new LayerNorm(16, { eps: 1e-6, bias: false });
  conv = new Conv2d(1, 4, [3, 3], { stride: 2, padding: [1, 1], groups: 1 });
  fc: Linear;
  scale: Tensor;
  list: Linear[] = [];
  constructor(readonly width: number) {
    super();
    this.fc = new Linear(16, width, { bias: false, decay: false, params: { W: { frozen: true } } });
    this.scale = this.param([16], { init: init.ones(), decay: false });
  }
}
// @ts-expect-error a layer needs its sizes
new Linear(16);
// @ts-expect-error an option that does not exist
new Linear(16, 2, { biass: false });
// @ts-expect-error param() is for the module itself
new Net(3).param([2]);

// ---- inputs have the arrays of their dtype, with and without `as const`

export async function training(): Promise<void> {
  const train = await compile({
    model: new Net(10),
    loss: (m, { ids, y }) => {
      same<typeof ids, Tensor>(true);
      return crossEntropy(m.fc.fwd(m.norm.fwd(m.embed.fwd(ids))), y, { reduction: 'mean' });
    },
    inputs: { ids: { shape: [4, 8], dtype: 'i32' }, y: { shape: [4, 8], dtype: 'i32' }, w: [8] },
    optimizer: {
      kind: 'adamw',
      lr: 0.01,
      weightDecay: 0.1,
      decayFilter: (name) => name.endsWith('.W'),
    },
  });
  const ids = new Int32Array(32);
  const result = await train.step({ ids, y: ids, w: new Float32Array(8) });
  same<typeof result, StepResult>(true);
  if (result.kind === 'completed') {
    same<typeof result.loss, number>(true);
    same<typeof result.captures, Captures>(true);
  } else if (result.kind === 'failed') {
    same<typeof result.error, Error>(true);
  }
  // @ts-expect-error only a completed step has a loss
  void result.loss;
  // @ts-expect-error ids are integers
  await train.step({ ids: new Float32Array(32), y: ids, w: new Float32Array(8) });
  // @ts-expect-error w is f32
  await train.step({ ids, y: ids, w: ids });
  // @ts-expect-error an input is missing
  await train.step({ ids, y: ids });
  // @ts-expect-error an input that does not exist
  await train.step({ ids, y: ids, w: new Float32Array(8), z: ids });

  const infer = await train.attach({
    forward: (m, { x }) => argmax(m.fc.fwd(x), -1),
    inputs: { x: [null, 16] },
    output: 'i32',
    maxCachedShapes: 4,
  });
  const run = await infer.run({ x: new Float32Array(16) });
  if (run.kind === 'completed') same<typeof run.output, Int32Array>(true);
  const scores = await train.attach({ forward: (m, { x }) => m.fc.fwd(x), inputs: { x: [1, 16] } });
  const ran = await scores.run({ x: new Float32Array(16) });
  if (ran.kind === 'completed') same<typeof ran.output, Float32Array>(true);

  const fixed = await train.setInputs({ w: new Float32Array(8) });
  const unread = await fixed.step({ ids, y: ids }, { read: false });
  same<typeof unread.kind, 'enqueued' | 'aborted' | 'failed'>(true);
  // @ts-expect-error ids are not fixed
  await fixed.step({ y: ids });
  // @ts-expect-error an input that does not exist
  await train.setInputs({ z: ids });

  const plan = await train.plan();
  same<typeof plan, PlannedKernel[]>(true);
  const times = await fixed.profile({ steps: 2, inputs: { ids, y: ids } });
  same<typeof times, KernelTime[]>(true);
  await train.profile();
  await infer.profile({ inputs: { x: new Float32Array(16) } });
  same<Awaited<ReturnType<typeof train.shaders>>, string>(true);
  // @ts-expect-error ids are integers
  await train.profile({ inputs: { ids: new Float32Array(32) } });
  // @ts-expect-error an input that does not exist
  await train.profile({ inputs: { z: ids } });

  await train.setLR(lr.linear({ peak: 1, final: 0, steps: 10 }));
  await train.setLR((update) => 1 / update);
  await train.reset({ params: false });
  await train.replaceModel(new Net(20), { seed: 1, optimizer: { kind: 'sgd', lr: 1 } });
  // @ts-expect-error another class
  await train.replaceModel(new Linear(2, 2));
  same<Awaited<ReturnType<typeof train.downloadParams>>, Record<string, Float32Array>>(true);
  await train.uploadParams(loadSafetensors(await train.save()).tensors, { partial: true });
  train.addEventListener('devicelost', (event) => same<typeof event.reason, string>(true));
  train.addEventListener('recovered', (event) => same<typeof event.repeatedSteps, number>(true));
  const names: readonly string[] = train.paramNames;
  void names;
  train.destroy();

  const predict = singleFlight((x: Float32Array) => scores.run({ x }));
  const flown = await predict(new Float32Array(16));
  if (flown.kind === 'completed' && flown.value.kind === 'completed') void flown.value.output;
}

// ---- specs that are written down beforehand, as the samples of version 0.4.6 do

const inputs = { x: [4, 2], y: { shape: [4], dtype: 'i32' } } as const;
const optimizer = { kind: 'adam', lr: lr.warmup({ peak: 1, steps: 2, after: 1 }) } as const;
function loss(m: Net, { x, y }: { x: Tensor; y: Tensor }): Tensor {
  return crossEntropy(m.fc.fwd(x), y);
}
const spec = { model: new Net(3), loss, inputs, optimizer };
export function compileTraining(): Promise<CompiledTraining<Net>> {
  return compile(spec);
}
export function compileTyped(): Promise<CompiledTraining<Net, typeof inputs>> {
  return compile(spec);
}
export async function typed(): Promise<void> {
  const train = await compileTyped();
  await train.step({ x: new Float32Array(8), y: new Int32Array(4) });
  // @ts-expect-error y is i32
  await train.step({ x: new Float32Array(8), y: new Float32Array(4) });
  same<TypedInputs<typeof inputs>['y'], Int32Array>(true);
  const fields: { graph: unknown; kernels: readonly unknown[]; seed: number } = train;
  void fields;
}
export async function forward(): Promise<void> {
  const net: CompiledForward<Net, { x: [number, number] }> = await compileForward({
    model: new Net(3),
    forward: (m, { x }) => m.fc.fwd(x),
    inputs: { x: [4, 2] as [number, number] },
    device: 'webgpu',
    worker: false,
  });
  await net.run({ x: new Float32Array(8) });
  const ir = await traceForward({
    model: new Net(3),
    forward: (m, { x }) => m.fc.fwd(x),
    inputs: { x: [1, 2] },
  });
  same<typeof ir.loss.id, number>(true);
  await trace(spec);
  await compileForward({
    model: new Net(3),
    forward: (m, { x }) => m.fc.fwd(x),
    inputs: { x: [4, 2] },
    // @ts-expect-error a device that does not exist
    device: 'gpu',
  });
}

// @ts-expect-error adamw needs a weight decay
export const noDecay: OptimizerConfig = { kind: 'adamw', lr: 1 };
// @ts-expect-error an optimizer that does not exist
export const unknownKind: OptimizerConfig = { kind: 'adagrad', lr: 1 };
export const rates: LR[] = [
  1,
  (update) => update,
  lr.staircase({ peak: 1, every: 2, gamma: 0.5, startStep: 3 }),
];
export const open: InputDecls = { x: [null, 2], y: { shape: [null], dtype: 'i32' } };

// ---- ops

export function ops(x: Tensor, ids: Tensor): Tensor[] {
  add(1, add(x, 2));
  sub(x, less(x, 0));
  where(less(0, x), x, 1);
  sum(x, [0, 1], { keepDims: true });
  mean(x, { axes: 0 });
  softmax(x, 1);
  conv2d(x, x, { stride: [1, 2], dilation: 2 });
  attention(x, x, x, { causal: false, scale: 0.5 });
  square(x);
  // @ts-expect-error a text is no tensor
  add(x, 'one');
  // @ts-expect-error an option that does not exist
  sum(x, 0, { keepdim: true });
  // @ts-expect-error a word that does not exist
  crossEntropy(x, ids, { reduction: 'max' });
  return split(x, [1, 2], 0);
}

// ---- version 0.0.12, and text

export async function legacy(): Promise<void> {
  const module = await compileModule(() => new Net(2), loss, {
    inputs,
    adam: { lr: (step) => 1 / step },
  });
  const value: number = await module.step({ x: new Float32Array(8), y: new Int32Array(4) });
  const { captures } = await module.step({}, { withCaptures: true });
  void [value, captures.names()];
}
export async function text(): Promise<void> {
  const tokenizer = await Tokenizer.bytes();
  const ids: Int32Array = tokenizer.encode('text');
  const trainer = await TextTrainer.create({
    text: 'text',
    tokenizer,
    model: { kind: 'mamba', dtRank: 4 },
  });
  const step = await trainer.step();
  if (step.kind === 'completed') same<typeof step.gradNorm, number>(true);
  // @ts-expect-error a model that does not exist
  await TextTrainer.create({ text: 'text', tokenizer, model: { kind: 'rnn' } });
  const { ok, message, reason } = await checkWebGPU();
  void [ids, ok, message, reason];
}
