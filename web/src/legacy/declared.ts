// Functions that declare their parameters and inputs while they are traced, as in version 0.0.12.
import type { Dtype, Shape } from '../wasm/arrays.js';
import { ShapeError } from '../wasm/errors.js';
import { localLibrary, readyLibrary, type Library } from '../wasm/library.js';
import type { InputType, JsonObject } from '../trace/recording.js';
import { beginGraph } from '../trace/replay.js';
import { atSite, siteOf, type Site } from '../trace/site.js';
import type { Tensor } from '../trace/tensor.js';
import { currentTrace, Trace } from '../trace/trace.js';
import { NamedParam, paramEntry, TracedModel } from '../nn/model.js';
import { progressOf } from '../compile/handle.js';
import { openChannel } from '../compile/open.js';
import { inspect, type CompiledIR, type Graph } from '../compile/ir.js';
import { TrainingHandle } from '../compile/training.js';
import { traceProgram, type Traced } from '../compile/tracing.js';
import type { InputDecls, RunOptions } from '../compile/specs.js';
import type { Channel } from '../engine/channel.js';
import type { ProgramInfo } from '../engine/protocol.js';
import { Module } from '../nn/module.js';
import { runtimeOf, type CompiledRuntime } from './runtime.js';

// A function is run twice: the first time with zeros, to see what it declares.
interface Declarations {
  readonly params: Map<string, Shape>;
  readonly inputs: Map<string, InputType>;
  tensors: Record<string, Tensor> | undefined; // the second time
}
let declaring: Declarations | undefined;

function declarations(what: string, site: Site): Declarations {
  if (declaring) return declaring;
  throw new ShapeError(`${what}: only in a function for compile() or trace()${atSite(site)}`);
}

function taken(found: Declarations, what: string, name: string, site: Site): void {
  if (!found.tensors && (found.params.has(name) || found.inputs.has(name)))
    throw new ShapeError(`${what}: the name '${name}' is taken${atSite(site)}`);
}

function zerosOf(what: string, shape: Shape, dtype: Dtype, site: Site): Tensor {
  return currentTrace(what, site).call('zeros', what, { shape, dtype }, site)[0]!;
}

/** Declares a parameter, which starts at zeros. */
export function paramInput(name: string, shape: Shape, _dtype: Dtype = 'f32'): Tensor {
  const site = siteOf(paramInput);
  const found = declarations('paramInput', site);
  taken(found, 'paramInput', name, site);
  if (found.tensors) return new NamedParam(name, shape);
  found.params.set(name, shape);
  return zerosOf('paramInput', shape, 'f32', site);
}

/** Declares an input. */
export function tensorInput(name: string, shape: Shape, dtype: Dtype = 'f32'): Tensor {
  const site = siteOf(tensorInput);
  const found = declarations('tensorInput', site);
  taken(found, 'tensorInput', name, site);
  if (found.tensors) return found.tensors[name]!;
  found.inputs.set(name, { name, shape, dtype });
  return zerosOf('tensorInput', shape, dtype, site);
}

/**
 * A value that stays: optimizers of version 0.0.12 changed it, and ours have state of their own.
 */
export function stateInput(
  name: string,
  shape: Shape,
  dtype: Dtype = 'f32',
  initValue = 0,
): Tensor {
  const site = siteOf(stateInput);
  void name;
  const args = { shape, value: initValue, dtype };
  return currentTrace('stateInput', site).call('full', 'stateInput', args, site)[0]!;
}

interface DeclaredProgram {
  readonly model: TracedModel;
  readonly inputs: readonly InputType[];
  readonly traced: Traced;
}

export function traceDeclared(
  lib: Library,
  fn: () => Tensor | Tensor[],
  kind: 'training' | 'forward',
  site: Site,
): DeclaredProgram {
  const found: Declarations = { params: new Map(), inputs: new Map(), tensors: undefined };
  const outer = declaring;
  declaring = found;
  try {
    const empty = TracedModel.declared(lib, []);
    const first = lib.traced(() => beginGraph(lib, 'forward', empty.handle, '{"device":"cpu"}'));
    try {
      new Trace(lib, first, empty).run(fn);
    } finally {
      lib.call('graph_free', first);
      empty.free();
    }
    const entries = [...found.params].map(([name, shape]) =>
      paramEntry(name, { kind: 'zeros' }, { shape, decay: true }),
    );
    const model = TracedModel.declared(lib, entries);
    const inputs = [...found.inputs.values()];
    const optimizer = { kind: 'none' };
    const options: JsonObject = kind === 'training' ? { optimizer } : {};
    const body = (tensors: Record<string, Tensor>): Tensor | Record<string, Tensor> => {
      found.tensors = tensors;
      const result = fn();
      if (!Array.isArray(result)) return result;
      return Object.fromEntries(result.map((tensor, i) => [`out${i}`, tensor]));
    };
    return model.orFree(() => {
      const program = { what: 'compile', kind, options, inputs, site, body };
      return { model, inputs, traced: traceProgram(lib, model, program) };
    });
  } finally {
    declaring = outer;
  }
}

/** The graph of a function, as it was traced. Needs `await ready()` once before. */
export function traceFunction(fn: () => Tensor | Tensor[], site: Site): Graph {
  const lib = readyLibrary('trace');
  const { model, traced } = traceDeclared(lib, fn, 'forward', site);
  try {
    return inspect(lib, model.entries, traced.recording).graph;
  } finally {
    model.free();
  }
}

/** What the compiler makes of a loss with its gradients. Needs `await ready()` once before. */
export function compileToIR(fn: () => Tensor): CompiledIR {
  const site = siteOf(compileToIR);
  const lib = readyLibrary('compileToIR');
  const { model, traced } = traceDeclared(lib, fn, 'training', site);
  try {
    return inspect(lib, model.entries, traced.recording);
  } finally {
    model.free();
  }
}

class Declared extends Module {}

/** Compiles a function with its gradients. Nothing is updated. */
export async function compileFunction(
  fn: () => Tensor,
  options: RunOptions,
  site: Site,
): Promise<CompiledRuntime & { ir: CompiledIR }> {
  const lib = await localLibrary(options.device);
  const { model, inputs, traced } = traceDeclared(lib, fn, 'training', site);
  let channel: Channel | undefined;
  try {
    channel = await openChannel(options, (event) => progressOf(event, options.onProgress));
    const info = (await channel.request({
      kind: 'create',
      model: model.entries,
      program: traced.recording,
    })) as ProgramInfo;
    const handle = new TrainingHandle<Module, InputDecls>(
      lib,
      channel,
      { model: new Declared(), loss: fn, inputs: {}, optimizer: { kind: 'none' } },
      { model, module: new Declared(), inputs, traced, rate: { json: 0 }, seed: 0 },
      info,
    );
    const ir = (): CompiledIR => inspect(lib, model.entries, traced.recording);
    return runtimeOf(handle, ir);
  } catch (error) {
    channel?.close();
    model.free();
    throw error;
  }
}
