// The tab "Plan": the memory of a step over time, and its kernels in order.
import { bytes, h, operations, opsOf, short, siteLink, siteOf, sortable, whole } from './dom.js';
import { boxesOf, memoryFigure } from './memory.js';

export async function planTab(element, { plan, counts, signal, openShader }) {
  const kernels = await plan();
  if (signal.aborted) return;
  element.append(numbers(kernels, counts));
  if (boxesOf(kernels).length > 0)
    element.append(...memoryFigure(kernels, { counts, signal, point: pointAt }));
  element.append(table(kernels, { openShader, signal }));

  function pointAt(number) {
    element.querySelector('tr.on')?.classList.remove('on');
    element.querySelector(`tr[data-kernel="${number}"]`)?.classList.add('on');
  }
}

function numbers(kernels, counts) {
  const sum = (key) => kernels.reduce((all, kernel) => all + kernel[key], 0);
  const stages = new Set(kernels.map(({ stage }) => stage)).size;
  const facts = [
    ['kernels', whole(kernels.length)],
    ['in sequence', whole(stages)],
    ['arithmetic', operations(sum('operations'))],
    ['read', bytes(sum('bytes_read'))],
    ['written', bytes(sum('bytes_written'))],
  ];
  if (counts)
    facts.push(
      ['dispatches', whole(counts.dispatches)],
      ['parameters', bytes(counts.param_bytes)],
      ['gradients', bytes(counts.gradient_bytes)],
      ['optimizer', bytes(counts.state_bytes)],
    );
  return h(
    'dl',
    { class: 'facts' },
    ...facts.map(([name, value]) =>
      h('div', {}, h('dt', { text: name }), h('dd', { text: value, 'data-fact': name })),
    ),
  );
}

function table(kernels, { openShader, signal }) {
  const rows = kernels.map((kernel, number) => ({ ...kernel, number, site: siteOf(kernel.where) }));
  const columns = [
    {
      name: 'kernel',
      number: true,
      value: (k) => k.number,
      cell: (k) => kernelButton(k, openShader),
    },
    { name: 'phase', value: (k) => k.phase, cell: (k) => phaseCell(k.phase) },
    { name: 'kind', value: (k) => k.kind },
    { name: 'ops', value: opsOf, cell: opsCell },
    { name: 'source line', value: (k) => k.where, cell: (k) => siteLink(k.site) },
    {
      name: 'operations',
      number: true,
      value: (k) => k.operations,
      cell: (k) => whole(k.operations),
    },
    { name: 'read', number: true, value: (k) => k.bytes_read, cell: (k) => bytes(k.bytes_read) },
    {
      name: 'written',
      number: true,
      value: (k) => k.bytes_written,
      cell: (k) => bytes(k.bytes_written),
    },
  ];
  return sortable(columns, rows, {
    caption: 'Kernels of a step, in order',
    attributes: (k) => ({ 'data-kernel': k.number }),
    signal,
  });
}

/** The number of a kernel, which leads to its code. */
export function kernelButton({ number }, openShader) {
  return h('button', {
    type: 'button',
    class: 'link',
    title: `Show the code of kernel ${number}`,
    text: number,
    on: { click: () => openShader(number) },
  });
}
export const phaseCell = (phase) => h('span', { class: `phase ${phase}`, text: phase });
export const opsCell = (kernel) =>
  h('span', { class: 'ops', title: opsOf(kernel), text: short(opsOf(kernel), 44) });
