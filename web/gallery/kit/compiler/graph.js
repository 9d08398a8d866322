// The tab "Graph": what each stage of the compiler made, as a picture where it is a graph, and as
// text.
import { h, inPieces, roving, siteLink } from './dom.js';
import { drawGraph } from './picture.js';
import { isGraph } from './text.js';

/** `stages` lists what the compiler does: [{ name, what, from, to }]. */
export function graphTab(element, { program, stages, signal }) {
  let stage = 'differentiate',
    view = 'picture',
    turn = new AbortController();
  const texts = new Map();
  const list = h('div', { class: 'stages', role: 'radiogroup', 'aria-label': 'Stages' });
  for (const { name, what } of stages) {
    const radio = h('button', {
      type: 'button',
      role: 'radio',
      class: 'choice',
      'data-stage': name,
      title: what,
      text: name,
      on: { click: () => choose(name) },
    });
    list.append(radio);
  }
  const sentence = h('p', { class: 'sentence' });
  const tools = h('div', { class: 'tools' });
  const body = h('div', { class: 'graph' });
  element.append(list, h('div', { class: 'bar' }, sentence, tools), body);
  roving(list, '.choice', () => {});
  list.addEventListener('keydown', ({ key }) => {
    if (key.startsWith('Arrow') || key === 'Home' || key === 'End') document.activeElement.click();
  });

  async function choose(name) {
    stage = name;
    turn.abort();
    turn = new AbortController();
    const { signal: mine } = turn;
    for (const radio of list.children) {
      const on = radio.dataset.stage === name;
      radio.setAttribute('aria-checked', on);
      radio.setAttribute('tabindex', on ? 0 : -1);
    }
    const { what, from, to } = stages.find((each) => each.name === name);
    sentence.replaceChildren(
      h('strong', { text: `After ${name}: ` }),
      `${what}.`,
      h('span', { class: 'kinds', text: ` ${from} → ${to}` }),
    );
    element.dataset.shown = '';
    if (!texts.has(name)) texts.set(name, program.show(name));
    let text;
    try {
      text = await texts.get(name);
    } catch (error) {
      texts.delete(name);
      if (!mine.aborted) body.replaceChildren(h('p', { class: 'problem', text: error.message }));
      return;
    }
    if (mine.aborted || signal.aborted) return;
    tools.replaceChildren();
    const picture = isGraph(text);
    if (picture) tools.append(switcher());
    if (picture && view === 'picture') await drawGraph(body, tools, text, mine);
    else await showText(body, text, mine);
    if (!mine.aborted) element.dataset.shown = name;
  }
  function switcher() {
    return h(
      'span',
      { class: 'switch', role: 'group', 'aria-label': 'View' },
      ...['picture', 'text'].map((name) =>
        h('button', {
          type: 'button',
          'aria-pressed': String(name === view),
          text: name === 'picture' ? 'Picture' : 'Text',
          on: {
            click: () => {
              view = name;
              choose(stage);
            },
          },
        }),
      ),
    );
  }
  signal.addEventListener('abort', () => turn.abort());
  return choose(stage);
}

// The text of a stage, line by line, with the lines of the page's source as links.
async function showText(body, text, signal) {
  const pre = h('pre', { class: 'text', tabindex: 0, 'aria-label': 'The text of the stage' });
  body.replaceChildren(pre);
  const lines = text.trimEnd().split('\n');
  const some = 100; // lines of a part, which is laid out only when it is seen
  await inPieces(
    (function* () {
      for (let i = 0; i < lines.length; i += some) {
        const part = h('span', { class: 'part' });
        for (const line of lines.slice(i, i + some)) {
          part.append(...linked(line), '\n');
          yield;
        }
        pre.append(part);
      }
    })(),
    signal,
  );
}

// A line, in which the line of the page's source is a link.
function linked(line) {
  const place = /( {2}@ |# (?:[^,\n]*, )?at )(\S+?):(\d+)/.exec(line);
  if (!place) return [line];
  const [all, before, file, number] = place;
  const site = { file: file.split('/').at(-1), line: Number(number) };
  return [
    line.slice(0, place.index) + before,
    siteLink(site),
    line.slice(place.index + all.length),
  ];
}
