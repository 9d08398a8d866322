// The page of `tg bench --profile`. It holds the data as JSON, one profile after the other. A short
// script draws bars of phase, kind and kernel along time, and a sortable table. SVG is written as
// text, because creating its elements one by one would need a namespace URL.
#include "profile.h"

namespace tensorgrad::tool {

namespace {

constexpr const char* kHead = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tensorgrad profile</title>
<style>
  body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 1200px; padding: 0 1rem;
         color: #1c2430; background: #fff; }
  h1 { font-size: 1.3rem; margin: 0 0 .3rem; }
  h2 { font-size: 1.05rem; margin: 2rem 0 .2rem; }
  p { margin: .2rem 0 .6rem; color: #5a6675; }
  svg { display: block; width: 100%; }
  svg rect { stroke: #fff; stroke-width: .5; }
  svg rect:hover, svg rect.on { stroke: #000; stroke-width: 1.5; }
  svg text { font-size: 12px; fill: #1c2430; pointer-events: none; }
  svg text.axis { fill: #5a6675; }
  svg line { stroke: #8a95a3; }
  .scroll { overflow-x: auto; }
  .detail { min-height: 3em; font-variant-numeric: tabular-nums; color: #1c2430; }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  th, td { text-align: right; padding: .15rem .5rem; border-bottom: 1px solid #e4e8ee; white-space: nowrap; }
  th { cursor: pointer; position: sticky; top: 0; background: #fff; }
  label { white-space: nowrap; }
  .text { text-align: left; }
  td.ops { text-align: left; max-width: 24rem; overflow: hidden; text-overflow: ellipsis; }
  tr:hover td { background: #f3f6fa; }
  .swatch { display: inline-block; width: .75em; height: .75em; margin-right: .4em; border-radius: 2px; }
  @media (prefers-color-scheme: dark) {
    body, th { background: #14181f; color: #e3e8ef; }
    .detail { color: #e3e8ef; }
    p, svg text.axis { color: #98a4b3; fill: #98a4b3; }
    td, th { border-color: #2a323d; }
    tr:hover td { background: #1d242e; }
    svg rect { stroke: #14181f; }
    svg rect:hover, svg rect.on { stroke: #fff; }
  }
</style>
</head>
<body>
<h1>Where the time of a step goes</h1>
<p>Each kernel was timed alone. In training, independent kernels share a dispatch and run side by side, and the host
takes part, so a step does not take the sum of these times: <code>tg bench</code> measures it. From top to bottom, the bars
are the step, its phases, their kinds of kernels and the kernels.
Point at a bar for its numbers. Click a heading to sort.</p>
<main></main>
<script type="application/json" id="profiles">
)html";

constexpr const char* kTail = R"html(
</script>
<script>
'use strict';
const profiles = JSON.parse(document.getElementById('profiles').textContent);
const colours = { matmul: '#f2a65a', rows: '#7fb5e6', columns: '#8fd1b0', single: '#c9a0dc', copy: '#b8bfc8',
                  forward: '#a9d3f5', backward: '#f6c6a0', update: '#bfe3c3' };
const height = 30;

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escape = text => String(text).replace(/[&<>"]/g, c => entities[c]);
const number = x => x.toLocaleString('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const whole = x => x.toLocaleString('en');
const short = (text, length) => text.length <= length ? text : text.slice(0, length - 1) + '…';

function words(kernel, total) {
  return `kernel ${kernel.kernel}: ${kernel.name}\n` + (kernel.where ? kernel.where + '\n' : '') +
    `${number(kernel.us)} us, ${number(100 * kernel.us / total)} %, ${number(kernel.gflops)} GFLOP/s, ` +
    `${number(kernel.gb_per_s)} GB/s, ${whole(kernel.dispatches)} dispatch${kernel.dispatches === 1 ? '' : 'es'}, ` +
    `${kernel.phase}, ${kernel.kind}`;
}

// Neighbours with the same value of `key` become one bar.
function runs(bars, key) {
  const out = [];
  for (const bar of bars) {
    const last = out[out.length - 1];
    if (last && last.value === key(bar)) { last.us += bar.kernel.us; last.count += 1; }
    else out.push({ value: key(bar), label: key(bar).split('/').pop(), x: bar.x, us: bar.kernel.us, count: 1 });
  }
  return out;
}

// Round numbers along the time axis, about one per 100 pixels.
function ticks(total, width) {
  const rough = total / Math.max(2, width / 100), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * .999), list = [];
  for (let i = 0; i * step <= total * 1.000001; ++i) list.push(i * step);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return list.map(us => [us, us.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })]);
}

function draw(profile, grouped, width) {
  const total = profile.total;
  let order = [...profile.profile];
  if (grouped) {
    const phases = ['forward', 'backward', 'update'];
    const rank = k => [phases.indexOf(k.phase), k.kind];
    const time = {};
    for (const k of order) time[k.phase + k.kind] = (time[k.phase + k.kind] || 0) + k.us;
    order.sort((a, b) => rank(a)[0] - rank(b)[0] || time[b.phase + b.kind] - time[a.phase + a.kind] ||
                         (a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : b.us - a.us));
  }
  let x = 0;
  const bars = order.map(kernel => { const bar = { kernel, x }; x += kernel.us; return bar; });
  const scale = width / total;
  const rect = (row, from, us, colour, label, tip, index) => {
    const w = us * scale, left = from * scale, room = Math.floor((w - 8) / 7);
    const text = room < 3 ? '' : `<text x="${left + 4}" y="${row * height + 19}">${escape(short(label, room))}</text>`;
    return `<rect x="${left}" y="${row * height}" width="${Math.max(w, .2)}" height="${height - 2}" fill="${colour}"` +
      `${index === undefined ? '' : ` data-kernel="${index}"`}><title>${escape(tip)}</title></rect>${text}`;
  };
  const whole = `${profile.model}: ${number(total)} us`;
  let svg = rect(0, 0, total, '#dfe5ec', whole, whole);
  const level = (row, key) => {
    for (const run of runs(bars, key))
      svg += rect(row, run.x, run.us, colours[run.label] || '#ccc', run.label,
                  `${run.label}: ${run.count} ${run.count === 1 ? 'kernel' : 'kernels'}, ${number(run.us)} us, ${number(100 * run.us / total)} %`);
  };
  level(1, bar => bar.kernel.phase);
  level(2, bar => bar.kernel.phase + '/' + bar.kernel.kind);
  for (const bar of bars)
    svg += rect(3, bar.x, bar.kernel.us, colours[bar.kernel.kind] || '#ccc', `${bar.kernel.kernel} ${bar.kernel.name}`,
                words(bar.kernel, total), bar.kernel.kernel);
  const bottom = 4 * height;
  for (const [us, label] of ticks(total, width)) {
    const at = us * scale, anchor = at < 20 ? 'start' : at > width - 30 ? 'end' : 'middle';
    svg += `<line x1="${at}" x2="${at}" y1="${bottom}" y2="${bottom + 5}"/>` +
      `<text class="axis" x="${at}" y="${bottom + 17}" text-anchor="${anchor}">${label}</text>`;
  }
  svg += `<text class="axis" x="${width / 2}" y="${bottom + 34}" text-anchor="middle">` +
    `time in microseconds, kernels one after the other${grouped ? ', by phase and kind' : ''}</text>`;
  return `<svg viewBox="0 0 ${width} ${bottom + 40}" role="img" aria-label="time per kernel">${svg}</svg>`;
}

const columns = [['kernel', 'kernel'], ['microseconds', 'us'], ['%', 'us'], ['GFLOP/s', 'gflops'], ['GB/s', 'gb_per_s'],
                 ['dispatches', 'dispatches'], ['phase', 'phase'], ['kind', 'kind'], ['ops', 'name'], ['where', 'where']];

function rows(profile, key, down) {
  const sorted = [...profile.profile].sort((a, b) => {
    const order = typeof a[key] === 'number' ? a[key] - b[key] : a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0;
    return down ? -order : order;
  });
  return sorted.map(k => `<tr data-kernel="${k.kernel}"><td>${k.kernel}</td><td>${number(k.us)}</td>` +
    `<td>${number(100 * k.us / profile.total)}</td><td>${number(k.gflops)}</td><td>${number(k.gb_per_s)}</td>` +
    `<td>${whole(k.dispatches)}</td><td class="text">${escape(k.phase)}</td>` +
    `<td class="text"><span class="swatch" style="background:${colours[k.kind] || '#ccc'}"></span>` +
    `${escape(k.kind)}</td>` +
    `<td class="ops" title="${escape(k.name)}">${escape(short(k.name, 60))}</td><td class="ops">${escape(k.where)}</td></tr>`).join('');
}

for (const profile of profiles) {
  profile.total = profile.profile.reduce((sum, k) => sum + k.us, 0) || 1;
  const section = document.createElement('section');
  section.innerHTML = `<h2>${escape(profile.model)}</h2>` +
    `<p>batch ${whole(profile.batch)}, on ${escape(profile.device)}: ${whole(profile.profile.length)} kernels, ` +
    `${number(profile.total)} us &nbsp; <label><input type="checkbox"> group by phase and kind</label></p>` +
    `<div class="bars"></div><p class="detail"></p><div class="scroll"><table><thead><tr>` +
    columns.map(([label], i) => `<th class="${i > 5 ? 'text' : ''}">${label}</th>`).join('') +
    `</tr></thead><tbody></tbody></table></div>`;
  const find = what => section.querySelector(what);
  document.querySelector('main').append(section);
  const redraw = () => {
    find('.bars').innerHTML = draw(profile, find('input').checked, Math.max(320, find('.bars').clientWidth || 1200));
  };
  window.addEventListener('resize', redraw);
  let sorted = '', down = false;
  const sort = key => {
    down = key === sorted ? !down : typeof profile.profile[0]?.[key] === 'number' && key !== 'kernel';
    sorted = key;
    find('tbody').innerHTML = rows(profile, key, down);
  };
  find('input').addEventListener('change', redraw);
  section.querySelectorAll('th').forEach((th, i) => th.addEventListener('click', () => sort(columns[i][1])));
  section.addEventListener('mouseover', event => {
    const over = event.target.closest('[data-kernel]');
    section.querySelectorAll('rect.on').forEach(bar => bar.classList.remove('on'));
    if (!over) return;
    const kernel = profile.profile[over.dataset.kernel];
    find('.detail').innerText = words(kernel, profile.total);
    find(`rect[data-kernel="${kernel.kernel}"]`)?.classList.add('on');
  });
  redraw();
  sort('us');
}
</script>
</body>
</html>
)html";

}  // namespace

std::string profile_page(const std::vector<Profile>& profiles) {
  Json list = Json::array();
  for (const Profile& profile : profiles) list.push_back(profile_json(profile));
  std::string data = list.dump();
  // "</" would end the script element that holds the data.
  for (std::size_t at = 0; (at = data.find("</", at)) != data.npos; at += 3)
    data.insert(at + 1, "\\");
  return kHead + data + kTail;
}

}  // namespace tensorgrad::tool
