// The tab "Shaders": what the device runs for each kernel of a step.
import { h, inPieces, many, opsOf, roving, short, siteLink, siteOf } from './dom.js';
import { cpuCalls, isWgsl, loweredKernels, shadersOf } from './text.js';
import { phaseCell } from './plan.js';

const words =
  'fn let var const if else for while loop return break continue struct switch case default ' +
  'override enable requires alias discard true false';
const keywords = new Set(words.split(' '));
const typeWords =
  'f32 f16 i32 u32 bool array atomic vec2 vec3 vec4 ptr storage workgroup private read read_write';
const types = new Set(typeWords.split(' '));
const parts = /(\/\/.*)|(@\w+)|(\b\d[\w.+]*\b)|([A-Za-z_]\w*)|[^]/g;

// Adds WGSL to an element as spans, in pieces.
function* highlight(element, text) {
  let plain = '';
  let count = 0;
  for (const [match, comment, attribute, number, word] of text.matchAll(parts)) {
    const kind = comment
      ? 'comment'
      : attribute
        ? 'attribute'
        : number
          ? 'string'
          : keywords.has(word)
            ? 'keyword'
            : types.has(word)
              ? 'type'
              : '';
    if (!kind) {
      plain += match;
      continue;
    }
    element.append(plain, h('span', { class: kind, text: match }));
    plain = '';
    if (++count % 32 === 0) yield;
  }
  element.append(plain);
}

/**
 * What is shown for each kernel, in the order of the plan: { kernel, number, blocks }; a block is
 * { title, text, wgsl }. `emitted` and `lowered` are texts of stages, and `gpu` has the shaders
 * that a GPU would get.
 */
export function codeOf(kernels, { emitted, lowered, gpu }) {
  const texts = loweredKernels(lowered);
  const calls = cpuCalls(emitted);
  const own = isWgsl(emitted);
  const shaders = own ? shadersOf(emitted, kernels) : gpu ? shadersOf(gpu, kernels) : [];
  const codes = kernels.map((kernel, number) => {
    const blocks = [];
    if (!own && calls[number])
      blocks.push({ title: 'The CPU runs', text: calls[number], wgsl: false });
    shaders.forEach((shader, i) => {
      const mine = shader.kernels.find((each) => each.kernel === number);
      if (!mine) return;
      const others = shader.kernels.filter((each) => each.kernel !== number).map((k) => k.kernel);
      const [x, y] = shader.workgroups;
      blocks.push({
        title:
          `${own ? 'Shader' : 'For a GPU: shader'} ${i + 1} of ${shaders.length}` +
          `, ${many(x * y, 'workgroup')}` +
          (mine.part ? ` (${mine.part})` : '') +
          (others.length > 0 ? `, shared with kernel ${others.join(', ')}` : ''),
        text: shader.text,
        wgsl: true,
      });
    });
    if (texts[number])
      blocks.push({
        title: 'After lower: loops, loads and stores',
        text: texts[number].trimEnd(),
        wgsl: false,
      });
    return { kernel, number, blocks };
  });
  // A GPU may have other kernels than the CPU.
  const others = shaders.filter((shader) => shader.kernels.length === 0);
  if (others.length > 0) {
    const kernel = {
      kind: 'for a GPU only',
      phase: '',
      ops: [`${others.length} more shaders`],
      where: '',
    };
    const blocks = others.map((shader) => ({
      title: `For a GPU: shader ${shaders.indexOf(shader) + 1} of ${shaders.length}`,
      text: shader.text,
      wgsl: true,
    }));
    codes.push({ kernel, number: kernels.length, blocks });
  }
  return codes;
}

export async function shadersTab(element, { program, plan, signal, chosen }) {
  // They are made in the order of the stages, one after the other: the model trains meanwhile.
  const kernels = await plan();
  const emitted = await program.show('emit');
  const lowered = await program.show('lower');
  const gpu = await program.shaders?.().catch(() => undefined);
  if (signal.aborted) return;
  const codes = codeOf(kernels, { emitted, lowered, gpu });
  const list = h('div', { class: 'kernels', role: 'listbox', 'aria-label': 'Kernels' });
  const code = h('div', { class: 'code' });
  for (const { kernel, number } of codes) {
    const site = siteOf(kernel.where);
    list.append(
      h(
        'div',
        {
          class: 'kernel',
          role: 'option',
          tabindex: -1,
          'aria-selected': 'false',
          'data-kernel': number,
          'data-file': site.file,
          'data-line': site.file && site.line,
        },
        h('span', { class: 'number', text: number }),
        h('span', { class: `phase ${kernel.phase}`, text: kernel.phase }),
        h('span', { class: 'ops', text: short(opsOf(kernel), 44) }),
        h('span', {
          class: 'place',
          text: site.file
            ? `${site.file}:${site.line}${site.layer ? ` in ${site.layer}` : ''}`
            : site.layer,
        }),
      ),
    );
  }
  element.append(
    h('p', {
      class: 'sentence',
      text: isWgsl(emitted)
        ? 'Each kernel is one compute shader, or two. Kernels that do not depend on each other ' +
          'share one.'
        : 'The CPU has no shaders: it runs routines with vector instructions, and loops that the ' +
          'kernel describes.' +
          (gpu ? ' Below are also the shaders that a GPU would get.' : ''),
    }),
    h('div', { class: 'columns' }, list, code),
  );
  let shown, writing;
  const show = (number) => {
    if (shown === number || !codes[number]) return;
    shown = number;
    writing?.abort();
    writing = new AbortController();
    for (const option of list.children) {
      const on = option.dataset.kernel === String(number);
      option.setAttribute('aria-selected', on);
      option.setAttribute('tabindex', on ? 0 : -1);
    }
    showCode(code, codes[number], writing.signal);
    element.dataset.kernel = number;
  };
  roving(list, '.kernel', (item) => {
    // Only the focus chooses; the pointer may pass by.
    if (document.activeElement === item) show(Number(item.dataset.kernel));
  });
  show(chosen() ?? 0);
  return (number) => {
    show(number);
    const option = list.children[number];
    option?.focus({ preventScroll: true });
    if (option) list.scrollTop = option.offsetTop - list.offsetTop - 40;
  };
}

function showCode(element, { kernel, number, blocks }, signal) {
  const site = siteOf(kernel.where);
  const texts = blocks.map(() => h('code'));
  element.replaceChildren(
    h(
      'h4',
      {},
      `Kernel ${number}: ${kernel.kind}, `,
      phaseCell(kernel.phase),
      ' ',
      site.file
        ? siteLink(site)
        : h('span', {
            class: 'place',
            text: site.layer || 'made by the optimizer, for no line of yours',
          }),
    ),
    h('p', { class: 'ops', text: opsOf(kernel) }),
    ...blocks.flatMap(({ title, wgsl }, i) => [
      h('h5', { text: title }),
      h('pre', { class: wgsl ? 'wgsl' : 'text', tabindex: 0, 'aria-label': title }, texts[i]),
    ]),
  );
  const write = function* () {
    for (const [i, { text, wgsl }] of blocks.entries())
      if (wgsl) yield* highlight(texts[i], text);
      else texts[i].textContent = text;
  };
  inPieces(write(), signal);
}
