// The pages of web/gallery in a browser, and what the tests ask of each: a row for each page.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { make_site } from '../../../web/site.mjs';
import { open_browser, package_folder } from './browser.mjs';

/**
 * cpu: after so many steps on the CPU, with seed 1, the loss is below `loss`, and the score is at
 * least `score`. gpu: of the small version, so many steps on SwiftShader have the losses of the CPU,
 * which differ by `tolerance` of their size at most (1e-4), or by 1e-6.
 */
export const rows = [
  { name: 'sine', cpu: { steps: 400, loss: 1e-3 }, gpu: { steps: 3 } },
  { name: 'xor', cpu: { steps: 9000, loss: 0.1, score: 1 }, gpu: { steps: 3 } },
  { name: 'addition', cpu: { steps: 1800, loss: 0.05, score: 0.99 }, gpu: { steps: 3 } },
  { name: 'text', cpu: { steps: 300, loss: 0.8 }, gpu: { steps: 3 } },
  { name: 'digits', cpu: { steps: 200, loss: 0.6, score: 0.93 }, gpu: { steps: 3 } },
  { name: 'vae', cpu: { steps: 400, loss: 200 }, gpu: { steps: 3 } },
  { name: 'classifier', cpu: { steps: 600, loss: 0.1, score: 0.98 }, gpu: { steps: 3 } },
  // The loss of a policy gradient need not fall; the score is the mean length of an episode.
  { name: 'cartpole', cpu: { steps: 180, score: 150 }, gpu: { steps: 3 } },
  { name: 'flow', cpu: { steps: 600, loss: 1.5 }, gpu: { steps: 3 } },
];

/** Where the site lies on the server: not at its root, because links must work in any folder. */
export const place = '/some/where/';

/**
 * A browser, and a site in a folder of its own. open(name, 'device=cpu') opens a page of the gallery,
 * in a given { context } or in one of its own; open_file('guide.html') opens a file of the site.
 */
export async function open_gallery(options = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'tensorgrad-site-'));
  const remove = () => rm(folder, { recursive: true });
  try {
    await make_site(package_folder, folder);
    const browser = await open_browser({ ...options, folders: { [place]: folder } });
    return {
      ...browser,
      folder,
      open_file: (path) => browser.open(place + path),
      open: (name, query = '', settings = {}) =>
        browser.open(`${place}${name}/index.html?${query}`, settings),
      async close() {
        try {
          await browser.close();
        } finally {
          await remove();
        }
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** What the page says about itself: state, step, loss, score, rate, device. */
export async function status(page) {
  const found = await page.evaluate(() => {
    const { dataset, ariaBusy } = document.querySelector('#status');
    const text = (id) => document.getElementById(id).textContent;
    return { ...dataset, busy: ariaBusy, where: text('where'), note: text('note'), problem: text('problem') };
  });
  for (const name of ['step', 'loss', 'score', 'rate'])
    found[name] = found[name] === '' ? undefined : Number(found[name]);
  return found;
}

/** Waits for a state in which nothing is computed, and returns the status. */
export async function settled(page, state = 'paused') {
  await page.waitForFunction(
    (state) => {
      const { dataset, ariaBusy } = document.querySelector('#status');
      return ariaBusy === 'false' && [state, 'failed'].includes(dataset.state);
    },
    state,
    { polling: 50 },
  );
  const found = await status(page);
  assert.equal(found.state, state, found.problem);
  return found;
}

/** Waits until a step was made, and returns the status. */
export async function reached(page, step) {
  await page.waitForFunction(
    (step) => Number(document.querySelector('#status').dataset.step) >= step,
    step,
    { polling: 20 },
  );
  return status(page);
}

/** The file that the button Save gives. */
export async function saved(page) {
  const download = page.waitForEvent('download');
  await page.click('#save');
  return readFile(await (await download).path());
}

/** What a checkpoint has: its step, and its tensors by name, as bytes. */
export function contents(file) {
  const start = 8 + Number(file.readBigUInt64LE(0));
  const { __metadata__: about, ...tensors } = JSON.parse(file.subarray(8, start).toString());
  const bytes = ([from, to]) => file.subarray(start + from, start + to).toString('hex');
  return {
    step: Number(about.step),
    tensors: Object.fromEntries(
      Object.entries(tensors).map(([name, { data_offsets }]) => [name, bytes(data_offsets)]),
    ),
  };
}

/** The losses of all steps, from what a page stored when it paused. */
export function losses(page) {
  return page.evaluate(async () => {
    const { stored } = await import(new URL('../kit/storage.js', location).href);
    const name = location.pathname.split('/').at(-2);
    return (await stored(`${name} small`)).losses.values;
  });
}
