// Training to a stated loss in a page: on the CPU and on SwiftShader, in the calling thread, in the
// package's worker, and in a worker of the page.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { act, open_browser } from './support/browser.mjs';

let browser, page;
before(async () => {
  browser = await open_browser();
  page = await browser.open();
});
after(() => browser.close());

function learned({ losses, device }, wanted_device, wanted_loss) {
  assert.equal(device, wanted_device);
  assert.ok(losses[0] > 0.1, `${losses[0]}`);
  assert.ok(losses.at(-1) < wanted_loss, `${losses[0]} -> ${losses.at(-1)}`);
}
const steps = 200;

test('on the CPU, anywhere, with the same bits', async () => {
  const here = await act(page, 'train_sine', { steps, device: 'cpu', worker: false });
  learned(here, 'cpu', 0.002);
  const there = await act(page, 'train_sine', { steps, device: 'cpu' });
  assert.deepEqual(there.losses, here.losses);
  assert.equal(there.bits, here.bits);
  const own = await act(page, 'train_sine_in_worker', { steps, device: 'cpu' });
  assert.equal(own.bits, here.bits);
  const own_thread = await act(page, 'train_sine_in_worker', { steps, device: 'cpu', worker: false });
  assert.equal(own_thread.bits, here.bits);
});

test('on several threads, with the same bits', async () => {
  assert.ok(await page.evaluate(() => crossOriginIsolated));
  const one = await act(page, 'train_sine', { steps: 20, batch: 4096, device: 'cpu' });
  const two = await act(page, 'train_sine', { steps: 20, batch: 4096, device: 'cpu', threads: 2 });
  assert.deepEqual(two.notes, []);
  assert.equal(one.threads, 1);
  assert.equal(two.threads, 2);
  assert.equal(two.bits, one.bits);
});

// SwiftShader takes 0.2 s for a step of the larger model.
test('on the GPU, in the thread of the page and in a worker', async () => {
  const small = { steps, width: 16, batch: 64, device: 'webgpu' };
  const here = await act(page, 'train_sine', { ...small, worker: false });
  learned(here, 'webgpu:0', 0.01);
  const there = await act(page, 'train_sine', small);
  learned(there, 'webgpu:0', 0.01);
  assert.equal(there.bits, here.bits);
});

test('auto never takes a software adapter', async () => {
  const support = await act(page, 'check_webgpu');
  assert.equal(support.ok, false);
  assert.equal(support.reason, 'software');
  assert.match(support.message, /SwiftShader|software/i);
  const { device, gpu } = await act(page, 'train_sine', { steps: 1 });
  assert.equal(device, 'cpu');
  assert.equal(gpu.reason, 'software');
});
