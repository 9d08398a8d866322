// Runs the script of a page of `tg plot` without a browser: `node run_page.js PAGE`. Stands in for as much of the DOM
// as the script uses, tries every control, and prints what was drawn as JSON.
'use strict';
const fs = require('fs');
const page = fs.readFileSync(process.argv[2], 'utf8');
const data = page.match(/<script type="application\/json" id="runs">([^]*?)<\/script>/)[1];
const script = page.match(/<script>([^]*?)<\/script>/)[1];

class Element {
  constructor(text) {
    Object.assign(this, { textContent: text || '', innerHTML: '', style: {}, attributes: {}, listeners: {}, inside: {},
                          clientWidth: 600, children: [] });
  }
  querySelector(what) { return this.inside[what] = this.inside[what] || new Element(); }
  setAttribute(name, value) { this.attributes[name] = value; }
  append(child) { this.children.push(child); }
  getBoundingClientRect() { return { left: 0, width: 600 }; }
  addEventListener(event, act) { this.listeners[event] = act; }
  fire(event, more) { this.listeners[event]({ target: this, preventDefault() {}, ...more }); }
}
const elements = { runs: new Element(data) };
for (const [, id] of page.matchAll(/id="([a-z]+)"/g)) elements[id] = elements[id] || new Element();
elements.smooth.value = 40;
const axes = ['step', 'tokens', 'seconds'].map(value => Object.assign(new Element(), { value }));
const stand_ins = {
  document: { getElementById: id => elements[id], createElement: () => new Element(), querySelectorAll: () => axes },
  window: { addEventListener() {} }, requestAnimationFrame: act => act(), cancelAnimationFrame() {},
};
new Function(...Object.keys(stand_ins), script)(...Object.values(stand_ins));

const charts = elements.charts.children.map(figure => ({ figure, svg: figure.querySelector('svg') }));
const shown = () => charts.filter(chart => !chart.figure.hidden);
const count = (text, what) => text.split(what).length - 1;
const report = {
  title: elements.title.textContent,
  charts: shown().map(chart => chart.figure.innerHTML.match(/<h3>(.*?)<\/h3>/)[1]),
  paths: shown().map(chart => count(chart.svg.innerHTML, '<path')),
  dashed: count(charts[0].svg.innerHTML, 'class="base"'),
  resumes: count(charts[0].svg.innerHTML, 'class="resume"'),
  axes: shown().map(chart => [...chart.svg.innerHTML.matchAll(/class="axis"[^>]*>([^<]*)</g)].map(found => found[1])),
  circles: shown().map(chart => count(chart.svg.innerHTML, '<circle')),
  marks: count(charts[0].svg.innerHTML, '&times;'),
  samples: elements.texts.innerHTML,
  differs: count(elements.settings.innerHTML, 'class="differs"'),
  settings: elements.settings.innerHTML,
};
charts[0].svg.fire('pointermove', { clientX: 599 });
report.tip = charts[0].figure.querySelector('.tip').innerHTML;
report.unclean = [];
const controls = [
  () => axes[1].fire('change'), () => axes[2].fire('change'), () => axes[0].fire('change'),
  () => { elements.log.checked = true; elements.log.fire('change'); },
  () => { elements.smooth.value = 0; elements.smooth.fire('input'); },
  () => charts[0].svg.fire('pointerdown', { clientX: 100, pointerType: 'mouse', button: 0 }),
  () => charts[0].svg.fire('pointermove', { clientX: 300 }), () => charts[0].svg.fire('pointerup', { clientX: 300 }),
  () => charts[0].svg.fire('dblclick'), () => charts[0].svg.fire('pointerleave', { clientX: 0 }),
  () => { elements.only.checked = true; elements.only.fire('change'); },
  () => elements.legend.children[0].fire('click'),
];
controls.forEach((use, i) => {
  use();
  for (const chart of shown()) if (/NaN|Infinity|undefined/.test(chart.svg.innerHTML)) report.unclean.push(i);
});
report.only = elements.settings.innerHTML;
report.left = count(charts[0].svg.innerHTML, '<path');
console.log(JSON.stringify(report));
