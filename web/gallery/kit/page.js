// A page that trains: page() adds the frame to it, and runs its loop. The states are in states.js.
//
// One loop does everything with the model, one thing after the other: jobs that the visitor asked
// for (reset, load, another device), otherwise rounds while the state is running. A round is
// `count` steps, of which only the last is read; count follows the time that rounds take.
import { Frame, download, grouped, pause } from './frame.js';
import { generator } from './random.js';
import { History } from './history.js';
import { sourcePanes } from './source.js';
import { State, after, trains } from './states.js';
import { forget, store, stored } from './storage.js';

const roundMs = 50; // that a round takes
const leastMs = 16; // also if it is small
const busyMs = 8; // after which the main thread lets others work
const drawMs = 100; // at least, from one drawing to the next
const storeMs = 10_000;
const mostSteps = 1000; // of a round

/** The result of a step or a run; throws its error if it failed. */
export function value(result) {
  if (result.kind === 'failed') throw result.error;
  if (result.kind === 'aborted') throw new Aborted();
  return result;
}

/** The model was destroyed meanwhile: usually because the visitor leaves. */
class Aborted extends Error {
  constructor() {
    super('The model was destroyed.');
  }
}

/**
 * Makes a page and starts it:
 *
 *   page({
 *     name: 'sine',             // its folder, and the name of its runs in the browser's storage
 *     rate: 0.005,              // the learning rate at the start
 *     loss: 'mean squared error', score: 'accuracy', // what the charts show; score is optional
 *     sources: ['model.js', 'page.js'], threads: 1,  // the defaults
 *     async open({ run, rate, small, redraw }) {
 *       return {
 *         train: await compile({ ..., optimizer: { kind: 'adam', lr: rate }, ...run }),
 *         batch: (random, n) => ({ x, y }), // the feed of step n; random is a generator(seed, n)
 *         draw: async ({ step, loss }) => score, // draws the figures
 *         reset: async ({ seed }) => {},   // optional: what else a reset does
 *         destroy: () => {},    // optional: what else ends with the model
 *       };
 *     },
 *   });
 *
 * `small` is true where a test wants a much smaller model; redraw() asks for draw() between two
 * rounds. A model that is no handle of compile() has step(n) in place of batch(), setRate(rate) if
 * its handle has no setLR(), and `replaces: true` if its reset() does all of a reset.
 *
 * The URL may have ?device=cpu, ?threads=2, ?seed=1, ?small, ?paused, and ?steps=200, which pauses
 * after so many steps, again and again.
 */
export function page(spec) {
  void new Page(spec).live();
}

class Page {
  state = State.opening;
  jobs = [];
  step = 0;
  losses = new History();
  scores = new History();
  count = 1;
  wake = () => {};

  constructor(spec) {
    const url = new URL(location.href).searchParams;
    this.spec = { threads: 1, sources: ['model.js', 'page.js'], ...spec };
    this.small = url.has('small');
    this.portion = Number(url.get('steps')) || Infinity;
    this.limit = this.portion;
    this.paused = url.has('paused');
    this.device = url.get('device') ?? 'auto';
    this.threads = Number(url.get('threads')) || this.spec.threads;
    this.fixedSeed = url.has('seed');
    this.seed = this.fixedSeed ? Number(url.get('seed')) : newSeed();
    this.rate = spec.rate;
    this.key = `${spec.name}${this.small ? ' small' : ''}`;
    this.frame = new Frame(spec);
    this.parts = this.frame.parts;
    sourcePanes(this.parts.source, this.spec.sources);
    this.listen();
    this.frame.showRate(this.rate);
    this.show();
  }

  // ---- states

  /** An event leads to another state. */
  enter(event) {
    this.state = after(this.state, event);
    // Nothing runs in the background.
    if (this.state === State.running && document.hidden) this.state = after(this.state, 'hide');
    this.show();
    this.wake();
  }
  fail(error) {
    if (this.closed) return;
    this.parts.problem.textContent = error.message;
    this.enter('fail');
  }
  say(text) {
    this.parts.note.textContent = text;
  }

  // ---- the loop

  async live() {
    this.later(async () => {
      await this.open(this.device);
      await this.find();
    });
    while (!this.closed) {
      const job = this.jobs.shift();
      if (!job && this.state !== State.running) {
        this.busy(false);
        await new Promise((wake) => (this.wake = wake));
        continue;
      }
      this.busy(true);
      try {
        await (job ?? (() => this.round()))();
      } catch (error) {
        this.fail(error);
      }
      await pause();
    }
  }
  busy(on) {
    this.parts.status.ariaBusy = String(on);
  }
  /** Does something with the model between two rounds. */
  later(job) {
    this.jobs.push(job);
    this.wake();
  }

  async round() {
    const { subject } = this;
    if (this.rateSet !== this.rate) await this.setRate();
    const count = Math.max(1, Math.min(this.small ? 1 : this.count, this.limit - this.step));
    const began = performance.now();
    let busySince = began;
    let last;
    for (let i = 0; i < count; ++i) {
      last = await this.oneStep(subject, i === count - 1);
      if (performance.now() - busySince < busyMs) continue;
      await pause();
      busySince = performance.now();
    }
    const result = await last.result;
    if (result.kind === 'failed') await this.countAgain();
    const { loss, step } = value(result);
    const took = performance.now() - began;
    this.step = step ?? this.step;
    this.loss = loss;
    this.losses.add(this.step, loss);
    // It grows slowly, so that the beginning can be seen.
    const most = Math.min(mostSteps, Math.max(count + 1, 1.05 * count));
    this.count = Math.ceil(Math.min((count * roundMs) / took, most));
    this.meter(count);
    const done = this.step >= this.limit;
    if (done || performance.now() > (this.drawAt ?? 0)) await this.draw();
    else this.show();
    if (done || performance.now() > this.storeAt) await this.keep();
    if (done) this.enter('pause');
    const left = leastMs - (performance.now() - began);
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
  }

  /** After a failure: which of the steps were made? The checkpoint knows. */
  async countAgain() {
    this.step = stepOf(await this.subject.train.save());
  }

  /** Starts a step. The promise is in an object: a step that nobody reads is not awaited. */
  async oneStep(subject, read) {
    const n = this.step++;
    if (subject.step) return { result: await subject.step(n) };
    const feed = await subject.batch(generator(this.seed, n), n);
    return { result: subject.train.step(feed, read ? {} : { read: false }) };
  }

  async draw() {
    const began = performance.now();
    const score = await this.subject.draw?.({ step: this.step, loss: this.loss });
    if (score !== undefined) {
      this.score = score;
      if (this.scores.steps.at(-1) !== this.step) this.scores.add(this.step, score);
    }
    this.frame.drawCharts(this.losses, this.scores);
    this.show();
    // Drawing takes at most a quarter of the time.
    const ended = performance.now();
    this.drawAt = ended + Math.max(drawMs, 3 * (ended - began));
  }

  /** Steps per second, over the last two seconds. */
  meter(steps) {
    const now = performance.now();
    this.times = (this.times ?? []).filter(([time]) => now - time < 2000);
    this.times.push([now, steps]);
    const [[first, before]] = this.times;
    const made = this.times.reduce((sum, [, count]) => sum + count, 0) - before;
    this.speed = now > first ? (1000 * made) / (now - first) : undefined;
  }

  // ---- jobs

  /** Opens the model on a device. The caller closes the one that was open before. */
  async open(device) {
    const { spec, seed, rate, small, threads } = this;
    const onProgress = ({ work, done, total }) => this.say(`${work}: ${done} of ${total}`);
    const run = { device, threads, seed, onProgress };
    const redraw = () => this.later(() => this.draw());
    this.subject = await spec.open({ run, rate, small, redraw });
    this.rateSet = this.rate;
    this.say('');
    this.watch();
    await this.frame.showDevice(this.subject.train, this.threads);
  }

  /** Looks for a stored run, and asks whether to go on with it. */
  async find() {
    const run = await stored(this.key);
    if (run) {
      try {
        await this.restore(run);
        await this.draw();
        this.parts.asked.textContent = `You trained this page for ${grouped(this.step)} steps.`;
        return this.enter('ask');
      } catch (error) {
        await forget(this.key);
        await this.begin();
        this.say('A stored run was dropped: it belongs to another version of this model.');
      }
    }
    await this.draw();
    this.storeAt = performance.now() + storeMs;
    this.enter(this.paused ? 'pause' : 'start');
  }

  /** A run from its first step. */
  async begin() {
    const { subject, fixedSeed } = this;
    if (!fixedSeed) this.seed = newSeed();
    if (!subject.replaces) await subject.train.reset({ seed: this.seed });
    await subject.reset?.({ seed: this.seed });
    this.step = 0;
    this.limit = this.portion;
    this.loss = this.score = this.speed = undefined;
    this.losses = new History();
    this.scores = new History();
    this.times = [];
    this.count = 1;
    this.rateSet = undefined;
    this.watch();
  }

  async reset() {
    await this.begin();
    await forget(this.key);
    this.parts.problem.textContent = '';
    this.say('');
    await this.draw();
  }

  async restore({ checkpoint, step, seed, rate, losses, scores, loss }) {
    await this.subject.train.load(checkpoint);
    [this.step, this.seed, this.loss] = [step, seed, loss];
    this.limit = step + this.portion;
    this.losses = new History(losses);
    this.scores = new History(scores);
    this.rate = rate;
    this.rateSet = undefined;
    this.frame.showRate(this.rate);
  }

  /** Stores the run. */
  async keep() {
    this.storeAt = performance.now() + storeMs;
    if (this.step === 0) return;
    const { step, seed, rate, loss } = this;
    const run = {
      checkpoint: await this.subject.train.save(),
      step, seed, rate, loss,
      losses: this.losses.toJSON(),
      scores: this.scores.toJSON(),
    };
    if ((await store(this.key, run)) || this.toldStorage) return;
    this.toldStorage = true;
    this.say('The browser does not store this run. The button Save makes a file of it.');
  }

  async save() {
    download(await this.subject.train.save(), `${this.spec.name}.safetensors`);
  }

  async load(file) {
    this.parts.problem.textContent = '';
    try {
      const bytes = new Uint8Array(await file.arrayBuffer());
      const info = await this.subject.train.load(bytes);
      this.step = info?.step ?? stepOf(bytes);
      this.seed = info?.seed ?? this.seed;
      this.limit = this.step + this.portion;
    } catch (error) {
      if (this.closed) return;
      this.parts.problem.textContent = `${file.name} could not be loaded. ${error.message}`;
      return;
    }
    if (this.state === State.asking) this.enter('pause');
    this.loss = this.score = undefined;
    this.losses = new History();
    this.scores = new History();
    this.rateSet = undefined;
    this.say(`${file.name}: step ${grouped(this.step)}.`);
    await this.draw();
  }

  async setRate() {
    const { subject, rate } = this;
    if (subject.setRate) await subject.setRate(rate);
    else await subject.train.setLR?.(rate);
    this.rateSet = rate;
  }

  /** Opens the model on another device with the weights of now. A failure changes nothing. */
  async move(device) {
    const { subject, state, parts } = this;
    this.enter('open');
    parts.problem.textContent = '';
    if (!subject) {
      this.device = device;
      await this.open(device);
      return this.find();
    }
    try {
      const checkpoint = this.step > 0 ? await subject.train.save() : undefined;
      await this.open(device);
      if (checkpoint) await this.subject.train.load(checkpoint);
      this.device = device;
      close(subject);
    } catch (error) {
      if (this.subject !== subject) close(this.subject);
      this.subject = subject;
      this.watch();
      parts.device.value = this.device;
      this.say('');
      parts.problem.textContent = error.message;
      await this.frame.showDevice(this.subject.train, this.threads);
    }
    this.rateSet = undefined;
    this.count = 1;
    this.times = [];
    await this.draw();
    this.showCompiler();
    if (state === State.asking) this.enter('ask');
    else this.enter(trains(state) ? 'start' : 'pause');
  }

  // ---- what happens to the page

  /** Listens to the handle of the model, which a reset may have replaced. */
  watch() {
    const { train } = this.subject;
    if (this.watched === train) return;
    this.watched = train;
    train.addEventListener('devicelost', ({ message }) => {
      if (this.watched !== train) return;
      this.say(`The device was lost: ${message} The page opens it again.`);
      this.enter('lose');
    });
    train.addEventListener('recovered', ({ repeatedSteps }) => {
      if (this.watched !== train) return;
      const steps = repeatedSteps === 1 ? '1 step' : `${grouped(repeatedSteps)} steps`;
      this.say(`The device was lost. The page goes on where it was: it repeated ${steps}.`);
      this.enter('recover');
      void this.frame.showDevice(train, this.threads);
    });
  }

  listen() {
    const { start, reset, rate, device, save, load, 'go-on': goOn, afresh, compiler } = this.parts;
    device.value = this.device;
    start.onclick = () => {
      if (trains(this.state)) {
        this.enter('pause');
        this.later(() => this.draw());
        this.later(() => this.keep());
      } else this.start();
    };
    goOn.onclick = () => this.start();
    afresh.onclick = () => this.startAfresh();
    reset.onclick = () => {
      if (this.state === State.asking) this.startAfresh();
      else this.later(() => this.reset());
    };
    rate.oninput = () => {
      this.rate = this.spec.rate * 10 ** Number(rate.value);
      this.frame.showRate(this.rate);
    };
    device.onchange = () => this.later(() => this.move(device.value));
    save.onclick = () => this.later(() => this.save());
    load.onchange = () => {
      const [file] = load.files;
      load.value = '';
      if (file) this.later(() => this.load(file));
    };
    compiler.ontoggle = () => this.showCompiler();
    // Drawings follow the width of the page and its colours.
    const again = () => {
      if (this.drawsAgain || !this.subject) return;
      this.drawsAgain = true;
      this.later(async () => {
        this.drawsAgain = false;
        await this.draw();
      });
    };
    const main = document.querySelector('main');
    let width = main.clientWidth;
    new ResizeObserver(() => {
      if (main.clientWidth === width) return;
      width = main.clientWidth;
      again();
    }).observe(main);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
    document.addEventListener('visibilitychange', () => {
      this.enter(document.hidden ? 'hide' : 'show');
      if (document.hidden && this.state === State.hidden) this.later(() => this.keep());
    });
    addEventListener('pagehide', () => {
      this.closed = true;
      close(this.subject);
    });
    addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
  }

  start() {
    this.parts.problem.textContent = '';
    if (this.step >= this.limit) this.limit += this.portion;
    this.enter('start');
  }
  startAfresh() {
    this.later(async () => {
      await this.reset();
      this.enter('start');
    });
  }

  async showCompiler() {
    const { compiler } = this.parts;
    const [element] = compiler.getElementsByTagName('div');
    if (!compiler.open || !this.subject || this.inspected === this.subject) return;
    this.inspected = this.subject;
    try {
      const { compilerPanel } = await import('./compiler.js');
      element.replaceChildren();
      await compilerPanel(element, this.subject);
    } catch (error) {
      element.textContent = `The compiler's view could not be opened. ${error.message}`;
    }
  }

  show() {
    this.frame.showState(this, Boolean(this.subject));
  }
}

const newSeed = () => Math.floor(Math.random() * 2 ** 31);

function close(subject) {
  subject?.destroy?.();
  subject?.train.destroy();
}

/** The step that a checkpoint was written after, from the text at its start. */
function stepOf(bytes) {
  const size = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  return Number(header.__metadata__?.step ?? 0);
}
