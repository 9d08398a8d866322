// Replays PyTorch's values (tests/fixtures) through the package. Runs in Node and in a page.

// A function per op of the fixtures. `t` are the inputs by name, `o` the attributes.
export const calls = (tg) => ({
  maximum: (t) => tg.max(t.a, t.b),
  minimum: (t) => tg.min(t.a, t.b),
  gelu_tanh: (t) => tg.gelu(t.x, { approximate: 'tanh' }),
  leaky_relu: (t, o) => tg.leakyRelu(t.x, o.slope),
  clamp: (t, o) => tg.clamp(t.x, o.min, o.max),
  where: (t) => tg.where(tg.cast(t.c, 'bool'), t.a, t.b),
  sum: (t, o) => tg.sum(t.x, o.axis ?? undefined, { keepDims: o.keepdims }),
  mean: (t, o) => tg.mean(t.x, o.axis ?? undefined, { keepDims: o.keepdims }),
  max: (t, o) => tg.amax(t.x, o.axis ?? undefined, { keepDims: o.keepdims }),
  argmax: (t, o) => tg.argmax(t.x, o.axis),
  argmin: (t, o) => tg.argmin(t.x, o.axis),
  permute: (t, o) => tg.permute(t.x, o.perm),
  reshape: (t, o) => tg.reshape(t.x, o.shape),
  broadcast_to: (t, o) => tg.broadcastTo(t.x, o.shape),
  narrow: (t, o) => tg.narrow(t.x, o.axis, o.start, o.length),
  concat: (t, o) => tg.concat(Object.values(t), o.axis),
  stack: (t, o) => tg.stack(Object.values(t), o.axis),
  matmul: (t) => tg.matmul(t.input, t.other),
  embedding: (t) => tg.embedding(t.table, t.idx),
  one_hot: (t, o) => tg.oneHot(t.idx, o.depth),
  take_along_axis: (t, o) => tg.takeAlongAxis(t.x, t.idx, o.axis),
  softmax: (t, o) => tg.softmax(t.x, o.axis),
  log_softmax: (t, o) => tg.logSoftmax(t.x, o.axis),
  softmax_causal: (t) => tg.softmaxCausal(t.x),
  cross_entropy: (t, o) =>
    tg.crossEntropy(t.logits, t.targets, {
      reduction: o.reduction,
      ignoreIndex: o.ignore_index ?? undefined,
      labelSmoothing: o.label_smoothing,
    }),
  layer_norm: (t, o) => tg.layerNorm(t.x, t.gain, { bias: t.bias, eps: o.eps }),
  rms_norm: (t, o) => tg.rmsNorm(t.x, t.gain, { eps: o.eps }),
  attention: (t, o) => tg.attention(t.q, t.k, t.v, { causal: o.causal }),
  rope: (t, o) => tg.rope(t.x, { base: o.base, offset: o.offset }),
  conv1d_causal_depthwise: (t) => tg.conv1dCausalDepthwise(t.x, t.w, t.bias),
  conv2d: (t, o) => {
    const y = tg.conv2d(t.x, t.w, o);
    return t.bias ? tg.add(y, tg.reshape(t.bias, [1, -1, 1, 1])) : y;
  },
  max_pool2d: (t, o) => tg.maxPool2d(t.x, o.kernel, { stride: o.stride, padding: o.padding }),
  nearest_upsample2d: (t, o) => tg.nearestUpsample2d(t.x, o.scale),
  selective_scan: (t, o) => tg.selectiveScan(t.u, t.delta, t.A_log, t.B, t.C, t.D, o),
  ssd: (t) => tg.ssd(t.x, t.dt, t.A_log, t.B, t.C, t.D),
});

// Ops whose function has the same name and takes the inputs in order.
const plain = new Set([
  ...['add', 'sub', 'mul', 'div', 'neg', 'abs', 'exp', 'log', 'sqrt', 'rsqrt', 'sin', 'cos'],
  ...['tanh', 'sigmoid', 'erf', 'relu', 'gelu', 'silu', 'softplus', 'square'],
]);

// All tensors of a safetensors file: the package's own reader leaves integers out.
export function tensors_of(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const tensors = {};
  for (const [
    name,
    {
      dtype,
      shape,
      data_offsets: [from, to],
    },
  ] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const part = new Uint8Array(bytes.subarray(start + from, start + to)).buffer;
    tensors[name] = {
      shape,
      values: dtype === 'F32' ? new Float32Array(part) : new Int32Array(part),
    };
  }
  return tensors;
}

function largest(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}
function largest_difference(got, wanted) {
  if (got.length !== wanted.length) return Infinity;
  let most = 0;
  for (let i = 0; i < got.length; ++i) {
    const difference = Math.abs(got[i] - wanted[i]);
    most = Number.isNaN(difference) ? Infinity : Math.max(most, difference);
  }
  return most;
}

// One case: the result, and its gradients if it has any. Returns the largest error divided by what
// is allowed.
export async function replay_case(tg, each, tensors, { tolerance, ...options }) {
  const { case: name, op, attrs, inputs, grads } = each;
  const call = plain.has(op) ? (t) => tg[op](...Object.values(t)) : calls(tg)[op];
  if (!call) throw new Error(`there is no call for the op '${op}'`);
  const value = (input) => tensors[`${name}/in/${input}`];
  class Operands extends tg.Module {
    constructor() {
      super();
      for (const grad of grads)
        this[grad] = this.param(value(grad).shape, { init: tg.init.literal(value(grad).values) });
    }
  }
  const decls = {};
  const feed = {};
  for (const { name: input, dtype, shape } of inputs) {
    if (grads.includes(input)) continue;
    decls[input] = { shape, dtype };
    feed[input] = value(input).values;
  }
  const out = (m, given) => {
    const operands = inputs.map(({ name: input }) => [input, m[input] ?? given[input]]);
    return call(Object.fromEntries(operands), attrs);
  };
  const checks = [];
  const check = (got, key) => {
    const wanted = tensors[key].values;
    checks.push(largest_difference(got, wanted) / (tolerance * Math.max(1, largest(wanted))));
  };
  if (grads.length === 0) {
    const output = each.output.dtype === 'i32' ? 'i32' : 'f32';
    const forward = await tg.compileForward({
      model: new Operands(),
      forward: out,
      inputs: decls,
      output,
      ...options,
    });
    const result = await forward.run(feed);
    forward.destroy();
    if (result.kind !== 'completed') throw result.error;
    check(result.output, `${name}/out`);
    return Math.max(...checks);
  }
  const cotangent = tensors[`${name}/cot`];
  const train = await tg.compile({
    model: new Operands(),
    loss: (m, given) => {
      const result = out(m, given);
      return { loss: tg.sum(tg.mul(result, given.cotangent)), result };
    },
    inputs: { ...decls, cotangent: { shape: cotangent.shape, dtype: 'f32' } },
    optimizer: { kind: 'none' },
    ...options,
  });
  try {
    const step = await train.step({ ...feed, cotangent: cotangent.values });
    if (step.kind !== 'completed') throw step.error;
    check(step.outputs.result, `${name}/out`);
    const gradients = await train.downloadParamGrads();
    for (const grad of grads) check(gradients[grad], `${name}/grad/${grad}`);
  } finally {
    train.destroy();
  }
  return Math.max(...checks);
}

// ---- training runs

function mlp(tg, { dims, activation }) {
  class Mlp extends tg.Module {
    constructor() {
      super();
      for (let i = 1; i < dims.length; ++i) this[`l${i}`] = new tg.Linear(dims[i - 1], dims[i]);
    }
  }
  return {
    model: new Mlp(),
    loss: (m, { x, y }) => {
      let h = x;
      for (let i = 1; i < dims.length; ++i) {
        h = m[`l${i}`].fwd(h);
        if (i < dims.length - 1) h = tg.activate(h, activation);
      }
      return tg.mean(tg.square(tg.sub(h, y)));
    },
  };
}

// A layer can be the whole model.
function transformer(tg, { vocab, dim, context, layers, heads, activation, ln_eps }) {
  return {
    model: new tg.Transformer({ vocab, dim, context, layers, heads, activation, eps: ln_eps }),
    loss: (m, { tokens, targets, mask }) => tg.crossEntropy(m.fwd(tokens), targets, { mask }),
  };
}

function mamba(tg, { vocab, dim, layers, state, conv, expand, dt_rank: dtRank, norm_eps }) {
  return {
    model: new tg.Mamba({ vocab, dim, layers, state, conv, expand, dtRank, eps: norm_eps }),
    loss: (m, { tokens, targets }) => tg.crossEntropy(m.fwd(tokens), targets),
  };
}

function cnn(tg, { image, channels, kernel, padding, pool, classes, activation }) {
  class Cnn extends tg.Module {
    constructor() {
      super();
      let [before, height, width] = image;
      channels.forEach((channel, i) => {
        this[`c${i + 1}`] = new tg.Conv2d(before, channel, kernel, { padding });
        before = channel;
        height = Math.floor(height / pool);
        width = Math.floor(width / pool);
      });
      this.fc = new tg.Linear(before * height * width, classes);
    }
  }
  return {
    model: new Cnn(),
    loss: (m, { x, y }) => {
      let h = x;
      channels.forEach((_, i) => {
        h = tg.maxPool2d(tg.activate(m[`c${i + 1}`].fwd(h), activation), pool);
      });
      return tg.crossEntropy(m.fc.fwd(tg.reshape(h, [x.shape[0], -1])), y);
    },
  };
}

const models = { mlp, transformer, mamba, cnn };

// A whole training run. Returns the largest errors, each divided by what is allowed.
export async function replay_training(tg, json, tensors, { tolerance = 1, ...options } = {}) {
  const { model: config, optimizer, lr, decay, steps } = json;
  const { model, loss } = models[config.kind](tg, config);
  const inputs = {};
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const [, input] = /^batch\/0\/(.*)$/.exec(name) ?? [];
    if (input) inputs[input] = { shape, dtype: values instanceof Int32Array ? 'i32' : 'f32' };
  }
  const rate =
    lr.kind === 'constant'
      ? lr.value
      : tg.lr.linear({ peak: lr.peak, final: lr.final, steps: lr.steps ?? steps });
  const { kind, beta1, beta2, eps, weight_decay: weightDecay, clip_grad_norm: clip } = optimizer;
  const train = await tg.compile({
    model,
    loss,
    inputs,
    optimizer: {
      ...{ kind, beta1, beta2, eps, lr: rate },
      ...(clip && { clipGradNorm: clip }),
      ...(kind === 'adamw' && {
        weightDecay,
        decayFilter: (name) => decay.includes(name),
      }),
    },
    ...options,
  });
  try {
    const part = (start) =>
      Object.fromEntries(
        Object.entries(tensors)
          .filter(([name]) => name.startsWith(start))
          .map(([name, { values }]) => [name.slice(start.length), values]),
      );
    await train.uploadParams(part('init/'));
    const worst = { loss: 0, gradients: 0, final: 0 };
    for (let i = 0; i < steps; ++i) {
      const feed = Object.fromEntries(
        Object.keys(inputs).map((name) => [name, tensors[`batch/${i}/${name}`].values]),
      );
      const step = await train.step(feed);
      if (step.kind !== 'completed') throw step.error;
      const wanted = json.losses[i];
      worst.loss = Math.max(
        worst.loss,
        Math.abs(step.loss - wanted) / (2e-5 * tolerance * Math.abs(wanted)),
      );
      if (i > 0) continue;
      const gradients = await train.downloadParamGrads();
      for (const [name, values] of Object.entries(part('grad1/'))) {
        const error = largest_difference(gradients[name], values);
        worst.gradients = Math.max(worst.gradients, error / (1e-5 * tolerance * largest(values)));
      }
    }
    const final = await train.downloadParams();
    for (const [name, values] of Object.entries(part('final/'))) {
      const norm = Math.hypot(...values);
      const error = Math.hypot(...final[name].map((value, i) => value - values[i]));
      worst.final = Math.max(worst.final, error / (1e-3 * tolerance * norm));
    }
    return worst;
  } finally {
    train.destroy();
  }
}
