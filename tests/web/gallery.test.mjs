// The site: each page of the gallery learns on the CPU, is small, and can be used and read by everybody;
// links lead somewhere. The pages lie in a sub-folder of a server without the headers for threads, and
// the browser has no WebGPU. Screenshots go to build/web/screenshots.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { builds, package_folder, root } from './support/browser.mjs';
import { contrasts, unnamed } from './support/accessible.mjs';
import { open_gallery, place, rows, settled } from './support/gallery.mjs';

const source = `${root}web/gallery`;
const shots = `${builds}/web/screenshots`;
const shared = ['kit'];

let gallery;
before(async () => {
  await mkdir(shots, { recursive: true });
  gallery = await open_gallery({ gpu: 'no-webgpu', isolated: false });
});
after(() => gallery.close());

// What is seen, in all four ways. Nothing is wider than the page.
async function photograph(page, name) {
  for (const [width, height] of [[360, 800], [1280, 900]])
    for (const colorScheme of ['light', 'dark']) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 50))));
      if (await page.locator('#status').count()) await settled(page);
      await page.screenshot({ path: `${shots}/${name}-${width}-${colorScheme}.png` });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, name);
      assert.deepEqual(await contrasts(page), [], `${name}, ${colorScheme}: contrast below 4.5`);
    }
}

async function accessible(page) {
  assert.deepEqual(await unnamed(page), [], 'without a name');
  const { lang, headings, title, mains } = await page.evaluate(() => ({
    lang: document.documentElement.lang,
    headings: document.querySelectorAll('h1').length,
    mains: document.querySelectorAll('main').length,
    title: document.title,
  }));
  assert.deepEqual({ lang, headings, mains }, { lang: 'en', headings: 1, mains: 1 });
  assert.ok(title.length > 5);
}

test('each page has a folder, a card with its title, and a row in the table of these tests', async () => {
  const entries = await readdir(source, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const front = await readFile(`${source}/index.html`, 'utf8');
  const cards = [...front.matchAll(/<a href="(\w+)\/index\.html">/g)].map(([, name]) => name);
  const names = rows.map(({ name }) => name).sort();
  assert.deepEqual(folders.filter((name) => !shared.includes(name)).sort(), names);
  for (const [, name, title] of front.matchAll(/<a href="(\w+)\/index\.html">[^]*?<h2>(.*)<\/h2>/g)) {
    const text = await readFile(`${source}/${name}/index.html`, 'utf8');
    assert.equal(/<h1>(.*)<\/h1>/.exec(text)[1], title);
    assert.equal(/<title>(.*) · tensorgrad<\/title>/.exec(text)[1], title);
  }
  assert.deepEqual(cards.sort(), names);
});

for (const { name, cpu } of rows) {
  const { steps, loss: most, score: least } = cpu;
  const goal = [
    ...(most === undefined ? [] : [`the loss is below ${most}`]),
    ...(least === undefined ? [] : [`the score is at least ${least}`]),
  ].join(' and ');

  test(`${name}: after ${steps} steps on the CPU, ${goal}`, async (t) => {
    const page = await gallery.open(name, `seed=1&steps=${steps}`);
    t.after(() => page.close());
    const { loss, score, where, problem, device } = await settled(page);
    assert.equal(problem, '');
    assert.equal(device, 'cpu');
    assert.match(where, /^CPU, 1 thread\. This browser has no WebGPU\./);
    t.diagnostic(`loss ${loss}, score ${score}`);
    if (most !== undefined) assert.ok(loss < most, `${loss}`);
    if (least !== undefined) assert.ok(score >= least, `${score}`);
    for (const id of ['losses', ...(score === undefined ? [] : ['scores'])])
      assert.equal(await page.locator(`#${id} canvas`).count(), 1, id);
    await photograph(page, name);
    for (const summary of await page.locator('#source summary').all()) await summary.click();
    await page.waitForFunction(() =>
      [...document.querySelectorAll('#source code')].every((code) => code.childElementCount > 5),
    );
    await accessible(page);
    assert.deepEqual(await contrasts(page), []);
  });

  test(`${name}: at most 150 lines beside the model`, async () => {
    let lines = 0;
    for (const file of ['index.html', 'page.js']) {
      const text = await readFile(`${source}/${name}/${file}`, 'utf8');
      lines += text.trimEnd().split('\n').length;
      for (const line of text.split('\n')) assert.ok(line.length <= 100, `${file}: ${line}`);
    }
    assert.ok(lines <= 150, `${lines}`);
  });
}

for (const file of ['index.html', 'guide.html', 'ops.html'])
  test(`${file} can be read, and its links lead somewhere`, async (t) => {
    const page = await gallery.open_file(file);
    t.after(() => page.close());
    await photograph(page, file.replace('.html', ''));
    await accessible(page);
    const links = await page.evaluate(() => [...document.links].map(({ href }) => href));
    assert.ok(links.length >= 3);
    for (const link of new Set(links)) {
      const [address, hash] = link.split('#');
      if (!address.startsWith(gallery.origin)) {
        assert.match(link, /^https:/);
        continue;
      }
      assert.ok(address.startsWith(`${gallery.origin}${place}`), link);
      const { status, text } = await page.evaluate(async (address) => {
        const answer = await fetch(address);
        return { status: answer.status, text: await answer.text() };
      }, address);
      assert.equal(status, 200, link);
      if (hash) assert.ok(text.includes(`id="${hash}"`), link);
    }
  });

const publish = [`${root}web/publish.mjs`, 'out', package_folder];

test('./tg web --out writes these files', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tensorgrad-out-'));
  t.after(() => rm(folder, { recursive: true }));
  await promisify(execFile)(process.execPath, [...publish, folder]);
  const files = async (place) => (await readdir(place, { recursive: true })).sort();
  assert.deepEqual(await files(folder), await files(gallery.folder));
});

test('./tg web serves them', async (t) => {
  // Its site lies beside the package, so the package is elsewhere here.
  const builds = await mkdtemp(join(tmpdir(), 'tensorgrad-serve-'));
  await cp(package_folder, join(builds, 'package'), { recursive: true });
  const serve = [publish[0], 'serve', join(builds, 'package'), '0', '--json'];
  const server = spawn(process.execPath, serve, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(async () => {
    server.kill();
    await rm(builds, { recursive: true });
  });
  const [line] = await once(server.stdout, 'data');
  const { event, address } = JSON.parse(line);
  assert.equal(event, 'serving');
  for (const path of ['', 'sine/', 'sine', 'guide.html', 'vendor/uPlot.esm.js', 'tensorgrad/dist/index.js']) {
    const answer = await fetch(address + path);
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers.get('cross-origin-opener-policy'), 'same-origin'); // for threads
  }
});

test('what npm has brought has its licence', async () => {
  const files = await readdir(`${gallery.folder}/vendor`);
  for (const name of ['uPlot', 'digits']) assert.ok(files.includes(`${name}.LICENSE`), name);
});
