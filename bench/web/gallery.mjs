// How the pages of the gallery feel, in headless Chromium on the CPU with one thread: the time from
// opening a page to its first step, steps per second, and for how long the main thread is busy at a
// time (the browser's entries of long tasks, above 50 ms). Pages with a goal for their score: the time
// until they reach it.
//
//   ./tg web --sizes && node bench/web/gallery.mjs [--pages sine,addition] [--seconds 10] [--json]
import { parseArgs } from 'node:util';

import { open_gallery, place, rows } from '../../tests/web/support/gallery.mjs';

const { values: options } = parseArgs({
  options: {
    pages: { type: 'string' },
    seconds: { type: 'string', default: '10' }, // of training
    json: { type: 'boolean', default: false },
  },
});
const names = options.pages?.split(',') ?? rows.map(({ name }) => name);
const goals = { addition: { score: 0.99, within: 180 } };

// Runs in the page before its own scripts.
function watch() {
  const watched = (globalThis.watched = { busy: [] });
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) watched.busy.push([startTime, duration]);
  }).observe({ type: 'longtask', buffered: true });
  const look = () => {
    const { step = 0, score = '' } = document.querySelector('#status')?.dataset ?? {};
    watched.step = Number(step);
    watched.score = score === '' ? -Infinity : Number(score);
    if (watched.step > 0) watched.first ??= performance.now();
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
}

async function measure(gallery, name) {
  const page = await gallery.browser.newPage();
  try {
    await page.addInitScript(watch);
    await page.goto(`${gallery.origin}${place}${name}/index.html?seed=1`);
    const state = () => page.evaluate(() => ({ ...watched, now: performance.now() }));
    const pause = (seconds) => page.waitForTimeout(1000 * seconds);
    while (!(await state()).first) await pause(0.1);
    const before = await state();
    await pause(Number(options.seconds));
    const after = await state();
    const training = after.busy.filter(([start]) => start > after.first);
    const found = {
      name,
      first_step_s: after.first / 1000,
      steps_per_s: (1000 * (after.step - before.step)) / (after.now - before.now),
      long_tasks: training.length,
      longest_ms: Math.max(0, ...training.map(([, duration]) => duration)),
    };
    const goal = goals[name];
    if (goal) {
      let last = after;
      while (last.score < goal.score && last.now < 1000 * goal.within) {
        await pause(0.2);
        last = await state();
      }
      found.goal = goal.score;
      found.goal_s = last.score < goal.score ? null : last.now / 1000;
      found.goal_step = last.step;
    }
    return found;
  } finally {
    await page.close();
  }
}

const reached = ({ goal, goal_s, goal_step }) =>
  goal_s === null
    ? `score below ${goal} at step ${goal_step}`
    : `score ${goal} after ${goal_s.toFixed(0)} s, step ${goal_step}`;

const gallery = await open_gallery({ gpu: 'no-adapter' });
try {
  for (const name of names) {
    const found = await measure(gallery, name);
    if (options.json) {
      console.log(JSON.stringify(found));
      continue;
    }
    const { first_step_s, steps_per_s, long_tasks, longest_ms, goal } = found;
    console.log(
      `${name.padEnd(11)} first step after ${first_step_s.toFixed(2)} s, ${steps_per_s.toFixed(0)} ` +
        `steps/s, ${long_tasks} long tasks${long_tasks ? `, up to ${longest_ms} ms` : ''}` +
        (goal === undefined ? '' : `, ${reached(found)}`),
    );
  }
} finally {
  await gallery.close();
}
