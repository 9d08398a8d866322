// The pages of the gallery on a GPU, which is SwiftShader: the small version of each makes the steps of
// the CPU, and survives the loss of its device.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { contents, losses, open_gallery, reached, rows, saved, settled, status } from './support/gallery.mjs';

let gallery;
before(async () => (gallery = await open_gallery()));
after(() => gallery.close());

for (const { name, gpu } of rows) {
  const { steps, tolerance = 1e-4 } = gpu;
  test(`${name}: ${steps} steps on the GPU have the losses of the CPU`, async (t) => {
    const found = {};
    for (const device of ['cpu', 'webgpu']) {
      const page = await gallery.open(name, `small&seed=1&steps=${steps}&device=${device}`);
      t.after(() => page.close());
      const { problem, step, device: where } = await settled(page);
      assert.equal(problem, '');
      assert.equal(step, steps);
      assert.match(where, device === 'cpu' ? /^cpu$/ : /^webgpu/);
      found[device] = await losses(page);
    }
    t.diagnostic(JSON.stringify(found));
    assert.equal(found.cpu.length, steps);
    found.cpu.forEach((loss, i) => {
      const difference = Math.abs(found.webgpu[i] - loss);
      assert.ok(difference <= 1e-6 + tolerance * Math.abs(loss), `step ${i}: ${JSON.stringify(found)}`);
    });
  });
}

test('a GPU process that crashes: the page says so, and ends with the same weights', async (t) => {
  const query = 'device=webgpu&small&seed=1';
  const whole = await gallery.open('sine', `${query}&steps=40`);
  t.after(() => whole.close());
  await settled(whole);
  const { tensors } = contents(await saved(whole));

  const page = await gallery.open('sine', `${query}&steps=20`);
  t.after(() => page.close());
  await page.evaluate(() => {
    globalThis.seen = new Set();
    const status = document.querySelector('#status');
    new MutationObserver(() => seen.add(status.dataset.state)).observe(status, { attributes: true });
  });
  const crash = async () => {
    await gallery.crash_gpu();
    await page.waitForFunction(() => /goes on where it was/.test(document.querySelector('#note').textContent));
    await page.evaluate(() => (document.querySelector('#note').textContent = ''));
  };
  await reached(page, 3);
  await crash(); // while it runs, unless the machine is fast
  await reached(page, 20);
  await settled(page);
  await crash(); // while it is paused
  await page.click('#start');
  await reached(page, 40);
  const { device, problem } = await settled(page);
  assert.match(device, /^webgpu/);
  assert.equal(problem, '');
  assert.deepEqual(contents(await saved(page)), { step: 40, tensors });
  t.diagnostic([...(await page.evaluate(() => [...seen]))].join(' '));
});

test('a page moves from the CPU to the GPU and back', async (t) => {
  const page = await gallery.open('sine', 'device=cpu&small&seed=1&steps=5');
  t.after(() => page.close());
  await settled(page);
  const { tensors } = contents(await saved(page));
  for (const device of ['webgpu', 'cpu']) {
    await page.selectOption('#device', device);
    await page.waitForFunction(
      (device) => document.querySelector('#status').dataset.device.startsWith(device),
      device,
    );
    await settled(page);
    assert.deepEqual(contents(await saved(page)), { step: 5, tensors });
  }
  assert.equal((await status(page)).problem, '');
});
