// What the tests of the original library import beside its index: tracing of single functions,
// gradients, and an evaluator. Here they are made of our library, on the CPU of this thread.
import { optimizerJson } from '../../src/compile/options.js';
import { parseGraph, type Graph } from '../../src/compile/ir.js';
import { traceDeclared } from '../../src/legacy/declared.js';
import type { Tensor } from '../../src/trace/tensor.js';
import { buildGraph, buildModel } from '../../src/trace/replay.js';
import { readArrays, withArrays, type HostArrays } from '../../src/wasm/arrays.js';
import { readyLibrary, type Handle } from '../../src/wasm/library.js';

export { paramInput, tensorInput } from '../../src/legacy/declared.js';

type Values = Record<string, Float32Array | Int32Array>;
type Traced = ReturnType<typeof traceDeclared>;
interface Own extends Graph {
  fn: () => Tensor;
  traced: Traced;
  gradients: Map<string, number>;
}
const nowhere = { file: '', line: 0 };

export function traceFn(fn: () => Tensor): Graph {
  const lib = readyLibrary('traceFn');
  const traced = traceDeclared(lib, fn, 'forward', nowhere);
  const model = buildModel(lib, traced.model.entries, true);
  const graph = buildGraph(lib, traced.traced.recording, model);
  const parsed = parseGraph(lib.text('graph_text', graph));
  lib.call('graph_free', graph);
  lib.call('model_free', model);
  return Object.assign(parsed, { fn, traced, gradients: new Map() }) as Own;
}

// Ids for gradients, behind those of the graph.
export function appendGrad(graph: Graph) {
  const own = graph as Own;
  const paramGrads: Record<string, { id: number }> = {};
  own.traced.model.names.forEach((name, i) => {
    const id = graph.tensors.length + i;
    own.gradients.set(name, id);
    paramGrads[name] = { id };
  });
  return { graph, paramGrads, loss: graph.tensors[graph.outputs[0]!]! };
}

// The gradient as the update uses it: the step of SGD with rate 1.
const normalized = new WeakMap<Graph, { names: string[]; first: number }>();
export function appendGradNormalize(
  graph: Graph,
  grads: Record<string, { id: number }>,
  filter: (name: string) => boolean,
): Record<string, { id: number }> {
  const names = Object.keys(grads);
  const { options } = optimizerJson({ kind: 'sgd', lr: 1, normalizeGrads: filter }, names);
  const chosen = options['normalize_grads'] as string[];
  const first = graph.tensors.length + names.length;
  normalized.set(graph, { names: chosen, first });
  const made = chosen.map((name, i) => [name, { id: first + i }]);
  return { ...grads, ...Object.fromEntries(made) };
}

function finish<T>(future: Handle, read: (future: Handle) => T): T {
  const lib = readyLibrary('evalGraph');
  try {
    let state = 0;
    while ((state = lib.call('ready', future)) === 0) lib.index('poll');
    if (state < 0) throw lib.error();
    return read(future);
  } finally {
    lib.call('future_free', future);
  }
}

function program(own: Own, trains: boolean, options: object): Handle {
  const lib = readyLibrary('evalGraph');
  const { model, traced } = trains ? traceDeclared(lib, own.fn, 'training', nowhere) : own.traced;
  const recording = traced.recording;
  const handle = buildModel(lib, model.entries, true);
  const all = { ...recording.options, ...options, device: 'cpu' } as typeof recording.options;
  const graph = buildGraph(lib, { ...recording, options: all }, handle);
  return finish(lib.need('compile', graph), (future) => lib.need('future_program', future));
}

const compiled = new WeakMap<Graph, Handle>();

/** The values of the output and of the gradients, by tensor. */
export function evalGraph(graph: Graph, inputs: Values): Map<number, Float32Array | Int32Array> {
  const own = graph as Own;
  const lib = readyLibrary('evalGraph');
  const { inputs: declared, model } = own.traced;
  const trains = model.names.length > 0;
  const found = new Map<number, Float32Array | Int32Array>();
  const params: HostArrays = {};
  for (const { name, shape } of model.parameters)
    params[name] = { dtype: 'f32', shape, values: inputs[name] as Float32Array<ArrayBuffer> };
  const feed: HostArrays = {};
  for (const { name, dtype, shape } of declared)
    feed[name] = { dtype, shape, values: inputs[name] as Float32Array<ArrayBuffer> };
  const upload = (to: Handle): void => {
    withArrays(lib, params, (arrays) => lib.need('upload', to, arrays, 0));
    if (trains) lib.need('reset', to, '{"optimizer":true}'); // the same random numbers again
  };
  const run = (of: Handle): HostArrays =>
    finish(
      withArrays(lib, feed, (arrays) => lib.need('run', of, arrays, 0)),
      (future) => readArrays(lib, lib.need('future_arrays', future)),
    );
  const download = (of: Handle, what: string): HostArrays =>
    finish(lib.need('download', of, what), (future) =>
      readArrays(lib, lib.need('future_arrays', future)),
    );

  const main = compiled.get(graph) ?? program(own, trains, {});
  compiled.set(graph, main);
  if (trains) upload(main);
  found.set(graph.outputs[0]!, Object.values(run(main))[0]!.values);
  if (!trains) return found;
  const gradients = download(main, 'gradients');
  for (const [name, id] of own.gradients) found.set(id, gradients[name]!.values);

  const chosen = normalized.get(graph);
  if (!chosen) return found;
  const sgd = program(own, true, {
    optimizer: { kind: 'sgd', lr: 1 },
    normalize_grads: chosen.names,
  });
  upload(sgd);
  run(sgd);
  const after = download(sgd, 'parameters');
  lib.call('program_free', sgd);
  chosen.names.forEach((name, i) => {
    const before = params[name]!.values;
    found.set(
      chosen.first + i,
      Float32Array.from(before, (value, k) => value - after[name]!.values[k]!),
    );
  });
  return found;
}

export function evalOutput(graph: Graph, inputs: Values): Float32Array | Int32Array {
  return evalGraph(graph, inputs).get(graph.outputs[0]!)!;
}
