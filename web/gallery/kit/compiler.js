// The panel "Look inside the compiler": what each stage made of the page's own model, its plan and
// memory, the code of its kernels, and their times. A tab is filled when it is opened first.
import { compilerStages } from 'tensorgrad';

import { h } from './compiler/dom.js';
import { graphTab } from './compiler/graph.js';
import { planTab } from './compiler/plan.js';
import { shadersTab } from './compiler/shaders.js';
import { timeTab } from './compiler/time.js';
import { generator } from './random.js';
import { markLine } from './source.js';

const tabs = [
  { name: 'graph', label: 'Graph', fill: graphTab },
  { name: 'plan', label: 'Plan', fill: planTab },
  { name: 'shaders', label: 'Shaders', fill: shadersTab },
  { name: 'time', label: 'Time', fill: timeTab },
];

const open = new WeakMap(); // element -> what ends the panel in it

/** Fills `element` with the panel for a subject of page(). `tab` is the one that is open first. */
export async function compilerPanel(element, subject, tab = 'graph') {
  open.get(element)?.abort();
  const ended = new AbortController();
  open.set(element, ended);
  const { signal } = ended;
  await styles();
  const stages = (await compilerStages()).filter(({ name }) => name !== 'load');
  if (signal.aborted) return;

  const { train } = subject;
  const head = h('div', { class: 'head' });
  const content = h('div');
  element.replaceChildren(h('div', { class: 'compiler' }, head, content));
  let filled;
  const show = () => {
    filled?.abort();
    filled = new AbortController();
    fillTabs(content, { subject, train, stages, tab, signal: filled.signal, chosen });
  };
  // A reset may have replaced the model.
  function chosen(name) {
    tab = name;
    if (subject.train !== train) void compilerPanel(element, subject, tab);
  }
  const lose = h('button', {
    type: 'button',
    text: 'Lose the device',
    title: 'Takes the GPU away, as a crash of its driver would. The model recovers by itself.',
    on: { click: () => train.loseDevice() },
  });
  const offer = () => {
    lose.hidden = train.device === 'cpu'; // there is nothing that can be lost
  };
  offer();
  head.append(lose);
  // Another device may run other code.
  const recovered = () => {
    offer();
    show();
  };
  train.addEventListener('recovered', recovered, { signal });
  const mark = ({ target }) => {
    const site = target.closest('.site');
    if (site) markLine(site.dataset.file, Number(site.dataset.line));
  };
  element.addEventListener('click', mark, { signal });
  signal.addEventListener('abort', () => filled?.abort());
  show();
}

let sheet;
function styles() {
  sheet ??= new Promise((resolve) => {
    const link = h('link', {
      rel: 'stylesheet',
      href: new URL('./compiler/compiler.css', import.meta.url).href,
      on: { load: resolve, error: resolve },
    });
    document.head.append(link);
  });
  return sheet;
}

// Fills `content` with the tabs for a model. A tab asks the compiler when it is opened first.
function fillTabs(content, { subject, train, stages, tab, signal, chosen }) {
  let kernels, kernel;
  const plan = () =>
    (kernels ??= train.plan().catch((error) => {
      kernels = undefined;
      throw error;
    }));
  const bodies = {},
    buttons = {},
    filling = {};
  const select = (name) => {
    chosen(name);
    if (signal.aborted) return undefined;
    for (const { name: each } of tabs) {
      const on = each === name;
      buttons[each].setAttribute('aria-selected', on);
      buttons[each].setAttribute('tabindex', on ? 0 : -1);
      bodies[each].hidden = !on;
    }
    filling[name] ??= fill(name);
    return filling[name];
  };
  const context = {
    program: train,
    stages,
    plan,
    counts: train.counts,
    feed: async () => subject.batch?.(generator(0, 0), 0), // for a measurement
    signal,
    chosen: () => kernel,
    openShader: async (number) => {
      kernel = number;
      (await select('shaders'))?.(number);
    },
  };
  async function fill(name) {
    const body = bodies[name];
    const inner = h('div', { class: 'inner' });
    const wait = h('p', { class: 'wait', text: 'Asking the compiler …' });
    body.replaceChildren(inner, wait);
    body.setAttribute('aria-busy', 'true');
    try {
      return await tabs.find((each) => each.name === name).fill(inner, context);
    } catch (error) {
      if (signal.aborted) return undefined;
      delete filling[name]; // the next visit asks again
      body.replaceChildren(h('p', { class: 'problem', text: error.message }));
      return undefined;
    } finally {
      wait.remove();
      body.removeAttribute('aria-busy');
    }
  }
  const list = h('div', { role: 'tablist', 'aria-label': 'The compiler' });
  for (const { name, label } of tabs) {
    const id = `compiler-${name}`;
    buttons[name] = h('button', {
      type: 'button',
      role: 'tab',
      id: `${id}-tab`,
      'aria-controls': id,
      'data-tab': name,
      text: label,
      on: { click: () => select(name) },
    });
    bodies[name] = h('div', { role: 'tabpanel', id, 'aria-labelledby': `${id}-tab`, class: name });
    list.append(buttons[name]);
  }
  list.addEventListener('keydown', (event) => {
    const at = tabs.findIndex(({ name }) => buttons[name] === event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const { name } = tabs[(to + tabs.length) % tabs.length];
    buttons[name].focus();
    select(name);
  });
  content.replaceChildren(list, ...Object.values(bodies));
  select(tab);
}
