// Bad input in a page: the op, both shapes, and the caller's line in the page's own file.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { act, open_browser, root } from './support/browser.mjs';

let browser, page;
before(async () => {
  browser = await open_browser();
  page = await browser.open();
});
after(() => browser.close());

const lines = readFileSync(`${root}tests/web/pages/actions.mjs`, 'utf8').split('\n');
const place = (comment) =>
  new RegExp(`actions\\.mjs:${lines.findIndex((line) => line.includes(`// ${comment}`)) + 1}\\b`);

const cases = [
  { device: 'cpu', worker: true },
  { device: 'cpu', worker: false },
  { device: 'webgpu', worker: true },
];
for (const options of cases)
  test(`bad input, ${options.device}, ${options.worker ? 'worker' : 'page'}`, async () => {
    const { errors, unchanged, goes_on } = await act(page, 'bad_input', options);
    for (const [name, error] of Object.entries(errors)) assert.ok(error.is_error, name);
    assert.equal(errors.shape.name, 'ShapeError');
    assert.match(errors.shape.message, /^matmul: inner sizes differ: .*x f32\[32,784\].*f32\[128,10\]/);
    assert.match(errors.shape.message, place('a wrong shape'));
    assert.match(errors.op.message, /^sigmoyd: there is no op of this name\n {2}hint: 'sigmoid'\?/);
    assert.match(errors.op.message, place('an unknown op'));
    assert.match(errors.missing.message, /'x'.*f32\[2,128\]/);
    assert.match(errors.missing.message, place('a missing feed'));
    assert.match(errors.size.message, /f32\[2,128\].*255/);
    assert.match(errors.size.message, place('a feed of another size'));
    assert.match(errors.detached.message, /f32\[2,128\].*detached/);
    assert.match(errors.detached.message, place('a detached buffer'));
    assert.ok(unchanged, 'bad input changed parameters');
    assert.ok(goes_on);
  });
