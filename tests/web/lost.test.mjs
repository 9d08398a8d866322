// A lost device in a page: the model goes on from its last snapshot and ends with the same weights.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { act, open_browser } from './support/browser.mjs';

let browser, page, whole;
const training = { steps: 30, width: 8, batch: 32, device: 'webgpu', snapshotEvery: 5 };
before(async () => {
  browser = await open_browser();
  page = await browser.open();
  await page.exposeFunction('crash_gpu', () => browser.crash_gpu());
  whole = await act(page, 'train_sine', training);
});
after(() => browser.close());

function recovered(run) {
  assert.deepEqual(run.losses, whole.losses);
  assert.equal(run.bits, whole.bits);
  assert.deepEqual(run.events.map(({ type }) => type), ['devicelost', 'recovered']);
  assert.match(run.events[1].device, /^webgpu/);
  assert.ok(run.events[1].snapshotStep >= 5, 'it did not start from a snapshot');
  assert.equal(run.reported, 1);
}

test('nothing is lost by itself', () => {
  assert.deepEqual(whole.events, []);
  assert.equal(whole.device, 'webgpu:0');
});

for (const worker of [true, false]) {
  const where = worker ? 'in a worker' : 'in the thread of the page';
  test(`a destroyed device, ${where}`, async () => {
    recovered(await act(page, 'train_sine', { ...training, lose: 'destroy', lose_at: 12, worker }));
  });
  test(`a GPU process that crashes, ${where}`, async () => {
    recovered(await act(page, 'train_sine', { ...training, lose: 'crash', lose_at: 12, worker }));
  });
}
