// Reads the texts of the compiler's stages: graphs, kernels of the plan, shaders.
import { siteOf } from './dom.js';

const nodeLine =
  /^ {2}%(\d+) = (\w+)(?:\(([^)]*)\))?(?: \{(.*)\})? : (\w+\[[\d,]*\])(?: {2}@ (.*))?$/;

/**
 * The nodes of a graph in order, and what its results are called. Returns undefined if the text is
 * no graph. A generator: long texts are read in pieces, see inPieces().
 */
export function* readGraph(text, graph) {
  const ranges = new Map(); // first element in the flat parameters -> name
  for (const line of text.split('\n')) {
    const node = nodeLine.exec(line);
    if (node) {
      const [, id, op, inputs, attributes = '', type, site] = node;
      const read = {
        id: Number(id),
        op,
        inputs: (inputs?.match(/\d+/g) ?? []).map(Number),
        attributes,
        type,
        site: siteOf(site),
        name: /name="((?:[^"\\]|\\.)*)"/.exec(attributes)?.[1] ?? '',
        line: line.trim(),
      };
      // After `update` the parameters are parts of one array.
      const start = op === 'narrow' && /start=(\d+)/.exec(attributes)?.[1];
      if (start && graph.byId.get(read.inputs[0])?.op === 'flat_parameters')
        Object.assign(read, { op: 'parameter', name: ranges.get(Number(start)) ?? '', inputs: [] });
      graph.nodes.push(read);
      graph.byId.set(read.id, read);
      yield;
      continue;
    }
    const range = /^ {2}range "(.*)" = \[(\d+),/.exec(line);
    if (range) ranges.set(Number(range[2]), range[1]);
    const result = /^ {2}(\w+) "(.*)" = %(\d+)$/.exec(line);
    if (result) graph.results.push({ kind: result[1], name: result[2], id: Number(result[3]) });
  }
}

export const emptyGraph = () => ({ nodes: [], byId: new Map(), results: [] });
export const isGraph = (text) => text.startsWith('graph {');

/** The text of each kernel after stage `lower`, in the order of the plan. */
export function loweredKernels(text) {
  return text.split(/^(?=kernel )/m).filter((part) => part.startsWith('kernel '));
}

/** What the CPU runs for each kernel: the line of stage `emit`. */
export function cpuCalls(text) {
  const calls = [];
  for (const [, number, what] of text.matchAll(/^ *(\d+) {2}(.*)$/gm)) calls[number] = what;
  return calls;
}

export const isWgsl = (text) => /^\/\/ \d+ x \d+ workgroups$/m.test(text);

const second = new Set(['whole', 'sum']); // what joins the results of a kernel's first shader

/**
 * The shaders of stage `emit`, in the order they are dispatched: { text, workgroups, kernels }.
 * The first lines of a shader name its kernels: those of one stage share a shader, and some kernels
 * have two.
 */
export function shadersOf(text, kernels) {
  const names = kernels.map(({ ops, kind }) =>
    (ops.length > 0 ? ops.join('_') : kind).replace(/[()]/g, ''),
  );
  const taken = new Set();
  return text
    .split(/^(?=\/\/ \d+ x \d+ workgroups$)/m)
    .filter((part) => part.startsWith('// '))
    .map((part) => {
      const lines = part.trimEnd().split('\n');
      const end = lines.findIndex((line) => !line.startsWith('//'));
      const found = [];
      for (const title of lines.slice(1, end)) {
        const [, name = '', which = ''] = /: (\S+)(?: \((.*)\))?$/.exec(title) ?? [];
        const part = second.has(which) ? 2 : 1;
        const at = names.findIndex((each, k) => each === name && !taken.has(`${k} ${part}`));
        if (at < 0) continue;
        taken.add(`${at} ${part}`);
        found.push({ kernel: at, part: which });
      }
      const [, x, y] = /^\/\/ (\d+) x (\d+)/.exec(lines[0]);
      return { text: lines.join('\n'), workgroups: [Number(x), Number(y)], kernels: found };
    });
}
