// A graph as a picture: what layout.js places, as SVG, with layers that fold, a zoom, and the
// details of an op.
import { isSource, kindOf, makeBands, markPhases, visible } from './bands.js';
import { decimal, escape, h, inPieces, many, roving, short, siteLink, tabStop } from './dom.js';
import { nodeHeight, nodeWidth, place } from './layout.js';
import { emptyGraph, readGraph } from './text.js';

const foldedAbove = 150; // nodes: a larger graph opens with folded bands

/**
 * Draws the graph that `text` describes into `body`, and adds what changes the picture to `tools`.
 */
export async function drawGraph(body, tools, text, signal) {
  const graph = emptyGraph();
  if (!(await inPieces(readGraph(text, graph), signal))) return;
  markPhases(graph);
  const bands = makeBands(graph);
  const foldable = bands.filter(({ nodes }) => nodes.length > 2);
  const folded = new Set();
  for (const { index, update } of foldable)
    if (update || graph.nodes.length > foldedAbove) folded.add(index);

  let zoom, drawing;
  const scroll = h('div', { class: 'canvas' });
  const detail = h('div', { class: 'detail', 'aria-live': 'polite' });
  const legend = h('p', {
    class: 'legend',
    html:
      '<i class="forward"></i>forward <i class="backward"></i>backward ' +
      (bands.at(-1).update ? '<i class="update"></i>update ' : '') +
      '<i class="parameter"></i>parameter <i class="input"></i>input ' +
      '<span class="hint">Arrow keys lead from op to op.</span>',
  });
  body.replaceChildren(legend, scroll, detail);
  const foldAll = h('button', {
    type: 'button',
    on: {
      click: () => {
        const all = folded.size < foldable.length;
        folded.clear();
        if (all) for (const { index } of foldable) folded.add(index);
        draw();
      },
    },
  });
  const zoomBy = (factor) => () => setZoom(zoom * factor);
  tools.append(
    foldAll,
    h(
      'span',
      { class: 'switch', role: 'group', 'aria-label': 'Zoom' },
      h('button', {
        type: 'button',
        'aria-label': 'Smaller',
        text: '−',
        on: { click: zoomBy(0.8) },
      }),
      h('button', { type: 'button', text: 'Fit', on: { click: () => setZoom(fit()) } }),
      h('button', {
        type: 'button',
        'aria-label': 'Larger',
        text: '+',
        on: { click: zoomBy(1.25) },
      }),
    ),
  );

  let placed, svg;
  const fit = () => Math.min(1, (scroll.clientWidth - 2) / placed.width);
  function setZoom(value) {
    const middle = (scroll.scrollTop + scroll.clientHeight / 2) / (placed.height * (zoom ?? 1));
    zoom = Math.min(Math.max(value, 0.1), 3);
    svg.setAttribute('width', placed.width * zoom);
    svg.setAttribute('height', placed.height * zoom);
    scroll.scrollTop = middle * placed.height * zoom - scroll.clientHeight / 2;
  }

  async function draw(focus) {
    drawing?.abort();
    drawing = new AbortController();
    const mine = drawing.signal;
    placed = place(visible(graph, bands, folded));
    foldAll.textContent = folded.size < foldable.length ? 'Fold layers' : 'Unfold layers';
    foldAll.hidden = foldable.length === 0;
    scroll.innerHTML =
      `<svg viewBox="0 0 ${placed.width} ${placed.height}" role="group" ` +
      `aria-label="Graph of ${many(graph.nodes.length, 'op')}">` +
      '<defs><marker id="arrow" viewBox="0 0 6 6" ' +
      'refX="5.5" refY="3" markerWidth="5" markerHeight="5" orient="auto-start-reverse">' +
      '<path d="M0 0L6 3L0 6Z"/></marker></defs>' +
      '<g class="bands"></g><g class="edges"></g><g class="labels"></g><g class="nodes"></g></svg>';
    svg = scroll.firstChild;
    // A phone scrolls; it does not shrink the texts until nobody can read them.
    setZoom(zoom ?? Math.max(fit(), 0.62));
    scroll.scrollTop = 0;
    const layer = (name) => svg.querySelector(`.${name}`);
    const add = (name, html) => layer(name).insertAdjacentHTML('beforeend', html);
    const done = await inPieces(
      (function* () {
        for (const group of placed.groups) {
          add('bands', bandPicture(group, placed));
          add('labels', bandLabel(group));
          yield;
          for (let i = 0; i < group.nodes.length; i += 8) {
            add(
              'nodes',
              group.nodes
                .slice(i, i + 8)
                .map(nodePicture)
                .join(''),
            );
            yield;
          }
        }
        for (let i = 0; i < placed.edges.length; i += 16) {
          add(
            'edges',
            placed.edges
              .slice(i, i + 16)
              .map(edgePicture)
              .join(''),
          );
          yield;
        }
      })(),
      mine,
    );
    if (!done) return;
    tabStop(svg, '.node');
    if (focus !== undefined) svg.querySelector(`.band[data-band="${focus}"] .fold`)?.focus();
  }

  const find = (id) =>
    placed.groups.flatMap(({ nodes }) => nodes).find((node) => String(node.id) === id);
  roving(scroll, '.node', (item) => {
    for (const on of svg.querySelectorAll('.on')) on.classList.remove('on');
    item.classList.add('on');
    const { id } = item.dataset;
    for (const edge of svg.querySelectorAll(`[data-from="${id}"],[data-to="${id}"]`))
      edge.classList.add('on');
    detail.replaceChildren(...describe(find(id), graph));
  });
  const toggle = (target) => {
    const band = target.closest('.fold, .node.folded')?.closest('[data-band]')?.dataset.band;
    if (band === undefined) return false;
    const index = Number(band);
    if (!folded.delete(index)) folded.add(index);
    draw(index);
    return true;
  };
  scroll.addEventListener('click', ({ target }) => {
    if (target.closest('.fold')) toggle(target);
  });
  scroll.addEventListener('dblclick', ({ target }) => toggle(target));
  scroll.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    if (toggle(event.target)) event.preventDefault();
  });
  pan(scroll);
  signal.addEventListener('abort', () => drawing.abort());
  await draw();
}

// A mouse drags the picture; fingers scroll it anyway.
function pan(scroll) {
  let last;
  scroll.addEventListener('pointerdown', (event) => {
    if (event.pointerType !== 'mouse' || event.button !== 0 || event.target.closest('.node, .fold'))
      return;
    last = [event.clientX, event.clientY];
    scroll.setPointerCapture(event.pointerId);
  });
  scroll.addEventListener('pointermove', (event) => {
    if (!last) return;
    scroll.scrollLeft -= event.clientX - last[0];
    scroll.scrollTop -= event.clientY - last[1];
    last = [event.clientX, event.clientY];
  });
  for (const end of ['pointerup', 'pointercancel'])
    scroll.addEventListener(end, () => (last = undefined));
}

function bandPicture({ y, height }, { width }) {
  return `<rect x="6" y="${y}" width="${width - 12}" height="${height}" rx="6"/>`;
}

function bandLabel({ index, title, y, folded, nodes }) {
  const text = (words) => `<text x="16" y="${y + 17}">${escape(words)}</text>`;
  if (!folded && nodes.length < 3) return `<g class="band">${text(title)}</g>`;
  return (
    `<g class="band" data-band="${index}"><g class="fold" role="button" tabindex="0" ` +
    `aria-expanded="${!folded}" aria-label="${escape(title)}"><rect x="10" y="${y + 2}" ` +
    `width="${30 + 7.5 * title.length}" height="20" rx="4"/>` +
    `${text(`${folded ? '▸' : '▾'} ${title}`)}</g></g>`
  );
}

function nodePicture(node) {
  const { id, x, y, phase, band } = node;
  const kind = node.fold ? 'folded' : isSource(node) ? kindOf(node) : '';
  const title = node.fold ? many(node.ops, 'op') : titleOf(node);
  const under = node.fold ? holds(node) : (node.label ?? node.type);
  const site = node.site?.file ? `${node.site.file}:${node.site.line}` : '';
  const words = [node.fold && node.title, title, under, phase, site];
  return (
    `<g class="node ${phase} ${kind}${node.label ? ' result' : ''}" data-id="${id}" ` +
    `data-band="${band}" role="img" tabindex="-1" ` +
    `aria-label="${escape(words.filter(Boolean).join(', '))}">` +
    `<rect x="${x}" y="${y}" width="${nodeWidth}" height="${nodeHeight}" ` +
    `rx="${isSource(node) ? nodeHeight / 2 : 4}"/>` +
    `<text class="op" x="${x + 12}" y="${y + 15}">${escape(short(title, site ? 14 : 22))}</text>` +
    `<text class="type" x="${x + 12}" y="${y + 29}">${escape(short(under, 25))}</text>` +
    (site && !isSource(node)
      ? `<text class="at" x="${x + nodeWidth - 8}" y="${y + 15}">${escape(short(site, 13))}</text>`
      : '') +
    '</g>'
  );
}

const holds = ({ phase, parameters, gradients }) =>
  phase === 'backward' ? many(gradients, 'gradient') : many(parameters, 'parameter');

function titleOf({ op, name, attributes }) {
  if (name) return name;
  if (op === 'constant') return /value=([^,]+)/.exec(attributes)?.[1] ?? op;
  return op;
}

function edgePicture({ from, to, path }) {
  const across = from.phase !== to.phase ? ' across' : '';
  const ends = `data-from="${from.id}" data-to="${to.id}"`;
  return `<path class="${to.phase}${across}" ${ends} d="${path}"/>`;
}

function describe(node, graph) {
  if (node.fold)
    return [
      h('strong', { text: node.title }),
      `, ${node.phase}: ${many(node.ops, 'op')}, ${holds(node)}. ` + 'Press Enter to unfold it.',
    ];
  const readers = graph.nodes.filter(({ inputs }) => inputs.includes(node.id)).length;
  const size = elementsOf(node.type);
  const via =
    node.site.via && !node.site.via.startsWith('gradient')
      ? `part of ${node.site.via}`
      : node.site.via;
  const facts = [
    node.phase,
    `${many(size, 'element')}, ${decimal((4 * size) / 1000)} kB`,
    `read by ${many(readers, 'op')}`,
    via,
    node.label,
  ];
  return [
    h('code', { text: node.line.replace(/ {2}@ .*/, '') }),
    h('span', { class: 'facts', text: facts.filter(Boolean).join(' · ') }),
    siteLink(node.site),
  ];
}

function elementsOf(type) {
  return (/\[(.*)\]/.exec(type)?.[1] || '1').split(',').reduce((all, size) => all * size, 1);
}
