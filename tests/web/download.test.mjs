// What pages download: one binary, for the device that they compute with. The other one when a GPU is
// lost for good.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { act, open_browser } from './support/browser.mjs';

const training = { steps: 8, width: 4, batch: 16 };
const browsers = [];
after(async () => {
  for (const browser of browsers) await browser.close();
});

// A page, and the names of the binaries that it has asked for.
async function open(gpu, options) {
  const browser = await open_browser({ gpu });
  browsers.push(browser);
  const page = await browser.open('/test.html', options);
  const asked = new Set();
  page.context().on('request', (request) => {
    const name = new URL(request.url()).pathname.split('/').at(-1);
    if (name.endsWith('.wasm')) asked.add(name.slice(0, -'.wasm'.length));
  });
  return { page, binaries: () => [...asked].sort() };
}

for (const [gpu, device, computes, binary] of [
  ['software', 'auto', 'cpu', 'cpu'],
  ['no-adapter', 'auto', 'cpu', 'cpu'],
  ['software', 'cpu', 'cpu', 'cpu'],
  ['software', 'webgpu', 'webgpu:0', 'webgpu'],
])
  test(`one binary: device '${device}' where the GPU is '${gpu}'`, async () => {
    const { page, binaries } = await open(gpu);
    const run = await act(page, 'train_sine', { ...training, device });
    assert.equal(run.device, computes);
    assert.deepEqual(binaries(), [`tensorgrad-${binary}`]);
  });

test('auto goes on with the CPU, and its binary, when the GPU is lost for good', async () => {
  const { page, binaries } = await open('software');
  // SwiftShader as a GPU, which is gone once its device is destroyed.
  await page.evaluate(() => {
    for (const name of ['vendor', 'architecture', 'device', 'description'])
      Object.defineProperty(GPUAdapterInfo.prototype, name, { get: () => 'test' });
    Object.defineProperty(GPUAdapterInfo.prototype, 'isFallbackAdapter', { get: () => false });
    const { destroy } = GPUDevice.prototype;
    GPUDevice.prototype.destroy = function () {
      GPU.prototype.requestAdapter = async () => null;
      destroy.call(this);
    };
  });
  const losing = { device: 'auto', snapshotEvery: 2, lose: 'destroy', lose_at: 5, worker: false };
  const { device, events, losses } = await act(page, 'train_sine', { ...training, ...losing });
  assert.equal(device, 'cpu');
  assert.equal(events.at(-1).device, 'cpu');
  assert.equal(losses.length, training.steps);
  assert.deepEqual(binaries(), ['tensorgrad-cpu', 'tensorgrad-webgpu']);
});
