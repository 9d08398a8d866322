// Tokenizers, and language models on text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tg } from './package.mjs';

const { TextGenerator, TextTrainer, Tokenizer } = tg;
const text = 'the cat sat on the mat. the dog sat on the log. '.repeat(60);
const model = { kind: 'gpt', dim: 32, layers: 1, heads: 2, context: 32 };
const training = { steps: 60, batch: 4, lr: 0.01, seed: 3 };

test('tokenizers: text to ids and back', async () => {
  const bytes = await Tokenizer.bytes();
  assert.equal(bytes.kind, 'bytes');
  assert.equal(bytes.vocabSize, 256);
  assert.deepEqual([...bytes.encode('hé')], [104, 195, 169]);
  assert.equal(bytes.decode([104, 195, 169]), 'hé');
  assert.deepEqual([...bytes.decodeBytes([195])], [195]);
  assert.equal(bytes.decode([195]), '\uFFFD');
  assert.deepEqual([...bytes.encode('')], []);

  const characters = await Tokenizer.characters('abé');
  assert.equal(characters.decode(characters.encode('béa')), 'béa');

  const learned = await Tokenizer.train(text, { vocab: 270, special: ['<end>'] });
  assert.equal(learned.vocabSize, 270);
  const ids = learned.encode(`${text}<end>`);
  assert.ok(ids.length < text.length / 2);
  assert.equal(learned.decode(ids), `${text}<end>`);
  const again = await Tokenizer.fromJSON(learned.toJSON());
  assert.deepEqual(again.encode(text), learned.encode(text));

  // GPT-2 writes bytes as printable characters.
  const printable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  const bytes_as_text = Array.from({ length: 256 }, (_, byte) => byte);
  let next = 256;
  const letters = bytes_as_text.map((byte) =>
    String.fromCodePoint(printable(byte) ? byte : next++),
  );
  const vocab = Object.fromEntries([...letters, 'ab'].map((letter, id) => [letter, id]));
  const bpe = await Tokenizer.bpe({ vocab: JSON.stringify(vocab), merges: 'a b\n' });
  assert.deepEqual([...bpe.encode('abba')], [256, 98, 97]);
  await assert.rejects(Tokenizer.bpe({ vocab: 'no json', merges: '' }), tg.TensorgradError);
});

for (const worker of [true, false])
  test(`a language model learns a text, ${worker ? 'in a worker' : 'in this thread'}`, async () => {
    const tokenizer = await Tokenizer.characters(text);
    const trainer = await TextTrainer.create({
      text,
      tokenizer,
      model,
      training,
      device: 'cpu',
      worker,
    });
    assert.ok(trainer.parameterCount > 1000);
    assert.equal(trainer.config.dim, 32);
    const losses = [];
    for (let i = 0; i < 60; ++i) {
      const step = await trainer.step();
      if (step.kind === 'failed') throw step.error;
      assert.equal(step.step, i + 1);
      losses.push(step.loss);
    }
    assert.ok(losses[0] > 2 && losses.at(-1) < 0.8, `${losses[0]} -> ${losses.at(-1)}`);
    const found = await trainer.validate();
    assert.ok(found.loss < 1 && found.perplexity > 1 && found.bitsPerByte > 0);

    const pieces = [];
    const options = { tokens: 40, temperature: 0 };
    const written = await trainer.generate('the cat', options, (piece) => pieces.push(piece));
    assert.equal(pieces.join(''), written);
    assert.ok(pieces.length > 1);
    assert.match(written, /sat on the/);

    const generator = await TextGenerator.create(await trainer.save(), { device: 'cpu', worker });
    assert.equal(await generator.generate('the cat', options), written);
    const more = await generator.generate(' ', options);
    await generator.forget();
    assert.equal(await generator.generate('the cat', options), written);
    assert.equal(await generator.generate(' ', options), more);

    const unfinished = generator.generate('the dog', { tokens: 100000 }, () => generator.stop());
    assert.ok((await unfinished).length < 1000);
    trainer.destroy();
    generator.destroy();
    assert.equal((await trainer.step()).kind, 'aborted');
  });

test('a trainer that continues from a checkpoint has the weights of one that went on', async () => {
  const tokenizer = await Tokenizer.bytes();
  const spec = {
    text,
    tokenizer,
    model: { ...model, kind: 'mamba', state: 4 },
    training,
    device: 'cpu',
    worker: false,
  };
  const whole = await TextTrainer.create(spec);
  for (let i = 0; i < 6; ++i) await whole.step();
  const first = await TextTrainer.create(spec);
  for (let i = 0; i < 3; ++i) await first.step();
  const second = await TextTrainer.create(spec);
  await second.load(await first.save());
  for (let i = 0; i < 3; ++i) await second.step();
  assert.deepEqual(await second.save(), await whole.save());
  for (const trainer of [whole, first, second]) trainer.destroy();
});

test('the learning rate of a trainer may be set', async () => {
  const tokenizer = await Tokenizer.bytes();
  const spec = { text, tokenizer, model, training, device: 'cpu', worker: false };
  const trainer = await TextTrainer.create(spec);
  const rates = async (steps) => {
    const all = [];
    for (let i = 0; i < steps; ++i) all.push((await trainer.step()).lr);
    return all;
  };
  await rates(2);
  await trainer.setLR(0.003);
  assert.deepEqual(await rates(2), [0.003, 0.003]);
  void trainer.setLR(tg.lr.linear({ peak: 0.04, final: 0, steps: 4 })); // in the order of the calls
  assert.deepEqual(await rates(2), [0.04, 0.03]);
  const checkpoint = await trainer.save();
  const after = await rates(1);
  await trainer.load(checkpoint); // the schedule goes on where it was
  assert.deepEqual(await rates(1), after);
  await assert.rejects(
    trainer.setLR(() => 0.1),
    /a text model takes a number/,
  );
  await assert.rejects(trainer.setLR(-1), /lr: a rate must be/);
  trainer.destroy();
});

test('a trainer and a generator recover from a lost device', async () => {
  const tokenizer = await Tokenizer.bytes();
  const spec = { text, tokenizer, model, training, device: 'cpu', snapshotEvery: 4 };
  const bytes = async (lose) => {
    const trainer = await TextTrainer.create(spec);
    for (let i = 0; i < 14; ++i) {
      // Once before the first snapshot, once after it.
      if (i === 1) await trainer.setLR(0.02);
      if (i === 6) await trainer.setLR(tg.lr.linear({ peak: 0.02, final: 0, steps: 8 }));
      if (lose && i % 5 === 2) trainer.loseDevice();
      assert.equal((await trainer.step()).kind, 'completed');
    }
    const saved = await trainer.save();
    trainer.destroy();
    return saved;
  };
  const whole = await bytes(false);
  assert.deepEqual(await bytes(true), whole);

  const write = async (lose) => {
    const generator = await TextGenerator.create(whole, { device: 'cpu', snapshotEvery: 1 });
    const pieces = [];
    const options = { tokens: 20, temperature: 0.5, seed: 2 };
    const first = await generator.generate('the', options, (piece) => pieces.push(piece));
    if (lose) generator.loseDevice();
    const second = generator.generate(' and', options, (piece) => {
      pieces.push(piece);
      if (lose && pieces.length === 25) generator.loseDevice();
    });
    const texts = [first, await second];
    generator.destroy();
    assert.equal(pieces.join(''), texts.join(''));
    return texts;
  };
  assert.deepEqual(await write(true), await write(false));
});

test('what is wrong with a text model', async () => {
  const tokenizer = await Tokenizer.bytes();
  const create = (options) =>
    TextTrainer.create({ text, tokenizer, device: 'cpu', worker: false, ...options });
  await assert.rejects(create({ model: { kind: 'rnn' } }), /rnn/);
  await assert.rejects(create({ model: { width: 3 } }), /width/);
  await assert.rejects(create({ text: 'short' }), tg.TensorgradError);
  await assert.rejects(
    TextGenerator.create(new Uint8Array(20), { device: 'cpu' }),
    tg.TensorgradError,
  );
});

test('a model of bytes writes anything, and its pieces are its text', async () => {
  const tokenizer = await Tokenizer.bytes();
  const trainer = await TextTrainer.create({
    text: 'abc\n'.repeat(200),
    tokenizer,
    model: { kind: 'gpt', dim: 8, layers: 1, heads: 1, context: 16 },
    training: { steps: 1, batch: 1 },
    device: 'cpu',
  });
  const generator = await TextGenerator.create(await trainer.save(), { device: 'cpu' });
  let all = '';
  for (let seed = 0; seed < 8; ++seed) {
    const pieces = [];
    const options = { tokens: 60, temperature: 2, seed };
    const text = await generator.generate('a', options, (piece) => pieces.push(piece));
    assert.equal(pieces.join(''), text);
    all += text;
  }
  assert.ok(all.includes('\ufffd'), 'it wrote no byte that is not UTF-8');
  assert.ok(all.includes('\0'), 'it wrote no NUL');
  trainer.destroy();
  generator.destroy();
});

test('a trainer shows its step, and a profile changes nothing', async () => {
  const results = [];
  for (const profiled of [false, true]) {
    const trainer = await TextTrainer.create({
      text,
      tokenizer: await Tokenizer.characters(text),
      model,
      training: { ...training, accumulate: 2 },
      device: 'cpu',
      worker: false,
    });
    const losses = [];
    for (let i = 0; i < 6; ++i) {
      const step = trainer.step();
      if (profiled && i === 3) {
        await trainer.setLR(0.02);
        const times = await trainer.profile({ steps: 2 });
        const plan = await trainer.plan();
        assert.equal(times.length, plan.length);
        assert.equal(plan.length, trainer.counts.kernels);
        assert.match(await trainer.show('plan'), /matmul/);
        const shaders = await trainer.shaders();
        assert.match(shaders, /@compute/);
        await assert.rejects(trainer.show('fused'), /show: there is no stage 'fused'/);
        await assert.rejects(trainer.profile({ steps: 0 }), /profile: at least one step: 0/);
      } else if (i === 3) {
        await trainer.setLR(0.02);
      }
      losses.push((await step).loss);
    }
    results.push({ losses, file: Buffer.from(await trainer.save()).toString('hex') });
    trainer.destroy();
  }
  assert.deepEqual(results[0], results[1]);
});
