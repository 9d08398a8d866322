// What a handle shows of the compiler: its plan, the time of each kernel, and shaders.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { random, sine_batch, tg } from './package.mjs';

const { compile, compileForward, dropout, Linear, lr, mean, Module, relu, square, sub } = tg;

class Mlp extends Module {
  l1 = new Linear(1, 16);
  l2 = new Linear(16, 1);
}
const predict = (m, x) => m.l2.fwd(dropout(relu(m.l1.fwd(x)), 0.1));
const sine = (options = {}) =>
  compile({
    model: new Mlp(),
    loss: (m, { x, y }) => mean(square(sub(predict(m, x), y))),
    inputs: { x: [256, 1], y: [256, 1] },
    optimizer: { kind: 'adam', lr: 0.01 },
    seed: 1,
    device: 'cpu',
    worker: false,
    ...options,
  });

function completed(result) {
  if (result.kind === 'failed') throw result.error;
  assert.equal(result.kind, 'completed');
  return result;
}

function expect_times(times, plan) {
  assert.deepEqual(
    times.map(({ kernel }) => kernel),
    plan.map((_, number) => number),
  );
  for (const time of times) {
    const { microseconds, mean_microseconds: mean, name, ...others } = time;
    assert.ok(microseconds >= 0 && mean >= microseconds * 0.999 && name !== '');
    assert.deepEqual(Object.keys(others), ['kernel']);
  }
  assert.ok(times.some(({ microseconds }) => microseconds > 0));
}

test('the plan has the work, the lines and the memory of each kernel', async () => {
  const train = await sine();
  const plan = await train.plan();
  assert.equal(plan.length, train.counts.kernels);
  assert.deepEqual(
    plan.map(({ kind, phase, ops, where }) => ({ kind, phase, ops, where })),
    train.kernels,
  );
  const sum = (field) => plan.reduce((total, kernel) => total + kernel[field], 0);
  assert.equal(sum('operations'), train.counts.operations);
  assert.equal(sum('bytes_read') + sum('bytes_written'), train.counts.bytes_moved);
  assert.match(plan[0].where, /look\.test\.mjs:\d+/);
  const arena = plan.flatMap(({ writes }, number) =>
    writes.filter(({ space }) => space === 'arena').map((tensor) => ({ number, ...tensor })),
  );
  assert.ok(arena.length > 0);
  for (const { number, offset, bytes, last_use } of arena) {
    assert.ok(offset >= 0 && offset + bytes <= train.counts.arena_bytes);
    assert.ok(last_use > number && last_use < plan.length);
  }
  const { type, bytes, in_place } = arena[0];
  assert.match(type, /^(f32|i32|bool)\[[\d,]*\]$/);
  assert.equal(bytes % 4, 0);
  assert.equal(typeof in_place, 'boolean');
  train.destroy();
});

// ---- profiles

const cases = {
  'in a worker': { worker: true },
  'in this thread': { worker: false },
  'in a round of gradients': { accumulate: 3 },
  'with a schedule': {
    optimizer: {
      kind: 'adamw',
      lr: lr.linear({ peak: 0.02, final: 0, steps: 12 }),
      weightDecay: 0.1,
    },
  },
  'with a function': { optimizer: { kind: 'sgd', lr: (update) => 0.1 / update, momentum: 0.9 } },
};
for (const [name, options] of Object.entries(cases))
  test(`a profile in the middle of training changes nothing, ${name}`, async () => {
    const results = [];
    for (const profiled of [false, true]) {
      const train = await sine(options);
      const next = random(7);
      const losses = [];
      for (let i = 0; i < 10; ++i) {
        if (i === 5) await train.setLR(lr.cosineAnnealing({ peak: 0.02, final: 0, steps: 20 }));
        const step = train.step(sine_batch(next));
        // It is asked for while a step is under way, and before the first one.
        const other = sine_batch(random(i));
        const profile =
          profiled && [0, 4, 7].includes(i) ? train.profile({ steps: 2, inputs: other }) : null;
        losses.push(completed(await step).loss);
        if (profile) expect_times(await profile, await train.plan());
      }
      results.push({ losses, file: Buffer.from(await train.save()).toString('hex') });
      train.destroy();
    }
    assert.deepEqual(results[0], results[1]);
  });

test('a profile reads the inputs that are fixed', async () => {
  const train = await sine();
  const { x, y } = sine_batch(random(1));
  await train.setInputs({ x });
  await assert.rejects(
    train.profile(),
    (error) =>
      error instanceof tg.TensorgradError &&
      error.message.startsWith(
        "profile: input 'y' is missing\n" +
          '  hint: profile({ inputs: { y } }), or setInputs() before\n  called at ',
      ),
  );
  expect_times(await train.profile({ inputs: { y } }), await train.plan());
  const fixed = await train.setInputs({ y });
  expect_times(await fixed.profile(), await train.plan());
  assert.equal(completed(await fixed.step({})).step, 1);
  train.destroy();
});

test('a wrong profile is an error and changes nothing', async () => {
  const train = await sine();
  const other = await sine();
  const { x, y } = sine_batch(random(1));
  await assert.rejects(
    train.profile({ inputs: { x, y }, steps: 0 }),
    /^TensorgradError: profile: at least one step: 0/,
  );
  await assert.rejects(
    train.profile({ inputs: { x, y, z: x } }),
    /input: there is no input 'z': the inputs are x, y/,
  );
  await assert.rejects(
    train.profile({ inputs: { x, y: new Int32Array(256) } }),
    /profile: input 'y' is f32\[256,1\]: it was given Int32Array/,
  );
  completed(await train.step({ x, y }));
  const bad = Float32Array.from(x, () => NaN);
  await assert.rejects(
    train.profile({ inputs: { x: bad, y } }),
    (error) => error.kind === 'non_finite' && /the input 'x' contains NaN/.test(error.message),
  );
  const next = completed(await train.step({ x, y }));
  completed(await other.step({ x, y }));
  assert.equal(next.step, 2);
  assert.equal(next.loss, completed(await other.step({ x, y })).loss);
  assert.deepEqual(await train.downloadParams(), await other.downloadParams());
  train.destroy();
  other.destroy();
});

test('a profile of a forward program is for the sizes of its inputs', async () => {
  const forward = (m, { x }) => predict(m, x);
  const spec = { forward, inputs: { x: [null, 1] } };
  const net = await compileForward({ model: new Mlp(), ...spec, device: 'cpu', worker: false });
  const train = await sine();
  const infer = await train.attach(spec);
  for (const program of [net, infer]) {
    const inputs = { x: new Float32Array(5) };
    const times = await program.profile({ inputs, steps: 3 });
    expect_times(times, (await program.graphFor(inputs)).kernels);
    await assert.rejects(program.profile({ inputs: {} }), /profile: input 'x' is missing/);
    assert.equal(completed(await program.run(inputs)).output.length, 5);
  }
  const whole = await compileForward({
    model: new Mlp(),
    forward,
    inputs: { x: [4, 1] },
    device: 'cpu',
    worker: false,
  });
  await assert.rejects(whole.profile(), /profile: input 'x' is missing\n {2}hint: profile\(/);
  expect_times(await whole.profile({ inputs: { x: new Float32Array(4) } }), await whole.plan());
  assert.equal((await whole.plan()).length, whole.counts.kernels);
  for (const each of [net, train, whole]) each.destroy();
});

// Dropout of a training program draws its numbers by the step.
test('runs draw the random numbers that they would draw without a profile', async () => {
  const outputs = [];
  for (const profiled of [false, true]) {
    const train = await sine();
    const infer = await train.attach({
      forward: (m, { x }) => predict(m, x),
      inputs: { x: [8, 1] },
      training: true,
    });
    const x = Float32Array.from({ length: 8 }, (_, i) => i);
    const all = [];
    for (let i = 0; i < 4; ++i) {
      all.push([...completed(await infer.run({ x })).output]);
      if (profiled && i === 1) await infer.profile({ inputs: { x } });
    }
    outputs.push(all);
    train.destroy();
  }
  assert.deepEqual(outputs[0], outputs[1]);
});

// ---- shaders

for (const worker of [true, false])
  test(`shaders without a GPU, ${worker ? 'from a worker' : 'from this thread'}`, async () => {
    const train = await sine({ worker });
    const before = await train.downloadParams();
    const text = await train.shaders();
    assert.match(text, /@compute/);
    assert.match(text, /^\/\/ matmul .*\[256, 16\]/m);
    assert.ok(text.split('@compute').length > 5);
    assert.notEqual(await train.show('emit'), text); // the CPU's
    assert.deepEqual(await train.downloadParams(), before);
    completed(await train.step(sine_batch(random(7))));
    train.destroy();
  });
