// PyTorch's values (tests/fixtures) in a page, on the CPU and on SwiftShader.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { act, open_browser } from './support/browser.mjs';

let browser, page;
before(async () => {
  browser = await open_browser();
  page = await browser.open();
});
after(() => browser.close());

// As tg verify does: tests/fixtures/README.md.
const devices = { cpu: 1, webgpu: 10 };

for (const [device, looser] of Object.entries(devices)) {
  test(`ops and their gradients, ${device}`, async (t) => {
    const { wrong, count, of } = await act(page, 'replay_ops', { device, tolerance: 5e-6 * looser });
    t.diagnostic(`${count} of ${of} cases`);
    assert.ok(count > 100);
    assert.deepEqual(wrong, []);
  });
  test(`a training run, ${device}`, async () => {
    const worst = await act(page, 'replay_run', { name: 'train_mlp_sin', device, tolerance: looser });
    assert.ok(worst.loss <= 1 && worst.gradients <= 1, JSON.stringify(worst));
    assert.ok(worst.loss > 0);
    if (device === 'cpu') assert.ok(worst.final <= 1 && worst.final > 0, JSON.stringify(worst));
  });
}

for (const name of ['train_transformer', 'train_cnn', 'train_mamba'])
  test(`${name}, cpu`, async () => {
    const worst = await act(page, 'replay_run', { name, device: 'cpu' });
    assert.ok(worst.loss <= 1 && worst.gradients <= 1 && worst.final <= 1, JSON.stringify(worst));
  });
