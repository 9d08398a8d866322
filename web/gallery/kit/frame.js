// What the kit adds around a page: links, controls, status, charts, compiler and source; and what
// they show.
import { Chart } from './chart.js';
import { State, trains } from './states.js';

const top = `
  <nav class="top" aria-label="Site"><a href="../index.html">Gallery</a>
  <a href="../guide.html">Guide</a> <a href="../ops.html">Ops</a></nav>`;

const controls = `
  <div class="controls" role="group" aria-label="Training">
    <span class="buttons">
      <button type="button" id="start" class="main" disabled>Start</button>
      <button type="button" id="reset" disabled>Reset</button>
      <button type="button" id="save" disabled>Save</button>
      <label class="button">Load
        <input type="file" id="load" accept=".safetensors" class="unseen"></label>
    </span>
    <label class="rate">Learning rate
      <input type="range" id="rate" min="-2" max="1" step="0.05">
      <output id="rate-value" for="rate" aria-live="off"></output></label>
    <label>Device
      <select id="device">
        <option value="auto">automatic</option>
        <option value="webgpu">GPU</option>
        <option value="cpu">CPU</option>
      </select></label>
  </div>
  <output id="status" class="numbers" aria-live="off" data-state="opening">
    <span class="state"></span>
    <span>step <b class="step">0</b></span>
    <span>loss <b class="loss">–</b></span>
    <span class="scored" hidden><span class="score-name"></span> <b class="score">–</b></span>
    <span class="speed"></span>
  </output>
  <p class="device" id="where"></p>
  <p class="note" role="status" id="note"></p>
  <div class="question" id="question" role="group" aria-labelledby="asked" hidden>
    <p id="asked" role="status"></p>
    <button type="button" id="go-on" class="main">Go on</button>
    <button type="button" id="afresh">Start afresh</button>
  </div>
  <div role="alert" id="problem"></div>`;

const below = `
  <section class="inside">
    <details id="compiler"><summary>Look inside the compiler</summary><div></div></details>
    <section id="source"><h2>The source of this page</h2></section>
  </section>`;

function fragment(html) {
  const template = document.createElement('template');
  template.innerHTML = html;
  return template.content;
}

function chartFigure(id, label) {
  const figure = document.createElement('figure');
  figure.innerHTML = '<figcaption></figcaption><div class="chart" role="img"></div>';
  figure.querySelector('figcaption').textContent = label;
  const chart = figure.querySelector('.chart');
  chart.id = id;
  chart.setAttribute('aria-label', `${label}, over the steps`);
  return figure;
}

// Adds the frame to the page's own elements, and returns all that have an id, by it.
function addFrame({ loss, score }) {
  const main = document.querySelector('main');
  const stage = main.querySelector('.stage');
  main.before(fragment(top));
  stage.before(fragment(controls));
  const charts = document.createElement('div');
  charts.className = 'charts';
  charts.append(chartFigure('losses', `Loss: ${loss}`));
  if (score) charts.append(chartFigure('scores', score[0].toUpperCase() + score.slice(1)));
  stage.append(charts);
  main.append(fragment(below));
  const parts = {};
  for (const element of document.querySelectorAll('[id]')) parts[element.id] = element;
  if (score) {
    parts.status.querySelector('.score-name').textContent = score;
    parts.status.querySelector('.scored').hidden = false;
  }
  return parts;
}

const names = {
  opening: 'Opening …',
  asking: 'Waiting',
  running: 'Training',
  paused: 'Paused',
  hidden: 'In the background',
  lost: 'Device lost',
  failed: 'Stopped',
};

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export class Frame {
  constructor(spec) {
    this.spec = spec;
    this.parts = addFrame(spec);
    this.losses = new Chart(this.parts.losses, {
      logarithmic: true, faint: '--accent-faint', strong: '--accent',
    });
    if (spec.score)
      this.scores = new Chart(this.parts.scores, { faint: '--second-faint', strong: '--second' });
  }

  drawCharts(losses, scores) {
    this.losses.draw(losses);
    this.scores?.draw(scores);
  }

  /** What the loop of a page is doing. */
  showState({ state, subject, run: { step, loss, score }, tempo: { speed } }) {
    const { status, start, reset, save, load, question } = this.parts;
    const on = trains(state);
    Object.assign(status.dataset, { state, step, loss: loss ?? '', score: score ?? '' });
    const show = (name, text) => write(status.querySelector(name), text);
    show('.state', names[state]);
    show('.step', grouped(step));
    show('.loss', brief(loss));
    show('.score', brief(score));
    show('.speed', on && speed ? `${grouped(Math.round(speed))} steps/s` : '');
    write(start, on ? 'Pause' : 'Start');
    for (const control of [start, reset, save, load])
      control.disabled = !subject || state === State.opening;
    question.hidden = state !== State.asking;
  }

  showRate(value) {
    const { rate, 'rate-value': text, status } = this.parts;
    rate.value = Math.log10(value / this.spec.rate);
    text.textContent = Number(value.toPrecision(2));
    rate.setAttribute('aria-valuetext', text.textContent);
    status.dataset.rate = value;
  }

  /** Where the model of a handle is computed, and why not on the GPU. */
  async showDevice({ device = 'cpu', gpu, threads }, wanted) {
    const { status, where } = this.parts;
    status.dataset.device = device;
    if (device !== 'cpu') {
      const name = await gpuName();
      where.textContent = name ? `GPU: ${name}` : 'GPU';
      return;
    }
    const count = threads ?? wanted;
    const why = gpu && gpu.reason !== 'not-asked' ? ` ${gpu.message}` : '';
    where.textContent = `CPU, ${count === 1 ? '1 thread' : `${count} threads`}.${why}`;
  }
}

const digits = new Intl.NumberFormat('en');
/** 1234567 is '1,234,567'. */
export const grouped = (number) => digits.format(number);

// Three digits: '0.00312', '2.00', '4.1e-7'.
function brief(number) {
  if (number === undefined || !Number.isFinite(number)) return '–';
  if (number !== 0 && Math.abs(number) < 1e-4) return number.toExponential(1);
  if (number === 0) return '0';
  return Math.abs(number) >= 1000 ? grouped(Math.round(number)) : number.toPrecision(3);
}

// The name of the page's GPU, as far as the browser tells it.
async function gpuName() {
  try {
    const { info } = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
    return info.description || `${info.vendor} ${info.architecture}`.trim();
  } catch {
    return '';
  }
}

/** Offers bytes as a file. */
export function download(bytes, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Lets the browser do what waits: draw, react to the visitor. */
export function pause() {
  if (globalThis.scheduler?.yield) return scheduler.yield();
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
