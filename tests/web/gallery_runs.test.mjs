// The frame of the gallery's pages: its controls, and how a run survives. The page is that of the sine.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { builds } from './support/browser.mjs';
import { contents, open_gallery, reached, saved, settled, status } from './support/gallery.mjs';

const tool = process.env.TENSORGRAD_TOOL ?? `${builds}/release/bin/tg`;
const cpu = 'device=cpu&seed=1&small';

let gallery;
before(async () => (gallery = await open_gallery()));
after(() => gallery.close());

// Opens the page of the sine, in a context of its own unless one is given.
async function sine(t, query = cpu, context = undefined) {
  const page = await gallery.open('sine', query, { context });
  if (!context) t.after(() => page.close());
  return page;
}
async function shared(t) {
  const context = await gallery.browser.newContext();
  t.after(() => context.close());
  return context;
}
const press = (page, id) => page.click(`#${id}`);
const show_as = (page, state) =>
  page.evaluate((state) => {
    Object.defineProperty(document, 'hidden', { value: state === 'hidden', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, state);

// A run of so many steps that nothing interrupts.
const whole = new Map();
async function run_of(t, steps) {
  if (!whole.has(steps)) {
    const page = await sine(t, `${cpu}&steps=${steps}`);
    const { loss } = await settled(page);
    whole.set(steps, { loss, ...contents(await saved(page)) });
  }
  return whole.get(steps);
}

test('pause, and go on', async (t) => {
  const page = await sine(t);
  await reached(page, 3);
  assert.equal(await page.textContent('#start'), 'Pause');
  await press(page, 'start');
  const { step } = await settled(page);
  assert.equal(await page.textContent('#start'), 'Start');
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
  assert.equal((await status(page)).step, step);
  await press(page, 'start');
  await reached(page, step + 3);
});

test('?steps pauses again and again, ?paused before the first step', async (t) => {
  const page = await sine(t, `${cpu}&steps=5&paused`);
  assert.equal((await settled(page)).step, 0);
  for (const step of [5, 10]) {
    await press(page, 'start');
    await reached(page, step);
    assert.equal((await settled(page)).step, step);
  }
});

test('reset starts again with the same weights, while it runs and while it is paused', async (t) => {
  const { loss, tensors } = await run_of(t, 10);
  const page = await sine(t, `${cpu}&steps=10`);
  await settled(page);
  await press(page, 'reset');
  await page.waitForFunction(() => document.querySelector('#status').dataset.step === '0');
  await settled(page);
  await press(page, 'start');
  await reached(page, 10);
  assert.equal((await settled(page)).loss, loss);
  assert.deepEqual(contents(await saved(page)).tensors, tensors);

  const running = await sine(t, `${cpu}&steps=100000`);
  await reached(running, 20);
  await press(running, 'reset');
  await running.waitForFunction(() => Number(document.querySelector('#status').dataset.step) < 20);
  assert.equal((await status(running)).state, 'running');
});

test('without ?seed, a reset gives other weights', async (t) => {
  const page = await sine(t, 'device=cpu&small&steps=1');
  const first = await settled(page);
  await press(page, 'reset');
  await settled(page);
  await press(page, 'start');
  await reached(page, 1);
  assert.notEqual((await settled(page)).loss, first.loss);
});

test('the learning rate changes what steps do', async (t) => {
  const { tensors } = await run_of(t, 10);
  const page = await sine(t, `${cpu}&steps=10&paused`);
  const { rate } = await settled(page);
  await page.fill('#rate', '-1');
  assert.ok(Math.abs((await status(page)).rate - rate / 10) < 1e-9);
  assert.equal(await page.textContent('#rate-value'), '0.0005');
  await press(page, 'start');
  await reached(page, 10);
  await settled(page);
  assert.notDeepEqual(contents(await saved(page)).tensors, tensors);
});

test('a file goes on in another page, and natively', async (t) => {
  const first = await sine(t, `${cpu}&steps=10`);
  const { step } = await settled(first);
  const file = await saved(first);
  assert.equal(contents(file).step, step);

  const second = await sine(t, `device=cpu&small&seed=2&steps=10&paused`);
  await settled(second);
  const upload = { name: 'mine.safetensors', mimeType: '', buffer: file };
  await second.setInputFiles('#load', upload);
  await reached(second, 10);
  const { note } = await settled(second);
  assert.match(note, /mine\.safetensors: step 10/);
  assert.deepEqual(contents(await saved(second)), contents(file));
  await press(second, 'start');
  await reached(second, 20);
  const { loss } = await settled(second);
  const expected = await run_of(t, 20);
  assert.equal(loss, expected.loss);
  assert.deepEqual(contents(await saved(second)).tensors, expected.tensors);

  const path = join(gallery.folder, 'mine.safetensors');
  await writeFile(path, file);
  const { stdout } = await promisify(execFile)(tool, ['inspect', path]);
  assert.match(stdout, /l2\.W/);
  assert.match(stdout, /step\D+10\b/);
});

test('a wrong file is an error that loses nothing', async (t) => {
  const page = await sine(t, `${cpu}&steps=10`);
  await settled(page);
  for (const text of ['this is no model', '']) {
    const buffer = Buffer.from(text);
    await page.setInputFiles('#load', { name: 'wrong.txt', mimeType: '', buffer });
    await page.waitForFunction(() => document.querySelector('#problem').textContent !== '');
    const { problem, step } = await settled(page);
    assert.match(problem, /^wrong\.txt could not be loaded\. ./);
    assert.equal(step, 10);
  }
  assert.deepEqual(contents(await saved(page)).tensors, (await run_of(t, 10)).tensors);
  await press(page, 'start');
  await reached(page, 20);
  const { loss, problem } = await settled(page);
  assert.equal(problem, '');
  assert.equal(loss, (await run_of(t, 20)).loss);
});

test('a page that is closed and opened again offers to go on', async (t) => {
  const context = await shared(t);
  const first = await sine(t, `${cpu}&steps=10`, context);
  await settled(first);
  await first.close();
  // It has another seed and rate in its URL; those of the run count.
  const page = await sine(t, `device=cpu&small&seed=5&steps=10`, context);
  const { step } = await settled(page, 'asking');
  assert.equal(step, 10);
  assert.equal(await page.textContent('#asked'), 'You trained this page for 10 steps.');
  await press(page, 'go-on');
  await reached(page, 20);
  const { loss } = await settled(page);
  const expected = await run_of(t, 20);
  assert.equal(loss, expected.loss);
  assert.deepEqual(contents(await saved(page)), { step: 20, tensors: expected.tensors });
  assert.ok(!(await page.isVisible('#question')));
});

test('a run that goes on is stored while it runs', async (t) => {
  const context = await shared(t);
  const first = await sine(t, `${cpu}&steps=3`, context);
  await settled(first);
  await first.close();
  await context.addInitScript(() => {
    const now = performance.now.bind(performance);
    performance.now = () => 100 * now(); // ten seconds pass in 0.1 s
  });
  const page = await sine(t, cpu, context);
  await settled(page, 'asking');
  await press(page, 'go-on');
  const stored_step = () =>
    page.evaluate(async () => {
      const { stored } = await import(new URL('../kit/storage.js', location).href);
      return (await stored('sine small')).step;
    });
  assert.equal(await stored_step(), 3);
  const { step } = await reached(page, 60); // a round takes 16 ms at least
  while ((await stored_step()) === 3) assert.ok((await status(page)).step < step + 600, 'not stored');
  assert.equal((await status(page)).state, 'running');
});

for (const button of ['afresh', 'reset'])
  test(`a stored run can be left: ${button}`, async (t) => {
    const context = await shared(t);
    await settled(await sine(t, `${cpu}&steps=10`, context));
    const page = await sine(t, `${cpu}&steps=5`, context);
    await settled(page, 'asking');
    await press(page, button);
    const { step, loss } = await settled(page);
    assert.equal(step, 5);
    assert.equal(loss, (await run_of(t, 5)).loss);
  });

test('a stored run of another model is dropped, and the page says so', async (t) => {
  const context = await shared(t);
  const first = await sine(t, `${cpu}&steps=3`, context);
  await settled(first);
  for (const checkpoint of ['none', 'another']) {
    await first.evaluate(async (kind) => {
      const { store } = await import(new URL('../kit/storage.js', location).href);
      const checkpoint = kind === 'none' ? undefined : new Uint8Array([2, 0, 0, 0, 0, 0, 0, 0, 123, 125]);
      await store('sine small', { step: 7, checkpoint });
    }, checkpoint);
    const page = await sine(t, `${cpu}&steps=5`, context);
    const { step, note, loss } = await settled(page);
    assert.equal(step, 5);
    assert.match(note, /stored run was dropped/);
    assert.equal(loss, (await run_of(t, 5)).loss);
    await page.close();
  }
});

test('a browser that stores nothing', async (t) => {
  const context = await shared(t);
  await context.addInitScript(() => {
    const refuse = () => {
      throw new DOMException('denied', 'SecurityError');
    };
    Object.defineProperty(window, 'indexedDB', { get: refuse });
    Object.defineProperty(window, 'localStorage', { get: refuse });
  });
  const page = await sine(t, `${cpu}&steps=5`, context);
  const { step, note } = await settled(page);
  assert.equal(step, 5);
  assert.match(note, /does not store this run/);
});

test('a page in the background makes no steps, and is stored', async (t) => {
  const context = await shared(t);
  const page = await sine(t, `${cpu}&steps=100000`, context);
  await reached(page, 3);
  await show_as(page, 'hidden');
  const { step } = await settled(page, 'hidden');
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
  assert.equal((await status(page)).step, step);
  const again = await sine(t, cpu, context);
  assert.equal((await settled(again, 'asking')).step, step);
  await again.close();
  await show_as(page, 'visible');
  await reached(page, step + 3);
});

test('another device, while it runs: the weights go with it', async (t) => {
  const page = await sine(t, `device=cpu&seed=1&small&steps=20&paused`);
  await settled(page);
  await press(page, 'start');
  await page.selectOption('#device', 'auto'); // there is only a software driver: the CPU again
  await reached(page, 20);
  const { device, where } = await settled(page);
  assert.equal(device, 'cpu');
  assert.match(where, /^CPU, 1 thread\. .*software/);
  assert.deepEqual(contents(await saved(page)).tensors, (await run_of(t, 20)).tensors);
});

// The parameters of a checkpoint as a file that says nothing about steps.
function parameters_of(file) {
  const parts = [];
  const header = {};
  const start = 8 + Number(file.readBigUInt64LE(0));
  let at = 0;
  for (const [name, tensor] of Object.entries(JSON.parse(file.subarray(8, start).toString()))) {
    if (!/^l\d\./.test(name)) continue;
    const [from, to] = tensor.data_offsets;
    parts.push(file.subarray(start + from, start + to));
    header[name] = { ...tensor, data_offsets: [at, (at += to - from)] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([size, text, ...parts]);
}

test('another device takes the weights of a file along that has no steps', async (t) => {
  const first = await sine(t, `${cpu}&steps=5`);
  await settled(first);
  const buffer = parameters_of(await saved(first));
  const page = await sine(t, `device=cpu&small&seed=2&paused`);
  await settled(page);
  await page.setInputFiles('#load', { name: 'weights.safetensors', mimeType: '', buffer });
  await page.waitForFunction(() => /weights/.test(document.querySelector('#note').textContent));
  await settled(page);
  await page.selectOption('#device', 'auto'); // there is only a software driver: the CPU again
  await page.waitForFunction(() => /software/.test(document.querySelector('#where').textContent));
  await settled(page);
  const { tensors } = await run_of(t, 5);
  const moved = contents(await saved(page)).tensors;
  for (const name of ['l1.W', 'l2.W', 'l3.b']) assert.equal(moved[name], tensors[name], name);
});

test('a step that fails stops the page, which can go on', async (t) => {
  const page = await sine(t, `${cpu}&steps=5`);
  const { loss } = await settled(page);
  await page.evaluate(() => {
    globalThis.sine = Math.sin;
    Math.sin = () => NaN;
  });
  await press(page, 'start');
  await page.waitForFunction(() => document.querySelector('#status').dataset.state === 'failed');
  const failed = await settled(page, 'failed');
  assert.match(failed.problem, /NaN/);
  assert.equal(failed.step, 6); // the library counts it
  assert.equal(failed.loss, loss);
  await page.evaluate(() => (Math.sin = globalThis.sine));
  await press(page, 'start');
  await reached(page, 10);
  assert.equal((await settled(page)).problem, '');
});

test('a batch that fails is no step', async (t) => {
  const page = await sine(t, `${cpu}&steps=5`);
  await settled(page);
  await page.evaluate(() => {
    globalThis.sine = Math.sin;
    Math.sin = () => {
      throw new Error('no sine today');
    };
  });
  await press(page, 'start');
  await page.waitForFunction(() => document.querySelector('#status').dataset.state === 'failed');
  const { problem, step } = await settled(page, 'failed');
  assert.equal(problem, 'no sine today');
  assert.equal(step, 5);
  await page.evaluate(() => (Math.sin = globalThis.sine));
  await press(page, 'start');
  await reached(page, 10);
  await settled(page);
  assert.deepEqual(contents(await saved(page)).tensors, (await run_of(t, 10)).tensors);
});

test('the keyboard is enough', async (t) => {
  const page = await sine(t);
  await reached(page, 1);
  const focused = () => page.evaluate(() => document.activeElement.id);
  const tab_to = async (id) => {
    for (let i = 0; i < 30 && (await focused()) !== id; ++i) await page.keyboard.press('Tab');
    assert.equal(await focused(), id);
  };
  await tab_to('start');
  await page.keyboard.press('Space');
  await settled(page);
  await tab_to('rate');
  const { rate } = await status(page);
  await page.keyboard.press('ArrowLeft');
  assert.ok((await status(page)).rate < rate);
  await tab_to('device');
  await tab_to('save');
  const download = page.waitForEvent('download');
  await page.keyboard.press('Enter');
  assert.equal((await download).suggestedFilename(), 'sine.safetensors');
  await tab_to('load');
  for (let i = 0; i < 30 && (await focused()) !== 'reset'; ++i) await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#status').dataset.step === '0');
});

for (const [gpu, text] of [
  ['software', /^CPU, 1 thread\. WebGPU found a software adapter/],
  ['no-adapter', /^CPU, 1 thread\. WebGPU found no GPU\./],
])
  test(`why the GPU is not used: ${gpu}`, async (t) => {
    const other = gpu === 'software' ? gallery : await open_gallery({ gpu });
    const page = await other.open('sine', 'small&seed=1&steps=2');
    assert.match((await settled(page)).where, text);
    await (other === gallery ? page : other).close();
  });

test('a GPU that cannot be had is an error; the page can still go to the CPU', async (t) => {
  const other = await open_gallery({ gpu: 'no-adapter' });
  t.after(() => other.close());
  const page = await other.open('sine', 'device=webgpu&small&seed=1&steps=5');
  const { problem } = await settled(page, 'failed');
  assert.match(problem, /GPU/);
  assert.ok(await page.isDisabled('#load'), 'there is no model');
  await page.selectOption('#device', 'cpu');
  assert.equal((await settled(page)).loss, (await run_of(t, 5)).loss);
  // A device that cannot be had leaves the run as it was.
  await page.selectOption('#device', 'webgpu');
  await page.waitForFunction(() => document.querySelector('#problem').textContent !== '');
  await settled(page);
  assert.equal(await page.inputValue('#device'), 'cpu');
  await page.click('#start');
  await reached(page, 10);
  assert.equal((await settled(page)).loss, (await run_of(t, 10)).loss);
});

test('drawings follow dark and light, also while it is paused', async (t) => {
  const page = await sine(t, `${cpu}&steps=5`);
  await settled(page);
  const drawing = () => page.evaluate(() => document.querySelector('#fit').toDataURL());
  const light = await drawing();
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForFunction((light) => document.querySelector('#fit').toDataURL() !== light, light);
  await settled(page);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.waitForFunction((light) => document.querySelector('#fit').toDataURL() === light, light);
});

test('the source of the page is beside it', async (t) => {
  const page = await sine(t, `${cpu}&paused`);
  await settled(page);
  await page.click('#source summary');
  await page.waitForFunction(() => document.querySelectorAll('#source .line').length > 10);
  const marked = await page.evaluate(async () => {
    const { markLine } = await import(new URL('../kit/source.js', location).href);
    return [await markLine('http://localhost/sine/page.js', 1), await markLine('other.js', 1)];
  });
  assert.deepEqual(marked, [true, false]);
  assert.match(await page.textContent('.line.marked'), /^\/\/ A perceptron/);
});
