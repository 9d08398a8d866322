// A page that trains: page() adds the frame to it, and runs its loop. The states are in states.js.
//
// One loop does everything with the model, one thing after the other: jobs that the visitor asked
// for (jobs.js: reset, load, another device), otherwise rounds while the state is running. A round
// is some steps, of which only the last is read; tempo.js says how many.
import { Frame, pause } from './frame.js';
import { find, keep, newSeed, open } from './jobs.js';
import { listen } from './listen.js';
import { generator } from './random.js';
import { Run, stepOf } from './run.js';
import { sourcePanes } from './source.js';
import { State, after } from './states.js';
import { Tempo } from './tempo.js';

const leastMs = 16; // that a round takes
const busyMs = 8; // after which the main thread lets others work
const drawMs = 100; // at least, from one drawing to the next
const keepMs = 10_000; // from one stored checkpoint to the next

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
 * rounds. A model that is no handle of compile() has step(n) in place of batch(), and
 * `replaces: true` if its reset() does all of a reset.
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
  tempo = new Tempo();
  subject; // what spec.open() returned
  rateSet; // the learning rate that the model has
  drawAt = 0;
  keptAt = performance.now();
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
    const seed = Number.parseInt(url.get('seed'));
    this.fixedSeed = Number.isNaN(seed) ? undefined : seed;
    this.run = new Run({ seed: this.fixedSeed ?? newSeed(), rate: spec.rate });
    this.key = `${spec.name}${this.small ? ' small' : ''}`;
    this.frame = new Frame(spec);
    this.parts = this.frame.parts;
    sourcePanes(this.parts.source, this.spec.sources);
    listen(this);
    this.frame.showRate(this.run.rate);
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
    this.problem(error.message);
    this.enter('fail');
  }

  // ---- the loop

  async live() {
    this.later(async () => {
      await open(this, this.device);
      await find(this);
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
    const { run, tempo } = this;
    await this.setRate();
    const count = Math.max(1, Math.min(this.small ? 1 : tempo.count, this.limit - run.step));
    const began = performance.now();
    try {
      const { loss, step } = await this.steps(count);
      run.addLoss(step ?? run.step, loss);
    } catch (error) {
      // Which of the steps were made? The checkpoint knows.
      run.step = await this.subject.train.save().then(stepOf, () => run.step);
      throw error;
    }
    tempo.add(count, performance.now() - began);
    const done = run.step >= this.limit;
    if (done || performance.now() > this.drawAt) await this.draw();
    else this.show();
    if (done || performance.now() > this.keptAt + keepMs) await keep(this);
    if (done) this.enter('pause');
    const left = leastMs - (performance.now() - began);
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
  }

  async setRate() {
    const { rate } = this.run;
    if (this.rateSet === rate) return;
    await this.subject.train.setLR(rate);
    this.rateSet = rate;
  }

  /** Makes steps. Returns the result of the last one. */
  async steps(count) {
    let busySince = performance.now();
    let last;
    for (let i = 0; i < count; ++i) {
      last = await this.oneStep(i === count - 1);
      if (performance.now() - busySince < busyMs) continue;
      await pause();
      busySince = performance.now();
    }
    return value(await last.result);
  }

  /** Starts a step. The promise is in an object: a step that nobody reads is not awaited. */
  async oneStep(read) {
    const { subject, run } = this;
    const n = run.step++;
    if (subject.step) return { result: await subject.step(n) };
    const feed = await subject.batch(generator(run.seed, n), n);
    return { result: subject.train.step(feed, read ? {} : { read: false }) };
  }

  // ---- what is shown

  async draw() {
    const { run } = this;
    const began = performance.now();
    const score = await this.subject.draw?.({ step: run.step, loss: run.loss });
    if (score !== undefined) run.addScore(score);
    this.frame.drawCharts(run.losses, run.scores);
    this.show();
    // Drawing takes at most a quarter of the time.
    const ended = performance.now();
    this.drawAt = ended + Math.max(drawMs, 3 * (ended - began));
  }
  show() {
    this.frame.showState(this);
  }
  say(text) {
    this.parts.note.textContent = text;
  }
  problem(text) {
    if (!this.closed) this.parts.problem.textContent = text;
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
}
