// What the tabs of the compiler panel share: elements by a short call, work in pieces, keys for
// pictures of many items, and the look of numbers and source lines.

/** An element. `props`: text, html, class, on: { event: listener }, and attributes. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (name === 'text') element.textContent = value;
    else if (name === 'html') element.innerHTML = value;
    else if (name === 'on') {
      for (const [event, listener] of Object.entries(value))
        element.addEventListener(event, listener);
    } else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
/** For pictures, which are written as text: creating SVG elements one by one is slow. */
export const escape = (text) => String(text).replace(/[&<>"]/g, (c) => entities[c]);
export const short = (text, length) =>
  text.length <= length ? text : `${text.slice(0, Math.max(0, length - 1))}…`;

const nextTask = () =>
  globalThis.scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve));

/**
 * Runs a generator in pieces of a few milliseconds, so that the page stays responsive. Stops, and
 * returns false, when `signal` is aborted.
 */
export async function inPieces(work, signal) {
  await nextTask();
  let until = performance.now() + 8;
  for (const _ of work) {
    if (performance.now() < until) continue;
    await nextTask();
    if (signal?.aborted) return false;
    until = performance.now() + 8;
  }
  return !signal?.aborted;
}

/**
 * One tab stop for many items: the arrow keys lead from one to the next, Home and End to the first
 * and the last. `items()` lists them in order. `show(item)` is called for the item that has the
 * focus or is under the pointer.
 */
export function roving(container, selector, show) {
  const items = () => [...container.querySelectorAll(selector)];
  const choose = (item) => {
    for (const other of container.querySelectorAll(`${selector}[tabindex="0"]`))
      other.setAttribute('tabindex', '-1');
    item.setAttribute('tabindex', '0');
    show(item);
  };
  container.addEventListener('focusin', ({ target }) => {
    const item = target.closest(selector);
    if (item) choose(item);
  });
  container.addEventListener('pointerover', ({ target }) => {
    const item = target.closest(selector);
    if (item) show(item);
  });
  container.addEventListener('click', ({ target }) => {
    target.closest(selector)?.focus({ preventScroll: true });
  });
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  container.addEventListener('keydown', (event) => {
    if (!event.target.matches(selector)) return;
    const all = items();
    const at = all.indexOf(event.target);
    const to =
      event.key in steps
        ? at + steps[event.key]
        : event.key === 'Home'
          ? 0
          : event.key === 'End'
            ? all.length - 1
            : undefined;
    if (to === undefined) return;
    event.preventDefault();
    all[Math.min(Math.max(to, 0), all.length - 1)].focus();
  });
}

/** Makes the first item of a roving picture the tab stop. */
export function tabStop(container, selector) {
  container.querySelector(selector)?.setAttribute('tabindex', '0');
}

/** '1 kernel', '12 kernels'. */
export const many = (count, thing, things = `${thing}s`) =>
  `${whole(count)} ${count === 1 ? thing : things}`;
export const whole = (x) => Math.round(x).toLocaleString('en');
export const decimal = (x, digits = 1) =>
  x.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Three digits with a unit: 1.23 MB, 456 kB. */
function scaled(x, units) {
  let at = 0;
  while (x >= 999.5 && at < units.length - 1) {
    x /= 1000;
    ++at;
  }
  return `${at === 0 ? x : Number(x.toPrecision(3))} ${units[at]}`;
}
export const bytes = (x) => scaled(x, ['B', 'kB', 'MB', 'GB']);
export const operations = (x) => scaled(x, ['flop', 'kflop', 'Mflop', 'Gflop', 'Tflop']);

/**
 * Reads a source line, as graphs ("gallery/sine/model.js:12 in l1 via Linear") and as kernels have
 * it ("l1, at model.js:12").
 */
export function siteOf(text) {
  const graph = /^(\S+):(\d+)(?: in ("[^"]*"|\S+))?(?: via ("[^"]*"|\S+))?$/.exec(text ?? '');
  const bare = (name) => name?.replaceAll('"', '') ?? '';
  const base = (file) => file.split('/').at(-1);
  if (graph) {
    const [, file, line, layer, via] = graph;
    return { file: base(file), line: Number(line), layer: bare(layer), via: bare(via) };
  }
  const [, layer = '', file, line] = /^(?:(.*), )?at (\S+):(\d+)$/.exec(text ?? '') ?? [];
  return {
    file: file && base(file),
    line: Number(line),
    layer: file ? layer : (text ?? ''),
    via: '',
  };
}

/**
 * A button that shows the line in the page's source. Lines of the library, which makes text models,
 * are no part of that.
 */
export function siteLink({ file, line, layer }) {
  const place = h('span', { class: 'place' });
  const text = `${file}:${line}`;
  const data = { 'data-file': file, 'data-line': line };
  if (/\.m?js$/.test(file)) {
    const title = `Show line ${line} of ${file}`;
    place.append(h('button', { type: 'button', class: 'site', ...data, title, text }));
  } else if (file) place.append(text);
  if (layer) place.append(h('span', { class: 'layer', text: ` in ${layer}` }));
  return place;
}

/**
 * A table whose headings sort it. Columns: { name, number, value(row), cell(row) }; a cell is an
 * element or a text, and without it the value is shown. Rows are made in pieces. While they are
 * made the table is busy.
 */
export function sortable(columns, rows, { caption, sorted, attributes, signal }) {
  const [first] = columns;
  let key = columns.find(({ name }) => name === sorted) ?? first;
  let down = Boolean(key.number) && key !== first; // the largest number first
  const lines = [];
  const body = h('tbody');
  const table = h('table', { 'aria-busy': 'true' });
  const heads = columns.map((column) =>
    h(
      'th',
      { scope: 'col', class: column.number ? 'number' : '' },
      h('button', {
        type: 'button',
        text: column.name,
        on: {
          click: () => {
            down = column === key ? !down : Boolean(column.number) && column !== first;
            key = column;
            sort();
          },
        },
      }),
    ),
  );
  function sort() {
    columns.forEach((column, i) => {
      if (column === key) heads[i].setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else heads[i].removeAttribute('aria-sort');
    });
    const order = (a, b) => {
      const [x, y] = [key.value(a.row), key.value(b.row)];
      const sign = typeof x === 'number' ? x - y : x < y ? -1 : x > y ? 1 : 0;
      return down ? -sign : sign;
    };
    body.append(...lines.sort(order).map(({ line }) => line));
  }
  const cells = (row) =>
    columns.map(({ number, cell, value }) =>
      h('td', { class: number ? 'number' : '' }, cell ? cell(row) : String(value(row))),
    );
  const make = function* () {
    for (const row of rows) {
      lines.push({ row, line: h('tr', attributes(row), ...cells(row)) });
      yield;
    }
    sort();
    table.removeAttribute('aria-busy');
  };
  inPieces(make(), signal);
  table.append(h('caption', { text: caption }), h('thead', {}, h('tr', {}, ...heads)), body);
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption }, table);
}

/** The ops of a kernel; those in () are computed where they are read. */
export const opsOf = (kernel) => (kernel.ops.length > 0 ? kernel.ops.join(' ') : kernel.kind);
