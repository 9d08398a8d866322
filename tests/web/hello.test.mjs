// web/hello.html, as ./tg web serves it, and as ./tg web --out writes it for any web server.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { open_browser, package_folder, root } from './support/browser.mjs';

async function watch_it_learn(page) {
  await page.waitForFunction(() => /step 3,000/.test(document.querySelector('#status').textContent));
  const status = await page.textContent('#status');
  const loss = Number(/loss ([0-9.e-]+)/.exec(status)[1]);
  assert.ok(loss < 0.003, status);
  assert.equal(await page.textContent('#problem'), '');
  for (const chart of ['#loss', '#fit']) {
    const points = await page.getAttribute(`${chart} .model`, 'd');
    assert.ok(points.split('L').length > 100, chart);
    assert.doesNotMatch(points, /NaN|Infinity/);
  }
}

async function open(t, options) {
  const browser = await open_browser(options);
  t.after(() => browser.close());
  return browser;
}

test('the page trains, on a phone and on a desk', async (t) => {
  const browser = await open(t, { folders: { '/': `${root}web` } });
  for (const [width, colorScheme] of [[360, 'dark'], [1280, 'light']]) {
    const page = await browser.open('/hello.html', { viewport: { width, height: 800 }, colorScheme });
    await watch_it_learn(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await page.close();
  }
});

test('it starts again, and pauses', async (t) => {
  const browser = await open(t, { folders: { '/': `${root}web` } });
  const page = await browser.open('/hello.html');
  await watch_it_learn(page);
  await page.click('#again');
  await page.waitForFunction(() => !/step 3,000/.test(document.querySelector('#status').textContent));
  await page.click('#pause');
  assert.equal(await page.textContent('#pause'), 'Go on');
  await page.click('#pause');
  await watch_it_learn(page);
});

test('its files work in any folder of any server, without a GPU', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tensorgrad-out-'));
  t.after(() => rm(folder, { recursive: true }));
  const publish = [`${root}web/publish.mjs`, 'out', package_folder, folder];
  await promisify(execFile)(process.execPath, publish);
  const browser = await open(t, {
    folders: { '/some/where/': folder },
    isolated: false,
    webgpu: false,
  });
  const page = await browser.open('/some/where/');
  await watch_it_learn(page);
  assert.match(await page.textContent('#device'), /^It trains on the CPU\. .*WebGPU/);
});
