// What a page does with its model between two rounds: open it on a device, begin a run, go on with
// a stored one, keep it, save it to a file and load it.
import { download, grouped } from './frame.js';
import { Run, stepOf } from './run.js';
import { State, trains } from './states.js';
import { forget, store, stored } from './storage.js';
import { Tempo } from './tempo.js';

export const newSeed = () => Math.floor(Math.random() * 2 ** 31);

/** Opens the model on a device. The caller closes the one that was open before. */
export async function open(page, device) {
  const { spec, small, threads, frame } = page;
  const { seed, rate } = page.run;
  const onProgress = ({ work, done, total }) => page.say(`${work}: ${done} of ${total}`);
  const run = { device, threads, seed, onProgress };
  const redraw = () => page.later(() => page.draw());
  page.subject = await spec.open({ run, rate, small, redraw });
  page.rateSet = undefined;
  page.say('');
  watch(page);
  await frame.showDevice(page.subject.train, threads);
}

export function close(subject) {
  subject?.destroy?.();
  subject?.train.destroy();
}

/** Listens to the handle of the model, which a reset may have replaced. */
function watch(page) {
  const { train } = page.subject;
  if (page.watched === train) return;
  page.watched = train;
  train.addEventListener('devicelost', ({ message }) => {
    if (page.watched !== train) return;
    page.say(`The device was lost: ${message} The page opens it again.`);
    page.enter('lose');
  });
  train.addEventListener('recovered', ({ repeatedSteps }) => {
    if (page.watched !== train) return;
    const steps = repeatedSteps === 1 ? '1 step' : `${grouped(repeatedSteps)} steps`;
    page.say(`The device was lost. The page goes on where it was: it repeated ${steps}.`);
    page.enter('recover');
    void page.frame.showDevice(train, page.threads);
  });
}

/** Looks for a stored run, and asks whether to go on with it. */
export async function find(page) {
  const run = await stored(page.key);
  const found = run !== undefined && (await restore(page, run));
  await page.draw();
  if (!found) return page.enter(page.paused ? 'pause' : 'start');
  page.enter('ask');
  page.parts.asked.textContent = `You trained this page for ${grouped(run.step)} steps.`;
}

/** Goes on with a stored run if it belongs to this model. Otherwise it is dropped. */
async function restore(page, run) {
  try {
    await page.subject.train.load(run.checkpoint);
    replace(page, new Run(run));
    return true;
  } catch {
    await forget(page.key);
    await begin(page);
    page.say('A stored run was dropped: it belongs to another version of this model.');
    return false;
  }
}

/** The page goes on with another run. The model has its weights. */
function replace(page, run) {
  page.run = run;
  page.limit = run.step + page.portion;
  page.tempo = new Tempo();
  page.rateSet = undefined;
  page.frame.showRate(run.rate);
}

/** A run from its first step. */
async function begin(page) {
  const { subject } = page;
  const seed = page.fixedSeed ?? newSeed();
  if (!subject.replaces) await subject.train.reset({ seed });
  await subject.reset?.({ seed });
  watch(page);
  replace(page, new Run({ seed, rate: page.run.rate }));
}

export async function reset(page) {
  await begin(page);
  await forget(page.key);
  page.problem('');
  page.say('');
  await page.draw();
}

/** Stores the run. */
export async function keep(page) {
  page.keptAt = performance.now();
  if (page.run.step === 0) return;
  const checkpoint = await page.subject.train.save();
  if ((await store(page.key, page.run.stored(checkpoint))) || page.toldStorage) return;
  page.toldStorage = true;
  page.say('The browser does not store this run. The button Save makes a file of it.');
}

export async function save(page) {
  page.problem('');
  download(await page.subject.train.save(), `${page.spec.name}.safetensors`);
}

export async function load(page, file) {
  page.problem('');
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const info = await page.subject.train.load(bytes);
    const { seed, rate } = page.run;
    replace(page, new Run({ seed: info?.seed ?? seed, rate, step: info?.step ?? stepOf(bytes) }));
  } catch (error) {
    const [reason] = error.message.split('\n'); // the rest is for programmers
    return page.problem(`${file.name} could not be loaded. ${reason}`);
  }
  if (page.state === State.asking) page.enter('pause');
  page.say(`${file.name}: step ${grouped(page.run.step)}.`);
  await page.draw();
}

/** Opens the model on another device with the weights of now. A failure changes nothing. */
export async function move(page, device) {
  const { subject, state, parts } = page;
  page.enter('open');
  page.problem('');
  if (!subject) {
    page.device = device;
    await open(page, device);
    return find(page);
  }
  try {
    const checkpoint = await subject.train.save();
    await open(page, device);
    await page.subject.train.load(checkpoint);
    page.device = device;
    close(subject);
  } catch (error) {
    if (page.subject !== subject) close(page.subject);
    page.subject = subject;
    watch(page);
    parts.device.value = page.device;
    page.say('');
    page.problem(error.message);
    await page.frame.showDevice(subject.train, page.threads);
  }
  page.tempo = new Tempo();
  await page.draw();
  page.showCompiler();
  if (state === State.asking) page.enter('ask');
  else page.enter(trains(state) ? 'start' : 'pause');
}
