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

/** Fills `element` with the panel for a subject of page(). */
export async function compilerPanel(element, subject) {
  open.get(element)?.abort();
  const ended = new AbortController();
  open.set(element, ended);
  const { signal } = ended;
  await styles();
  const stages = (await compilerStages()).filter(({ name }) => name !== 'load');
  if (signal.aborted) return;

  const programs = programsOf(subject);
  const head = h('div', { class: 'head' });
  const content = h('div', { class: 'content' });
  element.replaceChildren(h('div', { class: 'compiler' }, head, content));
  if (programs.length === 0) {
    content.append(h('p', { text: 'This page’s program does not show its stages.' }));
    return;
  }
  let tab = 'graph', program = programs[0], filled;
  const show = () => {
    filled?.abort();
    filled = new AbortController();
    panelOf(content, { program, stages, tab, signal: filled.signal, chosen: (name) => (tab = name) });
  };
  signal.addEventListener('abort', () => filled?.abort());
  if (programs.length > 1)
    head.append(
      h(
        'label',
        {},
        'Program ',
        h(
          'select',
          {
            on: {
              change: ({ target }) => {
                program = programs[target.selectedIndex];
                show();
              },
            },
          },
          ...programs.map(({ label }) => h('option', { text: label })),
        ),
      ),
    );
  const { train } = subject;
  if (train?.loseDevice)
    head.append(
      h('button', {
        type: 'button',
        class: 'lose',
        text: 'Lose the device',
        title: 'Takes the device away, as a crash of its driver would. The model recovers by itself.',
        on: { click: () => train.loseDevice() },
      }),
    );
  // Another device may run other code.
  train?.addEventListener?.('recovered', () => signal.aborted || show());
  element.addEventListener('click', ({ target }) => {
    const site = target.closest?.('.site');
    if (site) markLine(site.dataset.file, Number(site.dataset.line));
  }, { signal });
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

function programsOf({ train, programs = {}, batch }) {
  const feed = async () => batch?.(generator(0, 0), 0);
  return [
    { label: 'training step', handle: train, feed },
    ...Object.entries(programs).map(([label, handle]) => ({ label, handle, feed: async () => undefined })),
  ].filter(({ handle }) => handle?.show && handle.plan);
}

// The tabs of one program.
function panelOf(content, { program: { handle, feed }, stages, tab, signal, chosen }) {
  let kernels, kernel;
  const plan = () =>
    (kernels ??= handle.plan().catch((error) => {
      kernels = undefined;
      throw error;
    }));
  const bodies = {}, buttons = {}, filling = {};
  const select = (name) => {
    chosen(name);
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
    program: handle,
    stages,
    plan,
    counts: handle.counts,
    feed,
    signal,
    chosen: () => kernel,
    openShader: async (number) => {
      kernel = number;
      (await select('shaders'))?.(number);
    },
  };
  async function fill(name) {
    const body = bodies[name];
    const wait = h('p', { class: 'wait', text: 'Asking the compiler …' });
    body.append(wait);
    body.setAttribute('aria-busy', 'true');
    const inner = h('div', { class: 'inner' });
    body.prepend(inner);
    try {
      const filled = tabs.find((each) => each.name === name).fill(inner, context);
      return await filled;
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
