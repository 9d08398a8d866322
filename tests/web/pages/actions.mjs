// What tests do in a page, or in a worker that the page starts. Arguments and results are plain data.
import * as tg from '/tensorgrad/dist/index.js';

class Mlp extends tg.Module {
  constructor(width) {
    super();
    this.l1 = new tg.Linear(1, width);
    this.l2 = new tg.Linear(width, width);
    this.l3 = new tg.Linear(width, 1);
  }
}
const predict = (m, x) => m.l3.fwd(tg.relu(m.l2.fwd(tg.relu(m.l1.fwd(x)))));

// Numbers from 0 to 1 that do not change from run to run.
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function sine(next, size) {
  const x = Float32Array.from({ length: size }, () => 6 * next() - 3);
  return { x, y: x.map(Math.sin) };
}

// The bits of all parameters as one text.
async function bits_of(parameters) {
  const names = Object.keys(parameters).sort();
  const bytes = await new Blob(names.map((name) => parameters[name])).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Trains a perceptron on a sine. `lose`: 'destroy' loses the device in step `lose_at`, 'crash' asks
 * the test to crash the GPU process.
 */
export async function train_sine({
  steps,
  width = 64,
  batch = 256,
  lose,
  lose_at,
  ...options
}) {
  const began = performance.now();
  const train = await tg.compile({
    model: new Mlp(width),
    loss: (m, { x, y }) => tg.mean(tg.square(tg.sub(predict(m, x), y))),
    inputs: { x: [batch, 1], y: [batch, 1] },
    optimizer: { kind: 'adam', lr: tg.lr.linear({ peak: 0.01, final: 0.001, steps }) },
    seed: 1,
    ...options,
  });
  const events = [];
  for (const name of ['devicelost', 'recovered'])
    train.addEventListener(name, (event) => events.push({ ...event, type: event.type }));
  const compile_ms = performance.now() - began;
  const next = random(7);
  const losses = [];
  let reported = 0;
  for (let i = 0; i < steps; ++i) {
    if (i === lose_at && lose === 'destroy') train.loseDevice();
    if (i === lose_at && lose === 'crash') await globalThis.crash_gpu();
    const result = await train.step(sine(next, batch));
    if (result.kind !== 'completed') throw result.error ?? new Error(result.kind);
    if (result.deviceLost) ++reported;
    losses.push(result.loss);
    if (lose === 'crash' && i >= lose_at && events.length === 0) await pause(20); // the news is under way
  }
  const { device, gpu, threads, notes } = train;
  const bits = await bits_of(await train.downloadParams());
  train.destroy();
  return { losses, bits, device, gpu, threads, notes, events, reported, compile_ms };
}

// The same in a worker of the page, which starts the package's workers itself.
export function train_sine_in_worker(options) {
  const worker = new Worker('/worker.mjs', { type: 'module' });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => ('error' in data ? reject(new Error(data.error)) : resolve(data));
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(options);
  }).finally(() => worker.terminate());
}

export const check_webgpu = () => tg.checkWebGPU();

// Replays a part of PyTorch's values. Returns what is wrong, and how many cases were replayed.
export async function replay_ops({ part = 0, parts = 1, tolerance, ...options }) {
  const { replay_case, tensors_of } = await import('/web/test/replay.mjs');
  const { cases } = await (await fetch('/fixtures/ops.json')).json();
  const bytes = new Uint8Array(await (await fetch('/fixtures/ops.safetensors')).arrayBuffer());
  const tensors = tensors_of(bytes);
  const wrong = [];
  const crashes = []; // of a software driver
  const own = cases.filter((_, i) => i % parts === part);
  for (const each of own) {
    try {
      const worst = await replay_case(tg, each, tensors, { tolerance, ...options });
      if (!(worst <= 1)) wrong.push(`${each.case}: ${worst}`);
    } catch (error) {
      if (error.kind === 'device' && /lost/.test(error.message)) crashes.push(each.case);
      else wrong.push(`${each.case}: ${error.message}`);
    }
  }
  return { wrong, crashes, count: own.length, of: cases.length };
}

export async function replay_run({ name, tolerance, ...options }) {
  const { replay_training, tensors_of } = await import('/web/test/replay.mjs');
  const json = await (await fetch(`/fixtures/${name}.json`)).json();
  const bytes = await (await fetch(`/fixtures/${name}.safetensors`)).arrayBuffer();
  return replay_training(tg, json, tensors_of(new Uint8Array(bytes)), { tolerance, ...options });
}

// ---- files

export const text = 'the cat sat on the mat. the dog sat on the log. '.repeat(60);
const writing = { tokens: 30, temperature: 0 };

// Trains a language model. Returns its checkpoint, and what it writes.
export async function train_text(options) {
  const tokenizer = await tg.Tokenizer.bytes();
  const trainer = await tg.TextTrainer.create({
    text,
    tokenizer,
    model: { kind: 'gpt', dim: 32, layers: 1, heads: 2, context: 32 },
    training: { steps: 40, batch: 4, lr: 0.01, seed: 3 },
    ...options,
  });
  let loss;
  for (let i = 0; i < 40; ++i) {
    const step = await trainer.step();
    if (step.kind !== 'completed') throw step.error;
    loss = step.loss;
  }
  const checkpoint = Array.from(await trainer.save());
  const written = await trainer.generate('the cat', writing);
  trainer.destroy();
  return { loss, checkpoint, written };
}

export async function write_text({ checkpoint, prompt, ...options }) {
  const generator = await tg.TextGenerator.create(Uint8Array.from(checkpoint), options);
  const written = await generator.generate(prompt, writing);
  generator.destroy();
  return written;
}

// ---- bad input

class Net extends tg.Module {
  fc = new tg.Linear(128, 10);
}

async function error_of(promise) {
  try {
    const result = await promise;
    if (result.kind === 'failed') throw result.error;
  } catch (error) {
    const { name, message } = error;
    return { is_error: error instanceof Error, name, message };
  }
  return { is_error: false, name: '', message: 'no error' };
}

export async function bad_input(options) {
  const training = (loss, inputs) =>
    tg.compile({ model: new Net(), loss, inputs, optimizer: { kind: 'sgd', lr: 1 }, ...options });
  const errors = {};
  errors.shape = await error_of(
    training(
      (m, { x }) => tg.mean(tg.matmul(x, m.fc.W)), // a wrong shape
      { x: [32, 784] },
    ),
  );
  errors.op = await error_of(
    training(
      (m, { x }) => tg.callOp('sigmoyd', { x })[0], // an unknown op
      { x: [2] },
    ),
  );
  const train = await training((m, { x }) => tg.mean(m.fc.fwd(x)), { x: [2, 128] });
  const before = await bits_of(await train.downloadParams());
  errors.missing = await error_of(train.step({})); // a missing feed
  const short = new Float32Array(255);
  errors.size = await error_of(train.step({ x: short })); // a feed of another size
  const detached = new Float32Array(256);
  structuredClone(detached, { transfer: [detached.buffer] });
  errors.detached = await error_of(train.step({ x: detached })); // a detached buffer
  const unchanged = before === (await bits_of(await train.downloadParams()));
  const after = await error_of(train.step({ x: new Float32Array(256) }));
  train.destroy();
  return { errors, unchanged, goes_on: after.message === 'no error' };
}
