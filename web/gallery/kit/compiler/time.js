// The tab "Time": how long each kernel of a step takes, measured in this page: the data of
// `tg bench --profile`.
import {
  decimal,
  escape,
  h,
  many,
  opsOf,
  roving,
  short,
  siteLink,
  siteOf,
  sortable,
  tabStop,
} from './dom.js';
import { kernelButton, opsCell, phaseCell } from './plan.js';

const bar = 30;
// Browsers round times to 5 or 100 us: only the mean of many steps tells how long a kernel takes.
const trial = 3; // steps, which tell how many fit
const time = 800; // ms
const leastSteps = 50,
  mostSteps = 400;

/** The kernels of a plan with their times: those of a kernel's dispatches are added. */
export function timesOf(kernels, dispatches) {
  const rows = kernels.map((kernel, number) => ({
    ...kernel,
    number,
    us: 0,
    dispatches: 0,
    site: siteOf(kernel.where),
  }));
  for (const { kernel, mean_microseconds: us } of dispatches) {
    rows[kernel].us += us;
    ++rows[kernel].dispatches;
  }
  const rate = (amount, us) => (us > 0 ? amount / us / 1e3 : 0);
  for (const row of rows) {
    row.gflops = rate(row.operations, row.us);
    row.gbPerS = rate(row.bytes_read + row.bytes_written, row.us);
  }
  return rows;
}

export async function timeTab(element, { program, plan, feed, signal, openShader }) {
  const kernels = await plan();
  if (signal.aborted) return;
  const again = h('button', {
    type: 'button',
    class: 'measure',
    text: 'Measure again',
    disabled: true,
  });
  const note = h('span', { class: 'measured', role: 'status' });
  const result = h('div', { class: 'result' });
  element.append(
    h('p', {
      class: 'sentence',
      text:
        'Each kernel is timed alone. In training, independent kernels share a dispatch and run ' +
        'side by side, so a step does not take the sum of these times. The weights stay as ' +
        'they are.',
    }),
    h('div', { class: 'bar' }, again, note),
    result,
  );
  async function measure() {
    again.disabled = true;
    note.textContent = 'Measuring …';
    delete element.dataset.measured;
    try {
      const inputs = await feed();
      const began = performance.now();
      await program.profile({ steps: trial, inputs });
      const fit = Math.round((trial * time) / (performance.now() - began));
      const steps = Math.min(Math.max(fit, leastSteps), mostSteps);
      const dispatches = await program.profile({ steps, inputs });
      if (signal.aborted) return;
      const rows = timesOf(kernels, dispatches);
      show(result, rows, openShader, signal);
      const total = rows.reduce((sum, { us }) => sum + us, 0);
      const all = many(rows.length, 'kernel');
      note.textContent = `${all}, ${decimal(total)} µs: the mean of ${steps} steps`;
      element.dataset.measured = rows.length;
    } catch (error) {
      if (!signal.aborted) note.textContent = `It could not be measured: ${error.message}`;
    } finally {
      again.disabled = false;
    }
  }
  again.addEventListener('click', measure);
  await measure();
}

function show(result, rows, openShader, signal) {
  const total = rows.reduce((sum, { us }) => sum + us, 0) || 1;
  const grouped = h('input', { type: 'checkbox' });
  const picture = h('div', { class: 'canvas bars' });
  const detail = h('div', { class: 'detail', 'aria-live': 'polite' });
  detail.textContent =
    'From top to bottom: the step, its phases, their kinds of kernels, and the kernels.';
  const columns = [
    {
      name: 'kernel',
      number: true,
      value: (k) => k.number,
      cell: (k) => kernelButton(k, openShader),
    },
    { name: 'µs', number: true, value: (k) => k.us, cell: (k) => decimal(k.us) },
    { name: '%', number: true, value: (k) => k.us, cell: (k) => decimal((100 * k.us) / total) },
    { name: 'GFLOP/s', number: true, value: (k) => k.gflops, cell: (k) => decimal(k.gflops, 2) },
    { name: 'GB/s', number: true, value: (k) => k.gbPerS, cell: (k) => decimal(k.gbPerS, 2) },
    { name: 'phase', value: (k) => k.phase, cell: (k) => phaseCell(k.phase) },
    { name: 'kind', value: (k) => k.kind },
    { name: 'ops', value: opsOf, cell: opsCell },
    { name: 'source line', value: (k) => k.where, cell: (k) => siteLink(k.site) },
  ];
  result.replaceChildren(
    h('label', { class: 'grouped' }, grouped, ' group by phase and kind'),
    picture,
    detail,
    sortable(columns, rows, {
      caption: 'Time per kernel',
      sorted: 'µs',
      attributes: (k) => ({ 'data-kernel': k.number, 'data-us': k.us }),
      signal,
    }),
  );
  const draw = () => {
    const width = Math.max(picture.clientWidth, 300);
    picture.innerHTML = bars(rows, grouped.checked, total, width);
    tabStop(picture, '.item');
  };
  grouped.addEventListener('change', draw);
  const resized = new ResizeObserver(() => picture.clientWidth > 0 && draw());
  resized.observe(picture);
  signal.addEventListener('abort', () => resized.disconnect());
  roving(picture, '.item', (item) => {
    for (const on of result.querySelectorAll('.on')) on.classList.remove('on');
    item.classList.add('on');
    const { kernel } = item.dataset;
    if (kernel === undefined) {
      detail.textContent = item.getAttribute('aria-label');
      return;
    }
    result.querySelector(`tr[data-kernel="${kernel}"]`)?.classList.add('on');
    detail.replaceChildren(`${item.getAttribute('aria-label')} `, siteLink(rows[kernel].site));
  });
}

function inOrder(rows, grouped) {
  if (!grouped) return rows;
  const phases = ['forward', 'backward', 'update'];
  const time = new Map();
  const key = ({ phase, kind }) => `${phase}/${kind}`;
  for (const row of rows) time.set(key(row), (time.get(key(row)) ?? 0) + row.us);
  return [...rows].sort(
    (a, b) =>
      phases.indexOf(a.phase) - phases.indexOf(b.phase) ||
      time.get(key(b)) - time.get(key(a)) ||
      (a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : b.us - a.us),
  );
}

// Neighbours with the same key become one bar.
function runs(placed, key) {
  const out = [];
  for (const { row, x } of placed) {
    const last = out.at(-1);
    if (last?.key === key(row)) {
      last.us += row.us;
      ++last.count;
    } else out.push({ key: key(row), row, x, us: row.us, count: 1 });
  }
  return out;
}

// Round numbers along the time axis, about one per 100 pixels.
function ticks(total, width) {
  const rough = total / Math.max(2, width / 100),
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const list = [];
  for (let i = 0; i * step <= total * 1.000001; ++i)
    list.push([i * step, decimal(i * step, digits)]);
  return list;
}

const share = (us, total) => `${decimal(us)} µs, ${decimal((100 * us) / total)} %`;

function bars(rows, grouped, total, width) {
  let x = 0;
  const placed = inOrder(rows, grouped).map((row) => {
    const at = { row, x };
    x += row.us;
    return at;
  });
  const scale = width / total;
  const rect = (level, from, us, kind, label, words, kernel) => {
    const wide = us * scale,
      room = Math.floor((wide - 8) / 7);
    const text =
      room < 3
        ? ''
        : `<text x="${from * scale + 4}" y="${level * bar + 19}">` +
          `${escape(short(label, room))}</text>`;
    return (
      `<g class="item ${kind}" role="img" tabindex="-1" aria-label="${escape(words)}"` +
      `${kernel === undefined ? '' : ` data-kernel="${kernel}"`}><rect x="${from * scale}" ` +
      `y="${level * bar}" width="${Math.max(wide, 0.3)}" height="${bar - 2}"/>${text}</g>`
    );
  };
  let svg = rect(
    0,
    0,
    total,
    'all',
    `a step: ${decimal(total)} µs`,
    `a step: ${share(total, total)}`,
  );
  const level = (number, key, name) => {
    for (const run of runs(placed, key)) {
      const kernels = many(run.count, 'kernel');
      const words = `${run.key.replace('/', ', ')}: ${kernels}, ${share(run.us, total)}`;
      svg += rect(number, run.x, run.us, run.row.phase, name(run.row), words);
    }
  };
  level(
    1,
    ({ phase }) => phase,
    ({ phase }) => phase,
  );
  level(
    2,
    ({ phase, kind }) => `${phase}/${kind}`,
    ({ kind }) => kind,
  );
  for (const { row, x: at } of placed)
    svg += rect(
      3,
      at,
      row.us,
      row.phase,
      `${row.number} ${opsOf(row)}`,
      `kernel ${row.number}: ${short(opsOf(row), 80)}. ${share(row.us, total)}, ` +
        `${decimal(row.gflops, 2)} GFLOP/s, ${decimal(row.gbPerS, 2)} GB/s, ` +
        `${many(row.dispatches, 'dispatch', 'dispatches')}, ${row.phase}, ${row.kind}.`,
      row.number,
    );
  const end = 4 * bar;
  for (const [us, label] of ticks(total, width)) {
    const at = us * scale,
      anchor = at < 20 ? 'start' : at > width - 30 ? 'end' : 'middle';
    svg +=
      `<path class="frame" d="M${at} ${end}v5"/>` +
      `<text class="axis" x="${at}" y="${end + 17}" text-anchor="${anchor}">${label}</text>`;
  }
  svg +=
    `<text class="axis" x="${width / 2}" y="${end + 34}" text-anchor="middle">` +
    `microseconds, kernels one after the other${grouped ? ', by phase and kind' : ''}</text>`;
  return (
    `<svg width="${width}" height="${end + 40}" viewBox="0 0 ${width} ${end + 40}" role="group" ` +
    `aria-label="Time per kernel">${svg}</svg>`
  );
}
