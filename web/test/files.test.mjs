// Files as bytes: checkpoints and safetensors.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { random, repository, sine_batch, tg } from './package.mjs';

const {
  compile,
  Linear,
  loadSafetensors,
  mean,
  Module,
  readCheckpoint,
  relu,
  saveSafetensors,
  square,
  sub,
} = tg;

class Mlp extends Module {
  l1 = new Linear(1, 16);
  l2 = new Linear(16, 1);
}
const predict = (m, x) => m.l2.fwd(relu(m.l1.fwd(x)));
const spec = (options = {}) => ({
  model: new Mlp(),
  loss: (m, { x, y }) => mean(square(sub(predict(m, x), y))),
  inputs: { x: [32, 1], y: [32, 1] },
  optimizer: { kind: 'adam', lr: 0.01 },
  seed: 1,
  device: 'cpu',
  ...options,
});

test('a run that continues from a checkpoint has the weights of one that went on', async () => {
  const next = random(3);
  const batches = Array.from({ length: 20 }, () => sine_batch(next, 32));
  const whole = await compile(spec());
  for (const batch of batches) await whole.step(batch);
  const first = await compile(spec());
  for (const batch of batches.slice(0, 10)) await first.step(batch);
  const bytes = await first.save({ more: { note: 'half' } });
  assert.ok(bytes instanceof Uint8Array);
  const second = await compile(spec({ worker: false }));
  const info = await second.load(bytes);
  assert.equal(info.step, 10);
  assert.equal(info.seed, 1);
  assert.deepEqual(info.more, { note: 'half' });
  assert.ok(bytes.length > 0); // load() took a copy
  for (const batch of batches.slice(10)) await second.step(batch);
  assert.deepEqual(await second.downloadParams(), await whole.downloadParams());
  assert.deepEqual(await second.save(), await whole.save());
  const contents = await readCheckpoint(bytes);
  assert.deepEqual(contents.parameters, await first.downloadParams());
  assert.deepEqual(contents.shapes['l1.W'], [1, 16]);
  for (const handle of [whole, first, second]) handle.destroy();
});

test('parameters alone, and files of another model', async () => {
  const train = await compile(spec());
  const params = await train.downloadParams();
  const bytes = await train.save({ optimizer: false });
  const { tensors, shapes } = loadSafetensors(bytes);
  assert.deepEqual(tensors, params);
  assert.deepEqual(shapes['l2.W'], [16, 1]);
  const net = await tg.compileForward({
    ...{ model: new Mlp(), forward: (m, { x }) => predict(m, x), inputs: { x: [2, 1] }, seed: 7 },
    device: 'cpu',
  });
  assert.notDeepEqual(await net.downloadParams(), params);
  await net.load(bytes);
  assert.deepEqual(await net.downloadParams(), params);
  await net.load(saveSafetensors(params, { shapes }));
  await assert.rejects(
    net.load(saveSafetensors({ other: new Float32Array(3) }), 'other.safetensors'),
    /l1\.W|other/,
  );
  assert.deepEqual(await net.downloadParams(), params);
  train.destroy();
  net.destroy();
});

test('damaged checkpoints are errors', async () => {
  const train = await compile(spec());
  await train.step(sine_batch(random(3), 32));
  const bytes = await train.save();
  const params = await train.downloadParams();
  const damaged = bytes.slice();
  damaged[damaged.length - 3] ^= 1;
  await assert.rejects(train.load(damaged, 'my.safetensors'), /my\.safetensors/);
  await assert.rejects(train.load(bytes.slice(0, 100), 'my.safetensors'), /my\.safetensors/);
  await assert.rejects(readCheckpoint(damaged, 'my.safetensors'), /my\.safetensors/);
  assert.deepEqual(await train.downloadParams(), params);
  train.destroy();
});

test('safetensors there and back', () => {
  const tensors = { b: new Float32Array([1, 2, 3]), a: new Float32Array([4, 5, 6, 7]) };
  const bytes = saveSafetensors(tensors, { shapes: { a: [2, 2] }, metadata: { by: 'me' } });
  const read = loadSafetensors(bytes);
  assert.deepEqual(read.tensors, tensors);
  assert.deepEqual(read.shapes, { a: [2, 2], b: [3] });
  assert.deepEqual(read.metadata, { by: 'me' });
  assert.deepEqual(loadSafetensors(bytes.buffer).tensors, tensors);
  assert.throws(
    () => saveSafetensors(tensors, { shapes: { a: [3] } }),
    /'a' has 4 values: f32\[3\] needs 3/,
  );
  assert.throws(() => loadSafetensors(bytes.slice(0, 40)), /exceeds buffer/);
  assert.throws(() => loadSafetensors(bytes.slice(0, -2)), /outside of the file/);
});

// The command line tool of the native build, if there is one.
const tool = process.env.TENSORGRAD_TOOL ?? join(repository, 'build/release/bin/tg');

test(
  'the command line tool reads a checkpoint of the package',
  { skip: !existsSync(tool) && 'no native build' },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-'));
    try {
      const train = await compile(spec());
      for (let i = 0; i < 3; ++i) await train.step(sine_batch(random(i), 32));
      const file = join(folder, 'model.safetensors');
      writeFileSync(file, await train.save());
      const text = execFileSync(tool, ['inspect', file], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      assert.match(text, /l1\.W/);
      train.destroy();
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

test(
  'a text model goes from the tool to the package and back',
  { skip: !existsSync(tool) && 'no native build' },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-'));
    const tg_tool = (...args) =>
      execFileSync(tool, args, {
        encoding: 'utf8',
        cwd: folder,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
    try {
      const text = 'the cat sat on the mat. the dog sat on the log. '.repeat(60);
      writeFileSync(join(folder, 'text.txt'), text);
      const sizes = ['--dim', '16', '--layers', '1', '--heads', '2', '--context', '32'];
      tg_tool(
        'train',
        'text',
        'text.txt',
        '--out',
        'run',
        '--steps',
        '20',
        '--batch',
        '2',
        ...sizes,
        '--device',
        'cpu',
      );
      const files = execFileSync('find', [folder, '-name', '*.safetensors'], { encoding: 'utf8' })
        .trim()
        .split('\n')
        .sort();
      const generator = await tg.TextGenerator.create(readFileSync(files.at(-1)), {
        device: 'cpu',
      });
      const written = await generator.generate('the cat', { tokens: 20, temperature: 0 });
      const native = tg_tool(
        'generate',
        'run',
        '--prompt',
        'the cat',
        '--tokens',
        '20',
        '--temperature',
        '0',
        '--device',
        'cpu',
      );
      assert.ok(written.trim().length > 10, written);
      assert.ok(
        native.includes(written.trim()),
        `${JSON.stringify(native)} and ${JSON.stringify(written)}`,
      );
      generator.destroy();
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
