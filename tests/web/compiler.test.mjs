// The panel that looks inside the compiler, on the page of the sine: each tab shows what the
// compiler says, the lines of the page's source are marked, and looking changes nothing that the
// model learns. Screenshots go to build/web/screenshots.
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';

import { builds, root } from './support/browser.mjs';
import { contrasts, unnamed } from './support/accessible.mjs';
import { contents, open_gallery, reached, saved, settled } from './support/gallery.mjs';

const shots = `${builds}/web/screenshots`;
const stages = 'trace recognise differentiate update simplify materialise fuse plan lower emit';

let gallery;
before(async () => {
  await mkdir(shots, { recursive: true });
  gallery = await open_gallery();
});
after(() => gallery.close());

// A page that has made a few steps, with the panel open.
async function open(t, query = 'device=cpu&seed=1&steps=5') {
  const page = await gallery.open('sine', query);
  t.after(() => page.close());
  await settled(page);
  await page.click('#compiler summary');
  await page.waitForSelector('#compiler [role=tab]');
  return page;
}

async function tab(page, name) {
  await page.click(`[data-tab=${name}]`);
  await page.waitForFunction((name) => {
    const body = document.getElementById(`compiler-${name}`);
    return (
      !body.ariaBusy && !body.querySelector('[aria-busy=true]') && body.textContent.length > 50
    );
  }, name);
  return page.locator(`#compiler-${name}`);
}

async function stage(page, name) {
  await page.click(`[data-stage=${name}]`);
  await page.waitForFunction(
    (name) => document.querySelector('#compiler-graph .inner').dataset.shown === name,
    name,
  );
}

async function stage_text(page, name) {
  await tab(page, 'graph');
  await stage(page, name);
  const text = page.getByRole('button', { name: 'Text', exact: true });
  if ((await text.count()) > 0) {
    await text.click();
    await page.waitForSelector('#compiler-graph pre');
    await page.waitForFunction(
      () => document.querySelector('#compiler-graph .inner').dataset.shown,
    );
  }
  return page.locator('#compiler-graph pre').textContent();
}

const attributes = (locator) =>
  locator.evaluateAll((all) =>
    all.map(({ dataset }) =>
      Object.fromEntries(Object.entries(dataset).map(([k, v]) => [k, isNaN(v) ? v : Number(v)])),
    ),
  );

// The number of lines of each file of the page.
async function lines_of(files) {
  const counts = {};
  for (const file of files)
    counts[file] = (await readFile(`${root}web/gallery/sine/${file}`, 'utf8')).split('\n').length;
  return counts;
}

function overlapping(boxes) {
  const found = [];
  boxes.forEach((a, i) => {
    for (const b of boxes.slice(i + 1))
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
        found.push([a, b]);
  });
  return found;
}

test('graph: every op is drawn once, and every stage is explained', async (t) => {
  const page = await open(t);
  await tab(page, 'graph');
  await stage(page, 'differentiate');
  const drawn = await page.locator('#compiler .node').evaluateAll((nodes) =>
    nodes.map((node) => {
      const [x, y, width, height] = ['x', 'y', 'width', 'height'].map((name) =>
        Number(node.querySelector('rect').getAttribute(name)),
      );
      const { id } = node.dataset;
      const phase = ['forward', 'backward'].find((name) => node.classList.contains(name));
      return { id: Number(id), phase, left: x, right: x + width, top: y, bottom: y + height };
    }),
  );
  assert.deepEqual(overlapping(drawn), []);
  const bands = await page.locator('#compiler .band').allTextContents();
  for (const layer of ['l1', 'l2', 'l3'])
    assert.ok(
      bands.some((name) => name.includes(layer)),
      layer,
    );

  const text = await stage_text(page, 'differentiate');
  const ids = [...text.matchAll(/^ {2}%(\d+) = /gm)].map(([, id]) => Number(id));
  assert.deepEqual(
    drawn.map(({ id }) => id).sort((a, b) => a - b),
    ids,
  );
  // The loss needs the ops of the trace, and no others.
  const traced = [...(await stage_text(page, 'trace')).matchAll(/^ {2}%(\d+) = /gm)];
  assert.equal(drawn.filter(({ phase }) => phase === 'forward').length, traced.length);

  const names = await attributes(page.locator('#compiler [data-stage]'));
  assert.deepEqual(
    names.map((each) => each.stage),
    stages.split(' '),
  );
  for (const name of stages.split(' ')) {
    assert.ok((await stage_text(page, name)).length > 200, name);
    const sentence = await page.locator('#compiler-graph .sentence').textContent();
    assert.match(sentence, new RegExp(`^After ${name}: .{20,}`));
  }
});

test('graph: layers fold to a box for each pass', async (t) => {
  const page = await open(t);
  await tab(page, 'graph');
  await stage(page, 'differentiate');
  const all = await page.locator('#compiler .node').count();
  await page.getByRole('button', { name: 'Fold layers' }).click();
  await page.waitForFunction(
    (all) => document.querySelectorAll('#compiler .node').length < all / 2,
    all,
  );
  const box = page.locator('#compiler .node.forward.folded').first();
  await box.focus();
  assert.match(
    await page.locator('#compiler-graph .detail').textContent(),
    /^l1, forward: \d+ ops/,
  );
  await page.keyboard.press('Enter');
  await page.waitForFunction(
    () => document.querySelectorAll('#compiler .node:not(.folded)').length > 5,
  );
  await page.getByRole('button', { name: 'Fold layers' }).click();
  await page.getByRole('button', { name: 'Unfold layers' }).click();
  await page.waitForFunction(
    (all) => document.querySelectorAll('#compiler .node').length === all,
    all,
  );
});

test('plan: the kernels and the memory of the text', async (t) => {
  const page = await open(t);
  const text = await stage_text(page, 'plan');
  const kernels = Number(/^plan: (\d+) kernels/m.exec(text)[1]);
  const [, arena, live] = /^arena: (\d+) bytes; (\d+) bytes live/m.exec(text).map(Number);
  const body = await tab(page, 'plan');
  assert.equal(await body.locator('[data-fact=kernels]').textContent(), String(kernels));
  assert.equal(await body.locator('tbody tr').count(), kernels);

  const boxes = await attributes(body.locator('.box'));
  const planned = [...text.matchAll(/ arena @ (\d+), (\d+) bytes, (until (\d+)|kept)/g)];
  assert.deepEqual(
    boxes.map(({ offset, bytes }) => [offset, bytes]),
    planned.map(([, offset, bytes]) => [Number(offset), Number(bytes)]),
  );
  for (const { offset, bytes, from, to } of boxes) {
    assert.ok(offset >= 0 && offset + bytes <= arena);
    assert.ok(from >= 0 && from < to && to <= kernels);
  }
  const places = boxes.map(({ space, offset, bytes, from, to }) => ({
    space,
    left: from,
    right: to,
    top: offset,
    bottom: offset + bytes,
  }));
  for (const space of new Set(places.map((place) => place.space)))
    assert.deepEqual(overlapping(places.filter((place) => place.space === space)), []);
  const used = Array.from({ length: kernels }, (_, at) =>
    boxes
      .filter(({ from, to }) => from < at + 1 && to > at)
      .reduce((sum, { bytes }) => sum + bytes, 0),
  );
  assert.ok(Math.max(...used) <= live, 'the peak of the text counts what is aligned, too');
});

test('shaders: every kernel has code and a line of the page, and a click marks it', async (t) => {
  const page = await open(t);
  const plan = await tab(page, 'plan');
  const kernels = await plan.locator('tbody tr').count();
  const phases = await plan.locator('tbody .phase').allTextContents();
  const body = await tab(page, 'shaders');
  const list = await attributes(body.locator('.kernel'));
  const of_plan = list.slice(0, kernels);
  assert.deepEqual(
    of_plan.map(({ kernel }) => kernel),
    [...of_plan.keys()],
  );
  const counts = await lines_of(['model.js', 'page.js']);
  for (const { kernel, file, line } of of_plan) {
    await body.locator('.kernel').nth(kernel).click();
    await page.waitForFunction(
      (kernel) => document.querySelector('#compiler-shaders .inner').dataset.kernel === kernel,
      String(kernel),
    );
    assert.ok((await body.locator('pre').count()) >= 3, 'the call, a shader for a GPU, the kernel');
    await page.waitForFunction(() =>
      document.querySelector('#compiler-shaders pre.wgsl')?.textContent.includes('@compute'),
    );
    if (phases[kernel] === 'update') continue; // the optimizer is no line of the page
    assert.ok(line >= 1 && line <= counts[file], `kernel ${kernel}: ${file}:${line}`);
  }
  const { file, line } = of_plan[0];
  await body.locator('.kernel').first().click();
  await body.locator('.code button.site').click();
  const marked = page.locator('#source .line.marked');
  await marked.waitFor();
  const source = (await readFile(`${root}web/gallery/sine/${file}`, 'utf8')).split('\n');
  assert.equal((await marked.textContent()).trimEnd(), source[line - 1].trimEnd());
  assert.ok(
    await marked.evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    }),
  );
});

test('time: one time for each kernel', async (t) => {
  const page = await open(t);
  const kernels = await (await tab(page, 'plan')).locator('tbody tr').count();
  const body = await tab(page, 'time');
  await page.waitForSelector('#compiler-time [data-measured]');
  await page.waitForFunction(() => !document.querySelector('#compiler-time table').ariaBusy);
  const rows = await attributes(body.locator('tbody tr'));
  assert.deepEqual(
    rows.map(({ kernel }) => kernel).sort((a, b) => a - b),
    [...Array(kernels).keys()],
  );
  const times = rows.map(({ us }) => us);
  for (const us of times) assert.ok(us >= 0 && us < 1e7, String(us));
  // The browser rounds times to 5 us, so that the mean of a tiny kernel may be 0.
  assert.ok(times.filter((us) => us > 0).length >= kernels / 2);
  assert.deepEqual(
    times,
    [...times].sort((a, b) => b - a),
    'the longest comes first',
  );
  const bars = body.locator('.item[data-kernel]');
  assert.equal(await bars.count(), kernels);
  await body.getByRole('button', { name: 'kernel', exact: true }).click();
  const sorted = await attributes(body.locator('tbody tr'));
  assert.deepEqual(
    sorted.map(({ kernel }) => kernel),
    [...Array(kernels).keys()],
  );
  await body.getByLabel('group by phase and kind').check();
  assert.equal(await bars.count(), kernels);
});

test('a measurement in the middle of training changes nothing that the model learns', async (t) => {
  const query = 'device=cpu&seed=1&small&steps=600';
  const plain = await gallery.open('sine', query);
  await settled(plain);
  const expected = contents(await saved(plain));
  await plain.close();

  const page = await gallery.open('sine', query);
  t.after(() => page.close());
  await reached(page, 1);
  await page.click('#compiler summary');
  await page.click('[data-tab=time]');
  await page.waitForSelector('#compiler-time [data-measured]');
  const { step } = await reached(page, 1);
  assert.ok(step < 600, 'it still trains after the measurement');
  await settled(page);
  assert.deepEqual(contents(await saved(page)), expected);
});

test('on a GPU: its own shaders; and a lost device comes back', async (t) => {
  const page = await open(t, 'device=webgpu&seed=1&small&steps=3');
  const kernels = await (await tab(page, 'plan')).locator('tbody tr').count();
  const body = await tab(page, 'shaders');
  assert.equal(await body.locator('.kernel').count(), kernels);
  assert.match(await body.locator('h5').first().textContent(), /^Shader 1 of \d+/);
  assert.match(
    await body.locator('pre.wgsl').first().textContent(),
    /^\/\/ \d+ x \d+ workgroups\n/,
  );
  await body.locator('.kernel').first().evaluate((element) => element.classList.add('old'));
  await page.getByRole('button', { name: 'Lose the device' }).click();
  await page.waitForFunction(() => /goes on/.test(document.querySelector('#note').textContent));
  // The panel asks again.
  await page.waitForFunction(
    (kernels) =>
      document.querySelectorAll('#compiler-shaders .kernel:not(.old)').length === kernels,
    kernels,
  );
});

test('it can be used without a mouse, and read by everybody', async (t) => {
  const page = await open(t);
  await page.locator('[data-tab=graph]').focus();
  const chosen = () => page.locator('#compiler [role=tab][aria-selected=true]').textContent();
  for (const [key, name] of [
    ['ArrowRight', 'Plan'],
    ['End', 'Time'],
    ['ArrowRight', 'Graph'],
    ['ArrowLeft', 'Time'],
    ['Home', 'Graph'],
  ]) {
    await page.keyboard.press(key);
    assert.equal(await chosen(), name);
    assert.equal(await page.locator(':focus').textContent(), name);
  }
  for (const [name, item] of [
    ['graph', '.node'],
    ['plan', '.box'],
    ['time', '.item'],
  ]) {
    const body = await tab(page, name);
    await body.locator(`${item}[tabindex="0"]`).waitFor();
    assert.equal(await body.locator(`${item}[tabindex="0"]`).count(), 1, 'one tab stop');
    await body.locator(`${item}[tabindex="0"]`).focus();
    const first = await body.locator('.detail').textContent();
    await page.keyboard.press('ArrowRight');
    assert.notEqual(await body.locator('.detail').textContent(), first);
  }
  for (const name of ['graph', 'plan', 'shaders', 'time']) {
    await tab(page, name);
    for (const [width, height] of [
      [360, 800],
      [1280, 900],
    ])
      for (const colorScheme of ['light', 'dark']) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme });
        await page.locator('#compiler').scrollIntoViewIfNeeded();
        const panel = page.locator('#compiler');
        await panel.screenshot({ path: `${shots}/compiler-${name}-${width}-${colorScheme}.png` });
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, name);
        assert.deepEqual(await contrasts(page), [], `${name}, ${colorScheme}`);
      }
    assert.deepEqual(await unnamed(page), [], name);
  }
});
