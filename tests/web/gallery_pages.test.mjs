// A run of each page, in its small version on the CPU, ends with the same weights whether it was closed
// and opened again, moved to another page as a file, or reset.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { builds } from './support/browser.mjs';
import { contents, open_gallery, reached, rows, saved, settled } from './support/gallery.mjs';

const tool = process.env.TENSORGRAD_TOOL ?? `${builds}/release/bin/tg`;

let gallery;
before(async () => (gallery = await open_gallery()));
after(() => gallery.close());

for (const { name } of rows)
  test(`${name}: closed and opened, saved and loaded, reset`, async (t) => {
    const contexts = [];
    t.after(() => Promise.all(contexts.map((context) => context.close())));
    const visitor = async () => {
      const context = await gallery.browser.newContext();
      contexts.push(context);
      return (query) => gallery.open(name, `device=cpu&small&${query}`, { context });
    };
    const at = async (page, step) => {
      await reached(page, step);
      await settled(page);
      return contents(await saved(page));
    };

    const undisturbed = await visitor();
    const whole = await undisturbed('seed=1&steps=6');
    const expected = await at(whole, 6);
    assert.equal(expected.step, 6);

    const twice = await visitor();
    const first = await twice('seed=1&steps=3');
    await settled(first);
    const file = await saved(first);
    await first.close();
    const second = await twice('steps=3');
    await settled(second, 'asking');
    await second.click('#go-on');
    assert.deepEqual(await at(second, 6), expected, 'closed and opened again');

    const another = await visitor();
    const loads = await another('seed=2&steps=3&paused');
    await settled(loads);
    await loads.setInputFiles('#load', { name: 'mine.safetensors', mimeType: '', buffer: file });
    await at(loads, 3);
    await loads.click('#start');
    assert.deepEqual(await at(loads, 6), expected, 'loaded');

    await whole.click('#reset');
    await whole.waitForFunction(() => document.querySelector('#status').dataset.step === '0');
    await settled(whole);
    await whole.click('#start');
    assert.deepEqual(await at(whole, 6), expected, 'reset');
  });

test('text: a text that is not learned yet changes nothing when the device changes', async (t) => {
  const page = await gallery.open('text', 'device=cpu&small&seed=1&steps=3');
  t.after(() => page.close());
  await settled(page);
  const file = await saved(page);
  await page.fill('#text', 'Another text, with other characters: 0123456789. '.repeat(20));
  await page.selectOption('#device', 'auto'); // there is only a software driver: the CPU again
  assert.equal((await settled(page)).problem, '');
  assert.deepEqual(contents(await saved(page)), contents(file));
  await page.click('#start');
  await reached(page, 6);
  assert.equal((await settled(page)).problem, '');
});

test('text: the command line writes with the file of the page', async (t) => {
  const page = await gallery.open('text', 'device=cpu&small&seed=1&steps=3');
  t.after(() => page.close());
  await settled(page);
  const path = join(gallery.folder, 'text.safetensors');
  await writeFile(path, await saved(page));
  const options = ['--prompt', 'The ', '--tokens', '12', '--device', 'cpu'];
  const { stdout } = await promisify(execFile)(tool, ['generate', path, ...options]);
  assert.match(stdout, /^The [^]{12,}/);
});
