// A part of the op table in a page, on the CPU and on SwiftShader, which takes seconds for some
// pipelines and crashes on some long shaders. The part is another one each time.
// TENSORGRAD_OP_TABLE=7/150 chooses a part, `all` means all rows.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { builds, open_browser } from './support/browser.mjs';
import { chosen_part } from './support/parts.mjs';

const usual_parts = { cpu: 10, webgpu: 150 };

let browser, page;
before(async () => {
  browser = await open_browser({ folders: { '/op_table/': `${builds}/web/tests/web` } });
  page = await browser.open();
});
after(() => browser.close());

for (const [device, usual] of Object.entries(usual_parts))
  test(`rows of the op table, ${device}`, async (t) => {
    const { part, parts, name } = chosen_part('TENSORGRAD_OP_TABLE', usual);
    t.diagnostic(name);
    const { failures, crashes, seconds, of } = await page.evaluate(
      async (options) => (await import('/op_table.mjs')).check_rows(options),
      { device, part, parts },
    );
    const rows = Object.entries(seconds).sort(([, a], [, b]) => b - a);
    const slow = rows.slice(0, 3).map(([name, took]) => `${name} ${took.toFixed(1)} s`);
    t.diagnostic(`${rows.length} of ${of} rows; the slowest: ${slow.join(', ')}`);
    assert.ok(of > 2000 && rows.length >= Math.floor(of / parts));
    if (crashes.length > 0) t.diagnostic(`the driver crashed on ${crashes.join(', ')}`);
    assert.deepEqual(failures, []);
    assert.ok(crashes.length <= (device === 'cpu' ? 0 : rows.length / 4), crashes.join(', '));
  });
