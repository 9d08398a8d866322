// The script of the page of `tg plot`. It redraws every chart when the selection changes. SVG is
// written as text, because creating its elements one by one would need a namespace URL.
#include "plot_runs.h"

namespace tensorgrad::tool {

const char* const kPlotScript = R"js('use strict';
const runs = JSON.parse(document.getElementById('runs').textContent);
const colours = ['#3f86d9', '#e07b39', '#3a9d5d', '#c94f8a', '#8a63d2', '#a8891c', '#2aa1a8', '#d0503f', '#718096',
                 '#7cb342'];
// A chart has parts: curves of the log. Parts with dots are measured now and then, the others at every step.
const charts = [
  { title: 'Training and validation loss', unit: 'loss per token', wide: true, log: true, base: x => x,
    parts: [{ name: 'loss', what: 'training', smooth: true }, { name: 'validation_loss', what: 'validation', dots: true }] },
  { title: 'Validation perplexity', unit: 'perplexity', log: true, base: Math.exp,
    parts: [{ name: 'perplexity', dots: true }] },
  { title: 'Validation, bits per byte', unit: 'bits per byte', log: true, parts: [{ name: 'bits_per_byte', dots: true }] },
  { title: 'Learning rate', unit: 'learning rate', parts: [{ name: 'lr' }] },
  { title: 'Gradient norm', unit: 'norm', log: true, parts: [{ name: 'grad_norm', smooth: true }] },
  { title: 'Speed', unit: 'tokens per second', zero: true, parts: [{ name: 'tokens_per_second', smooth: true }] },
];
const axis_title = { step: 'training step', tokens: 'tokens trained on', seconds: 'training time' };
const state = { x: 'step', smooth: 0, log: false, range: null, drag: null };
const margin = { left: 70, right: 16, top: 10, bottom: 40 };

const get = id => document.getElementById(id);
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escape = text => String(text).replace(/[&<>"]/g, c => entities[c]);
const swatch = run => `<span class="swatch" style="background:${run.colour}"></span>`;

// ---- numbers for people

// Counts are whole with commas: 12,500. Measured values have four digits: 2.500, 12,500, 3.142e-5.
const whole = x => Math.round(x).toLocaleString('en');
function short(x) {
  const size = Math.abs(x);
  if (x === 0) return '0';
  if (size < 1e-3 || size >= 1e9) return x.toExponential(3).replace('+', '');
  return x.toLocaleString('en', { minimumSignificantDigits: 4, maximumSignificantDigits: Math.max(4, Math.ceil(Math.log10(size))) });
}
// Those beside an axis have as many decimals as their distance needs.
function along_axis(list) {
  const step = list.length > 1 ? Math.min(...list.slice(1).map((x, i) => x - list[i])) : Math.abs(list[0] || 1);
  const small = step < 1e-4, decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return x => x === 0 ? '0' : small ? (+x.toPrecision(3)).toExponential().replace('+', '')
    : Math.abs(x) >= 1e9 ? +(x / 1e9).toPrecision(4) + 'G' : Math.abs(x) >= 1e6 ? +(x / 1e6).toPrecision(4) + 'M'
    : x.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}
function time(seconds) {
  const s = Math.round(seconds), part = (n, unit) => n ? ` ${n} ${unit}` : '';
  if (seconds < 10) return +seconds.toPrecision(3) + ' s';
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min' + part(s % 60, 's');
  return Math.floor(s / 3600) + ' h' + part(Math.floor(s % 3600 / 60), 'min');
}
const along = { step: x => 'step ' + whole(x), tokens: x => whole(x) + ' tokens', seconds: time };

function ticks(low, high, count, steps) {
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const size = (steps || [1, 2, 5, 10].map(m => m * power)).find(s => s >= rough * .999) || 10 * power;
  const list = [], last = high / size + 1e-9;
  for (let i = Math.ceil(low / size - 1e-9); i <= last && list.length < 50; ++i) list.push(i * size);
  return list;
}
const clock = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 36000, 86400, 172800, 432000];
function log_ticks(low, high, count) {
  if (high / low < 8) return ticks(low, high, count).filter(x => x > 0);
  const list = [], far = Math.log10(high / low) > count;
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); ++p)
    for (const m of far ? [1] : [1, 2, 5]) if (m * 10 ** p >= low && m * 10 ** p <= high) list.push(m * 10 ** p);
  const skip = Math.ceil(list.length / 8);
  return list.filter((_, i) => i % skip === 0);
}

// ---- curves

const visible = () => runs.filter(run => run.on);
function places(run, curve) {
  if (state.x === 'seconds') return curve.seconds;
  if (state.x === 'tokens') return run.tokens_per_step ? curve.step.map(s => s * run.tokens_per_step) : null;
  return curve.step;
}

// What is near counts most: a weight falls to 1/e over `span` along the axis. Thinned curves go by their means.
function smoothed(xs, curve, span) {
  const from = curve.mean || curve.value, out = [];
  let sum = 0, weight = 0, last = xs[0];
  for (let i = 0; i < xs.length; ++i) {
    if (from[i] === null) { out.push(null); continue; }
    const keep = Math.exp(-(xs[i] - last) / span);
    sum = sum * keep + from[i]; weight = weight * keep + 1; last = xs[i];
    out.push(curve.value[i] === null ? null : sum / weight);
  }
  return out;
}

// The curves of a chart that are to be seen, and what they span.
function collect(chart) {
  const lines = [];
  for (const part of chart.parts) for (const run of visible()) {
    const curve = run.curves[part.name], xs = curve && places(run, curve);
    if (xs) lines.push({ run, part, xs, ys: curve.value, curve });
  }
  return lines;
}
// Where runs were resumed, along the axis: a step's time is that of the last one before it.
function resumes() {
  const marks = [];
  for (const run of visible()) for (const step of run.resumed) {
    const curve = run.curves.loss;
    let last = -1;
    if (curve) for (let i = 0; i < curve.step.length && curve.step[i] <= step; ++i) last = i;
    const x = state.x === 'step' ? step : state.x === 'tokens' ? run.tokens_per_step && step * run.tokens_per_step
      : last < 0 ? 0 : curve.seconds[last];
    if (typeof x === 'number') marks.push({ run, step, x });
  }
  return marks;
}
function extent(lines, inside) {
  let low = Infinity, high = -Infinity;
  for (const line of lines) for (let i = 0; i < line.xs.length; ++i) {
    const x = inside(line, i);
    if (x !== null) { low = Math.min(low, x); high = Math.max(high, x); }
  }
  return [low, high];
}
function whole_range() {
  const [low, high] = extent(charts.flatMap(collect), (line, i) => line.xs[i]);
  return low > high ? [0, 1] : [low === high ? low - 1 : Math.min(low, low < .05 * high ? 0 : low), high];
}

// SVG paths with gaps where there is no value; a value alone becomes a dot.
function path(xs, ys, to_x, to_y, from, to) {
  let text = '', open = false, alone = [];
  for (let i = from; i < to; ++i) {
    if (ys[i] === null || to_y(ys[i]) === null) { open = false; continue; }
    const at = `${to_x(xs[i]).toFixed(1)} ${to_y(ys[i]).toFixed(1)}`;
    const next = i + 1 < to && ys[i + 1] !== null;
    if (!open && !next) alone.push(at);
    text += (open ? 'L' : 'M') + at;
    open = true;
  }
  return { text, alone };
}

function draw(chart, range) {
  const lines = collect(chart), { svg, figure } = chart;
  const width = Math.max(260, svg.clientWidth || 800), height = chart.wide ? 320 : 210;
  const log = state.log && chart.log;
  const usable = y => y !== null && (!log || y > 0);
  const within = x => x >= range[0] && x <= range[1];
  let [low, high] = extent(lines, (line, i) => within(line.xs[i]) && usable(line.ys[i]) ? line.ys[i] : null);
  const bases = chart.base ? [...new Set(lines.map(line => line.run))]
    .filter(run => typeof run.start.unigram_loss === 'number')
    .map(run => ({ run, y: chart.base(run.start.unigram_loss) })) : [];
  if (low <= high && !state.range)
    for (const base of bases) { low = Math.min(low, base.y); high = Math.max(high, base.y); }
  if (low > high) [low, high] = [log ? .1 : 0, 1];
  if (chart.zero && !log) low = Math.min(low, 0);
  if (low === high) { low -= Math.abs(low) / 10 || 1; high += Math.abs(high) / 10 || 1; }
  const pad = log ? (high / low) ** .04 : (high - low) * .04;
  if (log) { low /= pad; high *= pad; } else { low = low === 0 ? 0 : low - pad; high += pad; }

  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const part = log ? y => Math.log(y / low) / Math.log(high / low) : y => (y - low) / (high - low);
  const to_x = x => margin.left + (x - range[0]) / (range[1] - range[0]) * inner.width;
  const to_y = y => usable(y) ? margin.top + (1 - part(y)) * inner.height : null;
  Object.assign(chart, { lines, to_x, width, height, range });
  const span = state.smooth * (range[1] - range[0]);
  for (const line of lines) line.smooth = span && line.part.smooth ? smoothed(line.xs, line.curve, span) : null;

  let text = '';
  const y_ticks = (log ? log_ticks : ticks)(low, high, height / 45), y_text = along_axis(y_ticks);
  for (const y of y_ticks) {
    const at = to_y(y);
    text += `<line class="grid" x1="${margin.left}" x2="${width - margin.right}" y1="${at}" y2="${at}"/>` +
      `<text x="${margin.left - 6}" y="${at + 4}" text-anchor="end">${y_text(y)}</text>`;
  }
  const steps = state.x === 'seconds' && range[1] - range[0] > 10 ? clock : null;
  const x_ticks = ticks(range[0], range[1], inner.width / 90, steps);
  const x_text = state.x === 'seconds' ? time : along_axis(x_ticks);
  for (const x of x_ticks) {
    const last = to_x(x) > width - 30;
    text += `<text x="${last ? width : to_x(x)}" y="${height - 22}" text-anchor="${last ? 'end' : 'middle'}">` +
      `${x_text(x)}</text>`;
  }
  const middle = margin.top + inner.height / 2;
  text += `<text class="axis" x="${margin.left + inner.width / 2}" y="${height - 5}" text-anchor="middle">` +
    `${axis_title[state.x]}</text>` +
    `<text class="axis" x="12" y="${middle}" text-anchor="middle" transform="rotate(-90 12 ${middle})">${chart.unit}</text>`;
  // An SVG inside cuts off what is outside of it.
  const cut = `x="${margin.left - 6}" y="0" width="${inner.width + 12}" height="${height - margin.bottom}"`;
  text += `<svg ${cut} viewBox="${margin.left - 6} 0 ${inner.width + 12} ${height - margin.bottom}">`;
  for (const base of bases)
    text += `<line class="base" stroke="${base.run.colour}" x1="${margin.left}" x2="${width - margin.right}" ` +
      `y1="${to_y(base.y)}" y2="${to_y(base.y)}"/>`;
  for (const mark of resumes())
    text += `<line class="resume" stroke="${mark.run.colour}" x1="${to_x(mark.x)}" x2="${to_x(mark.x)}" ` +
      `y1="${margin.top}" y2="${height - margin.bottom}"><title>${escape(mark.run.name)}: resumed from step ` +
      `${whole(mark.step)}</title></line>` +
      (chart.wide ? `<text x="${to_x(mark.x) + 4}" y="${margin.top + 10}">resumed</text>` : '');
  for (const line of lines) {
    let from = line.xs.findIndex(x => x >= range[0]), to = line.xs.findIndex(x => x > range[1]);
    from = Math.max(0, (from < 0 ? line.xs.length : from) - 1);
    to = to < 0 ? line.xs.length : to + 1;
    const colour = line.run.colour, raw = path(line.xs, line.ys, to_x, to_y, from, to);
    text += `<path class="${line.smooth ? 'raw' : ''}" stroke="${colour}" d="${raw.text}"/>`;
    if (line.smooth) text += `<path stroke="${colour}" d="${path(line.xs, line.smooth, to_x, to_y, from, to).text}"/>`;
    const dots = line.part.dots && to - from <= 100 ? raw.text.split(/[ML]/).slice(1) : raw.alone;
    for (const [x, y] of dots.map(dot => dot.split(' ')))
      text += `<circle cx="${x}" cy="${y}" r="3" stroke="${colour}"/>`;
    for (let i = from; i < Math.min(to, line.ys.length); ++i)
      if (line.ys[i] === null)
        text += `<text class="bad" x="${to_x(line.xs[i])}" y="${margin.top + 8}" text-anchor="middle" ` +
          `style="fill:${colour}">&times;</text>`;
  }
  text += `</svg><line class="cursor" y1="${margin.top}" y2="${height - margin.bottom}" x1="-9" x2="-9"/>` +
    `<rect class="zoom" y="${margin.top}" height="${inner.height}" x="0" width="0"/>`;
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.innerHTML = text;
  figure.hidden = !runs.some(run => chart.parts.some(part => run.curves[part.name]));
  const unknown = state.x === 'tokens' ? visible().filter(run => !run.tokens_per_step).map(run => run.name) : [];
  const both = chart.parts.filter(part => lines.some(line => line.part === part)).length > 1;
  chart.note.textContent = (both ? 'Plain line: training. Line with circles: validation. ' : '') +
    (unknown.length ? 'The number of tokens is not known: ' + unknown.join(', ') : '');
}

function draw_all() {
  const range = state.range || whole_range();
  for (const chart of charts) draw(chart, range);
  get('whole').hidden = !state.range;
}

// ---- pointing

function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle; else high = middle; }
  return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
}
function x_at(chart, event) {
  const box = chart.svg.getBoundingClientRect();
  const pixel = (event.clientX - box.left) / box.width * chart.width - margin.left;
  const share = Math.min(1, Math.max(0, pixel / (chart.width - margin.left - margin.right)));
  return chart.range[0] + share * (chart.range[1] - chart.range[0]);
}
function point(chart, event) {
  const x = x_at(chart, event);
  for (const other of charts) {
    const cursor = other.svg.querySelector('.cursor');
    cursor.setAttribute('x1', other.to_x(x)); cursor.setAttribute('x2', other.to_x(x));
  }
  chart.tip.innerHTML = along[state.x](x) + chart.lines.map(line => {
    const i = nearest(line.xs, x), y = line.ys[i], smooth = line.smooth && line.smooth[i];
    return `<br>${swatch(line.run)}${escape(line.run.name)}${line.part.what ? ', ' + line.part.what : ''} <b>${y === null ? 'not finite' : short(y)}</b>` +
      (typeof smooth === 'number' ? `, smooth ${short(smooth)}` : '') + ` (${along[state.x](line.xs[i])})`;
  }).join('');
  chart.tip.hidden = !chart.lines.length;
  const left = chart.to_x(x) / chart.width > .5;
  chart.tip.style.left = left ? 'auto' : `calc(${100 * chart.to_x(x) / chart.width}% + 12px)`;
  chart.tip.style.right = left ? `calc(${100 - 100 * chart.to_x(x) / chart.width}% + 12px)` : 'auto';
  chart.tip.style.top = '2rem';
  if (state.drag !== null) {
    const zoom = chart.svg.querySelector('.zoom'), ends = [chart.to_x(state.drag), chart.to_x(x)];
    zoom.setAttribute('x', Math.min(...ends)); zoom.setAttribute('width', Math.abs(ends[0] - ends[1]));
  }
}
function leave(chart) {
  chart.tip.hidden = true;
  for (const other of charts) {
    const cursor = other.svg.querySelector('.cursor');
    cursor.setAttribute('x1', -9); cursor.setAttribute('x2', -9);
  }
}
function drop(chart, event) {
  if (state.drag === null) return;
  const ends = [state.drag, x_at(chart, event)].sort((a, b) => a - b);
  state.drag = null;
  if (chart.to_x(ends[1]) - chart.to_x(ends[0]) > 6) state.range = ends;
  draw_all();
}

function add_chart(chart) {
  const figure = document.createElement('figure');
  figure.className = chart.wide ? 'wide' : '';
  figure.innerHTML = `<h3>${chart.title}</h3><svg role="img" aria-label="${chart.title}"></svg>` +
    `<div class="tip" hidden></div><div class="note"></div>`;
  get('charts').append(figure);
  const find = what => figure.querySelector(what);
  Object.assign(chart, { figure, svg: find('svg'), tip: find('.tip'), note: find('.note') });
  chart.svg.addEventListener('pointermove', event => point(chart, event));
  chart.svg.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse' && event.button === 0) {
      state.drag = x_at(chart, event);
      event.preventDefault();  // no text is marked
    }
    point(chart, event);
  });
  chart.svg.addEventListener('pointerup', event => drop(chart, event));
  chart.svg.addEventListener('pointerleave', event => { drop(chart, event); leave(chart); });
  chart.svg.addEventListener('dblclick', () => { state.range = null; draw_all(); });
}

// ---- samples

const sample_steps = [...new Set(runs.flatMap(run => run.samples.map(sample => sample.step)))].sort((a, b) => b - a);
function sample_text(sample) {
  const rest = sample.text.startsWith(sample.prompt) ? sample.text.slice(sample.prompt.length) : sample.text;
  const prompt = sample.prompt === '\n' ? '' : sample.prompt;
  return `<pre><span class="prompt">${escape(prompt)}</span>${escape(rest)}</pre>`;
}
// One part per step, the newest first and open, with the runs side by side.
function show_samples() {
  get('texts').innerHTML = sample_steps.map((step, i) => {
    const columns = visible().map(run => {
      const list = run.samples.filter(sample => sample.step === step);
      return list.length ? `<div>${swatch(run)}${escape(run.name)}${list.map(sample_text).join('')}</div>` : '';
    }).join('');
    return columns && `<details${i ? '' : ' open'}><summary>step ${whole(step)}</summary>` +
      `<div class="samples">${columns}</div></details>`;
  }).join('');
  get('kept').textContent = visible().filter(run => run.samples.length < run.all_samples)
    .map(run => `${run.name}: ${whole(run.samples.length)} of ${whole(run.all_samples)} samples`).join('; ');
}

// ---- the table

function flatten(value, name, into) {
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    for (const key of Object.keys(value)) flatten(value[key], name ? name + '.' + key : key, into);
  else into.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  return into;
}
function results(run) {
  const curve = name => run.curves[name] || { step: [], value: [] };
  const last = name => [...curve(name).value].reverse().find(y => y !== null);
  const rows = new Map(), number = y => y === undefined ? '–' : short(y);
  rows.set('steps', whole(run.steps) + (run.done ? ', finished' : ''));
  if (run.resumed.length) rows.set('resumed from', run.resumed.map(whole).join(', '));
  rows.set('time', time(run.seconds));
  rows.set('last loss', number(last('loss')));
  rows.set('last validation loss', number(last('validation_loss')));
  if (run.final) rows.set('final validation loss', `${number(run.final.loss ?? undefined)}, over ` +
    `${typeof run.final.tokens === 'number' ? whole(run.final.tokens) : 'more'} tokens`);
  const { step, value } = curve('validation_loss');
  const best = value.reduce((b, y, i) => y !== null && (b < 0 || y < value[b]) ? i : b, -1);
  rows.set('best validation loss', best < 0 ? '–' : `${short(value[best])} at step ${whole(step[best])}`);
  if (run.not_finite) rows.set('losses that are not finite', whole(run.not_finite));
  return rows;
}
function table_rows(maps, mark, only) {
  const names = [...new Set(maps.flatMap(map => [...map.keys()]))];
  return names.map(name => {
    const values = maps.map(map => map.has(name) ? map.get(name) : '–');
    const differs = mark && values.some(value => value !== values[0]);
    if (only && !differs) return '';
    return `<tr class="${differs ? 'differs' : ''}"><th scope="row">${differs ? '≠ ' : ''}${escape(name)}</th>` +
      values.map(value => `<td>${escape(value)}</td>`).join('') + '</tr>';
  }).join('');
}
function show_settings() {
  const only = get('only').checked, about = run => {
    const { event, step, ...start } = run.start;
    return flatten(run.config, '', flatten(start, '', new Map()));
  };
  const heads = runs.map(run => `<th>${swatch(run)}${escape(run.name)}</th>`).join('');
  get('settings').innerHTML = `<thead><tr><th></th>${heads}</tr></thead>` +
    `<tbody>${table_rows(runs.map(results), false, false)}</tbody>` +
    `<tbody>${table_rows(runs.map(about), runs.length > 1, only)}</tbody>`;
}

// ---- start

runs.forEach((run, i) => {
  run.colour = colours[i % colours.length];
  run.on = true;
  const button = document.createElement('button');
  button.innerHTML = swatch(run) + escape(run.name);
  button.setAttribute('aria-pressed', 'true');
  button.addEventListener('click', () => {
    run.on = !run.on;
    button.setAttribute('aria-pressed', String(run.on));
    draw_all();
    if (sample_steps.length) show_samples();
  });
  get('legend').append(button);
});
get('title').textContent = runs.length === 1 ? runs[0].name : runs.length + ' runs';
get('warnings').innerHTML =
  runs.flatMap(run => run.warnings).map(text => `<p class="warning">${escape(text)}</p>`).join('');
charts.forEach(add_chart);
document.querySelectorAll('input[name=x]').forEach(radio => {
  if (radio.value === 'tokens') radio.disabled = !runs.some(run => run.tokens_per_step);
  radio.addEventListener('change', () => { state.x = radio.value; state.range = null; draw_all(); });
});
function choose_smoothing() {
  const at = get('smooth').value / 100;
  state.smooth = at ? .001 * 200 ** at : 0;
  get('smoothed').textContent = at ? `over ${+(100 * state.smooth).toPrecision(2)} %` : 'off';
}
choose_smoothing();
get('smooth').addEventListener('input', () => { choose_smoothing(); draw_all(); });
get('log').addEventListener('change', event => { state.log = event.target.checked; draw_all(); });
get('whole').addEventListener('click', () => { state.range = null; draw_all(); });
if (sample_steps.length) {
  get('samples').hidden = false;
  show_samples();
}
get('choice').hidden = runs.length < 2;
get('only').addEventListener('change', show_settings);
show_settings();
draw_all();
let waiting = 0;
window.addEventListener('resize', () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(draw_all); });
)js";

}  // namespace tensorgrad::tool
