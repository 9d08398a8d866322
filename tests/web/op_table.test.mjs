// A part of the op table in a page, on the CPU and on SwiftShader, which takes seconds for some
// pipelines: another part each time. TENSORGRAD_OP_TABLE=7/40 chooses a part, `all` means all rows.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { builds, open_browser } from './support/browser.mjs';

const usual_parts = 40;

function chosen(text) {
  if (text === 'all') return { part: 0, parts: 1 };
  if (!text) return { part: Math.floor(Date.now() / 1000) % usual_parts, parts: usual_parts };
  const [, part, parts] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  if (!(Number(part) < Number(parts)))
    throw new Error(`TENSORGRAD_OP_TABLE: '${text}' is neither 'all' nor a part such as 7/40`);
  return { part: Number(part), parts: Number(parts) };
}
const { part, parts } = chosen(process.env.TENSORGRAD_OP_TABLE);
console.log(`rows of the op table: TENSORGRAD_OP_TABLE=${parts === 1 ? 'all' : `${part}/${parts}`}`);

let browser, page;
before(async () => {
  browser = await open_browser({ folders: { '/op_table/': `${builds}/web/tests/web` } });
  page = await browser.open();
});
after(() => browser.close());

for (const device of ['cpu', 'webgpu'])
  test(`rows of the op table, ${device}`, async (t) => {
    const { failures, count, of } = await page.evaluate(
      async (options) => (await import('/op_table.mjs')).check_rows(options),
      { device, part, parts },
    );
    t.diagnostic(`${count} of ${of} rows`);
    assert.ok(of > 2000 && count >= Math.floor(of / parts));
    assert.deepEqual(failures, []);
  });
