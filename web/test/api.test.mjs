// Every name that users know is there, and everything of the library's registry.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { package_folder, tg } from './package.mjs';

const words = (text) => text.trim().split(/\s+/);
const version_0_4_6 = words(`
  ShapeError capture add sub mul div min max clamp sqrt rsqrt log exp relu neg abs tanh sigmoid
  erf sin cos gelu silu leakyRelu softplus square dropout randn stopGradient less greater where
  mean sum argmax argmin reshape permute swapAxes splitHeads mergeHeads rope matmul oneHot
  arange embedding takeAlongAxis zeros ones softmaxCausal logSoftmax softmax whereCausal
  categorical conv2d maxPool2d nearestUpsample2d narrow concat stack split lr Captures compile
  compileForward trace traceForward checkWebGPU loadSafetensors Module init singleFlight Linear
  LayerNorm RMSNorm Embedding Conv2d crossEntropy nllLoss getOpInputs
`);
const version_0_0_12 = words(`
  compileModule compileToIR paramInput tensorInput stateInput linearFwd layerNormFwd addScalar
  mulScalar meanLast sumLast sumAll sliceLastRange transpose matmulBatched broadcastTo
  softmaxCausalLast logSoftmaxLast crossEntropyLast nn
`);

test('the names of versions 0.4.6 and 0.0.12', () => {
  const missing = [...version_0_4_6, ...version_0_0_12].filter((name) => tg[name] === undefined);
  assert.deepEqual(missing, []);
  const namespaces = {
    lr: 'linear cosineAnnealing warmup staircase multiStep',
    init: 'randn zeros ones kaiming literal',
  };
  for (const [name, members] of Object.entries(namespaces))
    for (const member of words(members)) assert.equal(typeof tg[name][member], 'function', member);
  assert.deepEqual(
    Object.keys(tg.nn).sort(),
    words(`
  Conv2d Embedding LayerNorm Linear RMSNorm crossEntropy crossEntropyLast layerNormFwd linearFwd
  mergeHeads nllLoss splitHeads unsplitHeads
  `),
  );
});

// An instance of a binary of the package.
async function instance_of(name) {
  const { default: create } = await import(pathToFileURL(`${package_folder}/dist/${name}.mjs`));
  const wasm = await readFile(`${package_folder}/dist/${name}.wasm`);
  return create({ wasmModule: await WebAssembly.compile(wasm) });
}

async function registry() {
  const library = await instance_of('tensorgrad-cpu');
  return JSON.parse(library.UTF8ToString(library._tg_registry()));
}

test('a binary has the devices of its backend, and no others', async () => {
  const all = ['cpu', 'webgpu'];
  for (const [backend, other] of [all, [...all].reverse()])
    for (const prefix of ['tensorgrad', 'tensorgrad-core']) {
      const library = await instance_of(`${prefix}-${backend}`);
      const devices = JSON.parse(library.UTF8ToString(library._tg_devices()));
      assert.deepEqual(devices.map(({ name }) => name), [backend]);
      const text = (value) => {
        const pointer = library._malloc(value.length + 1);
        library.bytes().set([...new TextEncoder().encode(value), 0], pointer);
        return pointer;
      };
      const options = text(JSON.stringify({ device: other, inputs: [] }));
      assert.equal(library._tg_begin_forward(library._tg_model_new(), options), 0);
      assert.equal(
        library.UTF8ToString(library._tg_error()),
        `device: '${other}' is unknown\n  hint: 'auto', '${backend}'`,
      );
    }
});

test('every op and layer of the registry has a function or a class', async () => {
  const { ops, layers } = await registry();
  assert.ok(ops.length > 100 && layers.length > 10);
  const others = {
    maximum: 'max',
    minimum: 'min',
    max: 'amax',
    min: 'amin',
    var: 'variance',
    gelu_tanh: 'gelu',
    masked_cross_entropy: 'crossEntropy',
  };
  const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  for (const { name } of ops)
    assert.equal(typeof tg[others[name] ?? camel(name)], 'function', name);
  for (const { name } of layers) assert.ok(tg[name].prototype instanceof tg.Layer, name);
});

test('arguments: in order, by name, and with the names of the registry', async () => {
  const forms = (x) => [
    [tg.sum(x, 1, { keepDims: true }), tg.sum(x, { axes: 1, keepDims: true })],
    [tg.sum(x, [0, 1]), tg.callOp('sum', { x, axes: [0, 1] })[0]],
    [tg.softmax(x, 0), tg.softmax(x, { axis: 0 })],
    [tg.clamp(x, -0.5, 0.5), tg.clamp(x, { min: -0.5, max: 0.5 })],
    [tg.leakyRelu(x, 0.2), tg.leakyRelu(x, { slope: 0.2 })],
    [tg.sub(2, x), tg.neg(tg.sub(x, 2))],
    [tg.div(2, x), tg.mul(2, tg.div(1, x))],
    [tg.max(0, x), tg.relu(x)],
    [tg.where(tg.less(x, 0), 0, x), tg.relu(x)],
    [tg.argmax(x, undefined), tg.argmax(tg.reshape(x, [-1]), 0)],
    [tg.argmin(x, 1, { keepDims: true }), tg.unsqueeze(tg.argmin(x, 1), 1)],
    [tg.arange(4, 'f32'), tg.cast(tg.arange(0, 8, 2), 'f32'), 2],
    [tg.softmaxCausal(x, 0), tg.swapAxes(tg.softmaxCausal(tg.swapAxes(x, 0, 1)), 0, 1)],
    [tg.rope(x, x)[1], tg.rope(x, { offset: 0 })],
    [tg.split(x, 2, 0)[1], tg.split(x, [2, 2], 0)[1]],
    [tg.variance(x, 0), tg.square(tg.stddev(x, 0))],
  ];
  class Nothing extends tg.Module {}
  const net = await tg.compileForward({
    model: new Nothing(),
    forward: (m, { x }) =>
      Object.fromEntries(
        forms(x).flatMap(([a, b, factor = 1], i) => [
          [`a${i}`, tg.cast(factor === 1 ? a : tg.mul(a, factor), 'f32')],
          [`b${i}`, tg.cast(b, 'f32')],
        ]),
      ),
    inputs: { x: [4, 4] },
    device: 'cpu',
    worker: false,
  });
  const result = await net.run({ x: Float32Array.from({ length: 16 }, (_, i) => Math.sin(i + 1)) });
  if (result.kind === 'failed') throw result.error;
  const { outputs } = result;
  for (let i = 0; `a${i}` in outputs; ++i) {
    assert.equal(outputs[`a${i}`].length, outputs[`b${i}`].length, `form ${i}`);
    outputs[`a${i}`].forEach((value, k) =>
      assert.ok(Math.abs(value - outputs[`b${i}`][k]) < 1e-6, `form ${i}`),
    );
  }
  net.destroy();
});

test('every layer can be part of a model that trains', async () => {
  class Net extends tg.Module {
    constructor(parts) {
      super();
      Object.assign(this, parts);
    }
  }
  const images = (x) => tg.reshape(x, [2, 4, 4, 4]);
  const cases = {
    Linear: [new tg.Linear(16, 16), (m, x) => m.fwd(x)],
    LayerNorm: [new tg.LayerNorm(16, { bias: false }), (m, x) => m.fwd(x)],
    RMSNorm: [new tg.RMSNorm(16), (m, x) => m.fwd(x)],
    Conv2d: [
      new tg.Conv2d(4, 6, [3, 1], { padding: [1, 0], groups: 2 }),
      (m, x) => m.fwd(images(x)),
    ],
    Conv1d: [new tg.Conv1d(16, 3), (m, x) => m.fwd(x)],
    SelfAttention: [
      new tg.SelfAttention(16, 4, { groups: 2, ropeBase: 10000 }),
      (m, x) => m.fwd(x),
    ],
    FeedForward: [new tg.FeedForward(16, 32, { activation: 'silu' }), (m, x) => m.fwd(x)],
    TransformerBlock: [new tg.TransformerBlock(16, 2, { norm: 'rms' }), (m, x) => m.fwd(x)],
    MambaBlock: [new tg.MambaBlock(16, { state: 4, discretisation: 'zoh' }), (m, x) => m.fwd(x)],
    Mamba2Block: [new tg.Mamba2Block(16, { state: 4, headSize: 8, chunk: 2 }), (m, x) => m.fwd(x)],
    Embedding: [new tg.Embedding(8, 4), (m, x, ids) => m.fwd(ids)],
    Transformer: [
      new tg.Transformer({ vocab: 8, dim: 8, context: 4, layers: 1, heads: 2 }),
      (m, x, ids) => m.fwd(ids),
    ],
    Mamba: [new tg.Mamba({ vocab: 8, dim: 8, layers: 1, state: 4 }), (m, x, ids) => m.fwd(ids)],
    Mamba2: [
      new tg.Mamba2({ vocab: 8, dim: 8, layers: 1, state: 4, headSize: 8 }),
      (m, x, ids) => m.fwd(ids),
    ],
    LanguageModel: [
      new tg.LanguageModel({ vocab: 8, dim: 16, layers: 'attention mamba' }),
      (m, x, ids) => m.fwd(ids),
    ],
  };
  const { layers } = await registry();
  for (const { name, parameters, inputs } of layers) {
    const sizes = parameters.filter((parameter) => !('default' in parameter)).map(() => 16);
    const on = inputs[0].name === 'x' ? (m, x) => m.fwd(x) : (m, x, ids) => m.fwd(ids);
    const [layer, forward] = cases[name] ?? [new tg[name](...sizes), on];
    const train = await tg.compile({
      model: new Net({ part: layer }),
      loss: (m, { x, ids }) => tg.mean(tg.square(tg.sub(forward(m.part, x, ids), 1))),
      inputs: { x: [2, 4, 16], ids: { shape: [2, 4], dtype: 'i32' } },
      optimizer: { kind: 'adam', lr: 0.01 },
      seed: 1,
      device: 'cpu',
      worker: false,
    });
    assert.ok(
      train.paramNames.length > 0 && train.paramNames.every((own) => own.startsWith('part.')),
      name,
    );
    const feed = {
      x: Float32Array.from({ length: 128 }, (_, i) => Math.sin(i)),
      ids: Int32Array.from({ length: 8 }, (_, i) => i),
    };
    const losses = [];
    for (let i = 0; i < 3; ++i) {
      const step = await train.step(feed);
      if (step.kind === 'failed') throw step.error;
      losses.push(step.loss);
    }
    assert.ok(losses[2] < losses[0], `${name}: ${losses}`);
    train.destroy();
  }
});
