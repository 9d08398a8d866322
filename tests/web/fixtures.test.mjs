// PyTorch's values (tests/fixtures) in a page, on the CPU and on SwiftShader.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { act, open_browser } from './support/browser.mjs';
import { chosen_part } from './support/parts.mjs';

let browser, page;
before(async () => {
  browser = await open_browser();
  page = await browser.open();
});
after(() => browser.close());

// Tolerances are those of tg verify: tests/fixtures/README.md. SwiftShader takes up to a minute for a
// pipeline, and crashes on some. It gets a part of the cases, another one each time:
// TENSORGRAD_FIXTURES=3/12 chooses a part, `all` means all cases.
const devices = { cpu: { looser: 1, usual: 1 }, webgpu: { looser: 10, usual: 12 } };

for (const [device, { looser, usual }] of Object.entries(devices)) {
  test(`ops and their gradients, ${device}`, async (t) => {
    const { part, parts, name } = chosen_part('TENSORGRAD_FIXTURES', usual);
    if (parts > 1) t.diagnostic(name);
    const tolerance = 5e-6 * looser;
    const options = { device, part, parts, tolerance };
    const { wrong, crashes, count, of } = await act(page, 'replay_ops', options);
    t.diagnostic(`${count} of ${of} cases`);
    assert.ok(of > 100 && count >= Math.floor(of / parts));
    if (crashes.length > 0) t.diagnostic(`the driver crashed on ${crashes.join(', ')}`);
    assert.deepEqual(wrong, []);
    assert.ok(crashes.length <= (device === 'cpu' ? 0 : count / 4), crashes.join(', '));
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
