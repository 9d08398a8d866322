// Charts of a number over the steps, drawn by uPlot: each value in a faint line, and a smooth one.
import uPlot from 'vendor/uPlot.esm.js';

import { colour } from './draw.js';

const link = document.createElement('link');
link.rel = 'stylesheet';
link.href = new URL('../vendor/uPlot.min.css', import.meta.url);
document.head.append(link);

const dark = matchMedia('(prefers-color-scheme: dark)');

// The mean of the neighbours on both sides, fewer at the ends: it does not lag behind the values.
// Where the axis is logarithmic, it is the mean of the logarithms.
function smoothed(values, logarithmic) {
  const [to, from] = logarithmic ? [Math.log, Math.exp] : [Number, Number];
  const sums = [0];
  for (const value of values) sums.push(sums.at(-1) + to(value));
  const most = Math.ceil(values.length / 40);
  return values.map((_, i) => {
    const reach = Math.min(most, i, values.length - 1 - i);
    return from((sums[i + reach + 1] - sums[i - reach]) / (2 * reach + 1));
  });
}

const short = (value) =>
  value !== 0 && (Math.abs(value) < 0.01 || Math.abs(value) >= 1e5)
    ? value.toExponential(0).replace('+', '')
    : String(Number(value.toPrecision(3)));

const texts = (_, marks) => marks.map((mark) => (mark === null ? '' : short(mark)));
// Of the marks of a logarithmic axis, the powers of ten.
const powers = (_, marks) =>
  marks.map((mark) => (Number.isInteger(Math.round(Math.log10(mark) * 1e6) / 1e6) ? mark : null));
const tens = (axis) => ({
  ...axis,
  filter: powers,
  grid: { ...axis.grid, filter: powers },
  ticks: { ...axis.ticks, filter: powers },
});

/** A chart of a History in `element`. The axis is logarithmic while all values are positive. */
export class Chart {
  constructor(element, label) {
    this.element = element;
    this.label = label;
    new ResizeObserver(() => this.fit()).observe(element);
    dark.addEventListener('change', () => this.build());
  }

  get size() {
    return { width: this.element.clientWidth, height: this.element.clientHeight };
  }
  fit() {
    const { width, height } = this.size;
    if (this.plot && width && (width !== this.plot.width || height !== this.plot.height))
      this.plot.setSize({ width, height });
  }

  draw(history) {
    this.history = history;
    const logarithmic = this.label.logarithmic && history.values.every((value) => value > 0);
    if (!this.plot || this.logarithmic !== logarithmic) {
      this.logarithmic = logarithmic;
      this.build();
    } else this.plot.setData(this.data());
  }

  data() {
    const { steps, values } = this.history;
    return [steps, values, smoothed(values, this.logarithmic)];
  }

  build() {
    if (!this.history) return;
    this.plot?.destroy();
    const axis = {
      stroke: colour('--faint'),
      font: '12px system-ui, sans-serif',
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line'), width: 1 },
    };
    const y = this.logarithmic ? { distr: 3, log: 10 } : {};
    const options = {
      ...this.size,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false }, y },
      axes: [
        { ...axis, size: 28, values: (_, marks) => marks.map((mark) => mark.toLocaleString('en')) },
        (this.logarithmic ? tens : (each) => each)({ ...axis, size: 52, values: texts }),
      ],
      series: [
        {},
        { stroke: colour(this.label.faint), width: 1, points: { show: false } },
        { stroke: colour(this.label.strong), width: 2, points: { show: false } },
      ],
    };
    this.plot = new uPlot(options, this.data(), this.element);
    this.plot.root.ariaHidden = 'true'; // the element has a name
  }
}
