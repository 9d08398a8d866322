// Runs the functions of a spec in the library of this thread, and keeps what they called.
import { ShapeError } from '../wasm/errors.js';
import type { Library } from '../wasm/library.js';
import { jsonText, type InputType, type JsonObject, type ProgramRecording } from '../trace/recording.js';
import { beginGraph } from '../trace/replay.js';
import { atSite, type Site } from '../trace/site.js';
import { isTensor, type Tensor } from '../trace/tensor.js';
import { Trace } from '../trace/trace.js';
import type { TracedModel } from '../nn/model.js';
import type { Dtype } from '../wasm/arrays.js';
import type { Outputs } from './specs.js';

export interface Traced {
  readonly recording: ProgramRecording;
  readonly outputs: readonly { readonly name: string; readonly dtype: Dtype }[];
  readonly captures: boolean;
}

interface Program {
  readonly what: string; // the function that was called
  readonly kind: ProgramRecording['kind'];
  readonly options: JsonObject;
  readonly inputs: readonly InputType[];
  readonly site: Site;
  body(inputs: Record<string, Tensor>): Outputs;
}

/** Traces a function. Attached programs are traced like forward programs: they replay alike. */
export function traceProgram(lib: Library, model: TracedModel, program: Program): Traced {
  const { kind, inputs, what, site } = program;
  const options = { ...program.options, inputs: inputs as unknown as JsonObject[] };
  const { training: _, ...forward } = options as JsonObject;
  const text = jsonText({ ...(kind === 'attached' ? forward : options), device: lib.deviceToShow });
  const graph = beginGraph(lib, kind === 'attached' ? 'forward' : kind, model.handle, text);
  try {
    const trace = new Trace(lib, graph, model);
    const tensors: Record<string, Tensor> = {};
    inputs.forEach(({ name }, id) => (tensors[name] = trace.tensor(id, null)));
    const result = trace.run(() => program.body(tensors));
    const named = namesOf(kind, what, result, site);
    const outputs = named.map(([name, tensor]) => [name, trace.idOf(what, tensor, site)] as const);
    return {
      recording: { kind, options, calls: trace.calls, outputs },
      outputs: named.map(([name, { dtype }]) => ({ name, dtype })),
      captures: trace.captures,
    };
  } finally {
    lib.call('graph_free', graph);
  }
}

function namesOf(
  kind: ProgramRecording['kind'],
  what: string,
  result: Outputs,
  site: Site,
): [string, Tensor][] {
  if (isTensor(result)) return [[kind === 'training' ? 'loss' : 'out', result]];
  const several =
    typeof result === 'object' && result !== null && Object.values(result).every(isTensor);
  const named = several ? Object.entries(result) : [];
  if (named.length === 0)
    throw new ShapeError(
      `${what}: the function must return a tensor, or tensors by name: ` +
        `it returned ${describe(result)}${atSite(site)}`,
    );
  return named as [string, Tensor][];
}

function describe(result: unknown): string {
  if (result instanceof Promise) return 'a promise';
  return Array.isArray(result) ? 'an array' : typeof result;
}
