// The tarball of ./tg web --pack in the project of somebody else: strict types, a bundle by vite, and
// the page of that bundle in a browser, from a sub-folder.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { open_browser, package_folder, root } from './support/browser.mjs';

const run = promisify(execFile);
const { resolve } = createRequire(`${root}web/package.json`);

let project;
before(async () => {
  project = await mkdtemp(join(tmpdir(), 'tensorgrad-vite-'));
  await cp(`${root}tests/web/consumer`, project, { recursive: true });
  const publish = [`${root}web/publish.mjs`, 'pack', package_folder, ''];
  const { stdout } = await run(process.execPath, publish);
  const place = join(project, 'node_modules/tensorgrad');
  await mkdir(place, { recursive: true });
  await run('tar', ['-xzf', stdout.trim(), '-C', place, '--strip-components=1']);
});
after(() => rm(project, { recursive: true }));

test('the tarball has what it needs and no more', async () => {
  const names = await readdir(join(project, 'node_modules/tensorgrad'));
  assert.deepEqual(names.sort(), ['LICENSE', 'README.md', 'dist', 'package.json']);
});

test('types, with tsc --strict', async () => {
  const tsc = run(process.execPath, [resolve('typescript/bin/tsc'), '-p', project]);
  const { code = 0, stdout } = await tsc.catch((error) => error);
  assert.equal(stdout, '');
  assert.equal(code, 0);
});

test('the scripts have what bundlers look for', async () => {
  const dist = join(project, 'node_modules/tensorgrad/dist');
  const scripts = (await readdir(dist)).filter((name) => name.endsWith('.js'));
  const names = scripts.filter((name) => !name.endsWith('.worker.js')); // a file, not a module
  const text = (await Promise.all(names.map((name) => readFile(join(dist, name), 'utf8')))).join('');
  const variants = ['cpu', 'webgpu', 'core-cpu', 'core-webgpu', 'threads'];
  for (const variant of variants.map((name) => `tensorgrad-${name}`))
    for (const file of [`${variant}.wasm`, `${variant}.mjs`])
      assert.match(text, new RegExp(`new URL\\("\\./${file}",\\s?import\\.meta\\.url\\)`));
  for (const [, argument] of text.matchAll(/\bimport\(([^)]*)\)/g))
    assert.match(argument, /webpackIgnore: true.*@vite-ignore/, argument);
});

test('a bundle by vite learns in the browser', async (t) => {
  const { build } = await import(pathToFileURL(resolve('vite')).href.replace('index.cjs', 'dist/node/index.js'));
  await build({ root: project, base: './', logLevel: 'error', configFile: false });
  const browser = await open_browser({ folders: { '/some/where/': join(project, 'dist') }, isolated: false });
  t.after(() => browser.close());
  const page = await browser.open('/some/where/');
  await page.waitForFunction(() => document.querySelector('output').textContent !== '');
  assert.equal(await page.textContent('output'), 'failed, learned');
});
