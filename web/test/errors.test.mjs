// What bad calls say: the op, both shapes, and the caller's line.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { tg } from './package.mjs';

const { compile, compileForward, Linear, matmul, mean, Module, ShapeError, TensorgradError } = tg;
const cpu = { device: 'cpu', worker: false };

class Net extends Module {
  fc = new Linear(128, 10);
}
const training = (loss, inputs, options = {}) =>
  compile({
    model: new Net(),
    loss,
    inputs,
    optimizer: { kind: 'adam', lr: 0.01 },
    ...cpu,
    ...options,
  });

// The line of this file that contains the text.
import { readFileSync } from 'node:fs';
const own = readFileSync(new URL(import.meta.url), 'utf8').split('\n');
const line_of = (text) =>
  own.findIndex((line) => line.includes(text) && !line.includes('line_of')) + 1;
const place = (text) => new RegExp(`errors\\.test\\.mjs:${line_of(text)}\\b`);

async function error_of(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('no error');
}

test('a wrong shape: the op, both shapes, the line', async () => {
  const error = await error_of(
    training(
      (m, { x }) => mean(matmul(x, m.fc.W)), // wrong shape here
      { x: [32, 784] },
    ),
  );
  assert.ok(error instanceof ShapeError);
  assert.match(error.message, /^matmul: inner sizes differ/);
  assert.match(error.message, /x f32\[32,784\]/);
  assert.match(error.message, /fc\.W f32\[128,10\]/);
  assert.match(error.message, place('// wrong shape here'));
});

test('an error in a layer has the line of its call', async () => {
  const error = await error_of(
    training(
      (m, { x }) => mean(m.fc.fwd(x)), // wrong layer here
      { x: [32, 784] },
    ),
  );
  assert.ok(error instanceof ShapeError);
  assert.match(error.message, /784/);
  assert.match(error.message, /fc/);
  assert.match(error.message, place('// wrong layer here'));
});

test('an error in a function of JavaScript has the line of its call', async () => {
  const wrong = (m, { x }) => mean(tg.softmaxCausal(x, 3)); // wrong axis here
  const error = await error_of(training(wrong, { x: [4, 4] }));
  assert.ok(error instanceof ShapeError);
  assert.match(error.message, /softmax_causal: axis 3 is out of range for f32\[4,4\]/);
  assert.match(error.message, place('// wrong axis here'));
});

test('the line is known in engines that show less of the stack', async () => {
  const { captureStackTrace } = Error;
  const line_in = async () => {
    const wrong = (m, { x }) => mean(matmul(x, m.fc.W)); // wrong in another engine
    const error = await error_of(training(wrong, { x: [32, 784] }));
    assert.match(error.message, place('// wrong in another engine'));
  };
  try {
    Error.captureStackTrace = undefined;
    await line_in();
    // A text, as in browsers other than Chrome.
    Error.captureStackTrace = (target, above) => {
      const { prepareStackTrace, stackTraceLimit } = Error;
      Error.prepareStackTrace = undefined;
      Error.stackTraceLimit = 10;
      captureStackTrace(target, above);
      target.stack = target.stack.split('\n').slice(1).join('\n');
      Object.assign(Error, { prepareStackTrace, stackTraceLimit });
    };
    await line_in();
  } finally {
    Error.captureStackTrace = captureStackTrace;
  }
});

test('where Node maps lines to sources, the line is that of the source', async () => {
  const program = `
    Error.prepareStackTrace = undefined;
    const { tg } = await import(${JSON.stringify(new URL('./package.mjs', import.meta.url).href)});
    await tg.ready();
    try {
      tg.trace(() => tg.matmul(tg.zeros([32, 784]), tg.zeros([128, 10])));
    } catch (error) {
      console.log(error.message);
    }
    process.exit();`;
  // A map that moves every line down by a hundred.
  const mappings = `AAoGA${';AACA'.repeat(program.split('\n').length)}`;
  const map = { version: 3, sources: ['mapped.ts'], names: [], mappings };
  const comment = Buffer.from(JSON.stringify(map)).toString('base64');
  const folder = await mkdtemp(join(tmpdir(), 'tensorgrad-lines-'));
  try {
    const file = join(folder, 'built.mjs');
    const url = `//# sourceMappingURL=data:application/json;base64,${comment}`;
    await writeFile(file, `${program}\n${url}\n`);
    const run = (...options) => promisify(execFile)(process.execPath, [...options, file]);
    assert.match((await run()).stdout, /built\.mjs:6\b/);
    assert.match((await run('--enable-source-maps')).stdout, /mapped\.ts:106\b/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('an unknown op, and arguments that an op does not have', async () => {
  const unknown = await error_of(
    training((m, { x }) => tg.callOp('sigmoyd', { x })[0], { x: [2] }), // unknown op here
  );
  assert.ok(unknown instanceof ShapeError);
  assert.match(unknown.message, /sigmoyd: there is no op of this name/);
  assert.match(unknown.message, /sigmoid/);
  assert.match(unknown.message, place('// unknown op here'));
  const option = await error_of(
    training((m, { x }) => tg.sum(x, 0, { keepdim: true }), { x: [2] }),
  );
  assert.match(option.message, /sum: there is no parameter 'keepdim'/);
  const many = await error_of(training((m, { x }) => tg.exp(x, 3), { x: [2] }));
  assert.match(many.message, /exp.*argument 2/s);
});

test('operands that are no tensors of this trace', async () => {
  const text = await error_of(training((m, { x }) => mean(tg.add(x, 'one')), { x: [2] }));
  assert.match(text.message, /add: 'b' must be a tensor, a parameter or a number/);
  const stranger = await error_of(
    training((m, { x }) => mean(tg.add(x, new Net().fc.W)), { x: [2] }),
  );
  assert.match(stranger.message, /add: a parameter does not belong to the model/);
  let kept;
  await error_of(training((m, { x }) => ((kept = x), 'no tensor'), { x: [2] }));
  const old = await error_of(training(() => mean(kept), { x: [2] }));
  assert.match(old.message, /mean: a tensor belongs to another trace/);
  assert.throws(() => tg.exp(kept), /exp: ops work only in the function given to compile/);
});

test('functions that return no tensor', async () => {
  const nothing = await error_of(training(() => undefined, { x: [2] }));
  assert.match(
    nothing.message,
    /compile: the function must return a tensor.*it returned undefined/,
  );
  const promise = await error_of(training(async (m, { x }) => mean(x), { x: [2] }));
  assert.match(promise.message, /it returned a promise/);
  const matrix = await error_of(training((m, { x }) => m.fc.fwd(x), { x: [2, 128] }));
  assert.match(matrix.message, /loss.*f32\[2,10\]/s);
});

test('a model without a trained parameter in its loss', async () => {
  const error = await error_of(training((m, { x }) => mean(x), { x: [2] }));
  assert.match(error.message, /the loss does not depend on any trained parameter/);
});

test('names that occur twice', async () => {
  const error = await error_of(
    training(
      (m, { x }) => {
        tg.capture('h', x);
        return mean(tg.capture('h', m.fc.fwd(x)));
      },
      { x: [2, 128] },
    ),
  );
  assert.match(error.message, /the name 'h' is already registered/);
});

for (const worker of [true, false])
  test(`what is fed: ${worker ? 'to a worker' : 'in this thread'}`, async () => {
    const train = await training(
      (m, { x, y }) => tg.crossEntropy(m.fc.fwd(x), y),
      {
        x: [2, 128],
        y: { shape: [2], dtype: 'i32' },
      },
      { worker },
    );
    const x = new Float32Array(256);
    const y = new Int32Array(2);
    const failure = async (feed) => {
      const result = await train.step(feed); // fed here
      assert.equal(result.kind, 'failed');
      assert.ok(result.error instanceof TensorgradError);
      assert.match(result.error.message, place('// fed here'));
      return result.error.message;
    };
    const before = await train.downloadParams();
    assert.match(await failure({ y }), /'x'/); // missing
    const short = await failure({ x: x.subarray(1), y });
    assert.match(short, /'x'|x /);
    assert.match(short, /f32\[2,128\]/);
    assert.match(short, /255/);
    assert.match(await failure({ x, y, z: x }), /'z'/);
    assert.match(
      await failure({ x: y, y }),
      /'x' is f32\[2,128\]: it was given Int32Array\n {2}hint: new Float32Array/,
    );
    assert.match(await failure({ x: new Float64Array(256), y }), /Float64Array/);
    assert.match(await failure({ x: [...x], y }), /it was given Array/);
    assert.match(await failure({ x: null, y }), /it was given null/);
    const detached = new Float32Array(256);
    structuredClone(detached, { transfer: [detached.buffer] });
    assert.match(
      await failure({ x: detached, y }),
      /'x' is f32\[2,128\]: the buffer of its values is detached/,
    );
    const id = await train.step({ x, y: new Int32Array([0, 10]) });
    assert.equal(id.kind, 'failed');
    assert.match(id.error.message, /10/);
    assert.deepEqual(await train.downloadParams(), before);
    assert.equal((await train.step({ x, y })).kind, 'completed');
    train.destroy();
  });

test('specs that are wrong', async () => {
  const loss = (m, { x }) => mean(m.fc.fwd(x));
  const inputs = { x: [2, 128] };
  assert.match(
    (await error_of(compile({ model: new Net(), loss, inputs, ...cpu }))).message,
    /the optimizer is missing/,
  );
  assert.match(
    (await error_of(training(loss, { x: { dtype: 'f32' } }))).message,
    /inputs: 'x' needs a shape/,
  );
  assert.match(
    (await error_of(training(loss, inputs, { precision: 'half' }))).message,
    /precision: 'half' is not available/,
  );
  assert.match((await error_of(training(loss, inputs, { without: ['fusion'] }))).message, /fusion/);
  for (const [optimizer, text] of [
    [{ lr: 1 }, /^optimizer: unknown kind 'undefined'\n {2}hint: \{ kind: 'adam', lr: 0\.001 \}/],
    [{ kind: 'toString', lr: 1 }, /^optimizer: unknown kind 'toString'/],
    [{ kind: 'sgd', lr: 1, beta1: 0.9 }, /^optimizer 'sgd': unknown name 'beta1'\n {2}hint: kind, lr/],
    ['adam', /^optimizer: unknown kind 'undefined'/],
  ])
    assert.match((await error_of(training(loss, inputs, { optimizer }))).message, text);
  for (const [wrong, text] of [
    [{ model: Net }, /^compile: the model is missing, or it is no module\n {2}hint: model: new/],
    [{ loss: 3 }, /^compile: loss must be a function/],
    [{ inputs: undefined }, /^compile: inputs are missing\n {2}hint: inputs: \{ x: \[32, 4\] \}/],
    [{ device: 'gpu' }, /^device: 'gpu' is unknown\n {2}hint: 'auto', 'cpu' or 'webgpu'/],
  ])
    assert.match((await error_of(training(loss, inputs, wrong))).message, text);
  const forward = compileForward({ model: new Net(), inputs, ...cpu });
  assert.match((await error_of(forward)).message, /^compileForward: forward must be a function/);
  const nowhere = await error_of(training(loss, inputs, { device: 'webgpu' }));
  assert.equal(nowhere.kind, 'device');
  assert.match(nowhere.message, /^device 'webgpu': /);
});

test('a call without inputs', async () => {
  const train = await training((m, { x }) => mean(m.fc.fwd(x)), { x: [2, 128] });
  for (const nothing of [undefined, null, {}]) {
    const { error } = await train.step(nothing);
    assert.match(error.message, /'x'.*f32\[2,128\]/);
  }
  const attached = { forward: (m, { x }) => m.fc.fwd(x), inputs: { x: [null, 128] } };
  const infer = await train.attach(attached);
  const { error } = await infer.run();
  assert.match(error.message, /run: input 'x' is missing/);
  assert.match((await error_of(train.attach({ inputs: {} }))).message, /^attach: forward must be/);
  train.destroy();
});

test('names in errors are those of JavaScript', async () => {
  const train = await training((m, { x }) => mean(m.fc.fwd(x)), { x: [2, 128] });
  const { W } = { W: (await train.downloadParams())['fc.W'] };
  const partial = await error_of(train.uploadParams({ 'fc.W': W })); // uploaded here
  assert.match(partial.message, /\{ partial: true \}/);
  assert.doesNotMatch(partial.message, /::|_/);
  assert.match(partial.message, place('// uploaded here'));
  const { error } = await train.step({ x: new Float32Array(256).fill(NaN) });
  assert.match(error.message, /^step 1: /);
  const keep = await error_of(
    training((m, { x }) => tg.callOp('sum', { x, axes: 0, keepdims: 3 })[0], { x: [2, 128] }),
  );
  assert.match(keep.message, /sum/);
  train.destroy();
});

test('parameters that are wrong', () => {
  class Wrong extends Module {
    constructor(shape, options) {
      super();
      this.w = this.param(shape, options);
    }
  }
  assert.throws(
    () => new Wrong([2, -1]),
    /param: a size must be an integer that is not negative: -1, at .*errors\.test/,
  );
  assert.throws(
    () => new Wrong(3),
    /param: a shape must be a list of sizes: 3, at .*errors\.test.*\n {2}hint: this\.param\(\[3, 4\]\)/,
  );
  assert.throws(() => new Wrong([2], { dtype: 'i32' }), /parameters are f32, not i32/);
  assert.throws(
    () => new Wrong([2], { init: tg.init.literal(new Float32Array(3)) }),
    /f32\[2\] needs 2 values: init\.literal has 3/,
  );
});

test('a layer that is wrong', async () => {
  class Wrong extends Module {
    fc = new Linear(0.5, 10); // wrong size here
  }
  const error = await error_of(
    compileForward({ model: new Wrong(), forward: () => tg.zeros([1]), inputs: {}, ...cpu }),
  );
  assert.ok(error instanceof ShapeError);
  assert.match(error.message, /'in' must be an integer/);
  assert.match(error.message, place('// wrong size here'));
});

test('compiling in a traced function is an error', async () => {
  const error = await error_of(
    training(
      (m, { x }) => {
        tg.trace(() => tg.zeros([1]));
        return mean(m.fc.fwd(x));
      },
      { x: [2, 128] },
    ),
  );
  assert.match(error.message, /a trace is under way/);
});
