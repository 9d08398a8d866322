// Models go from the page to the command line tool and back.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { act, builds, open_browser } from './support/browser.mjs';

const tool = process.env.TENSORGRAD_TOOL ?? `${builds}/release/bin/tg`;
const run = (...args) => promisify(execFile)(tool, [...args, '--device', 'cpu'], { cwd: folder });

let browser, page, folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tensorgrad-web-'));
  browser = await open_browser();
  page = await browser.open();
});
after(async () => {
  await browser.close();
  await rm(folder, { recursive: true });
});

const write_natively = async (model) => {
  const options = ['--prompt', 'the cat', '--tokens', '30', '--temperature', '0', '--json'];
  const { stdout } = await run('generate', model, ...options);
  const lines = stdout.trim().split('\n').map((line) => JSON.parse(line));
  return lines.map(({ text = '' }) => text).join('');
};

test('a model of the page writes the same text natively', async () => {
  const { loss, checkpoint, written } = await act(page, 'train_text', { device: 'cpu' });
  assert.ok(loss < 1.5, `${loss}`);
  const file = join(folder, 'page.safetensors');
  await writeFile(file, Uint8Array.from(checkpoint));
  assert.ok(written.length >= 20, written);
  const native = await write_natively(file);
  assert.ok(native.includes(written.slice(0, 20)), `${native} and ${written}`);
});

test('a model of the tool writes the same text in the page', async () => {
  await writeFile(join(folder, 'text.txt'), await page.evaluate(async () => (await import('/actions.mjs')).text));
  const sizes = ['--dim', '16', '--layers', '1', '--heads', '2', '--context', '32', '--batch', '2'];
  await run('train', 'text', 'text.txt', '--out', 'run', '--steps', '30', ...sizes);
  const checkpoints = (await readdir(join(folder, 'run/checkpoints'))).sort();
  const checkpoint = [...(await readFile(join(folder, 'run/checkpoints', checkpoints.at(-1))))];
  const here = await act(page, 'write_text', { checkpoint, prompt: 'the cat', device: 'cpu' });
  assert.ok(here.length > 0);
  assert.ok((await write_natively('run')).includes(here), here);
});
