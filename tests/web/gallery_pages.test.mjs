// A run of each page, in its small version on the CPU, ends with the same weights whether it was closed
// and opened again, moved to another page as a file, or reset.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { contents, open_gallery, place, reached, rows, saved, settled } from './support/gallery.mjs';

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
      return async (query) => {
        const page = await context.newPage();
        await page.goto(`${gallery.origin}${place}${name}/index.html?device=cpu&small&${query}`);
        return page;
      };
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
