// Builds models and graphs in the library from what was recorded.
import type { Handle, Library } from '../wasm/library.js';
import {
  jsonText,
  type ModelEntries,
  type OpCall,
  type ParamEntry,
  type ProgramRecording,
} from './recording.js';

/** Adds parameters and layers to a model. `values`: false leaves literal values out. */
export function buildModel(lib: Library, entries: ModelEntries, values: boolean): Handle {
  const model = lib.need('model_new');
  try {
    for (const entry of entries)
      if (entry.kind === 'param') addParam(lib, model, entry, values);
      else
        lib.index(
          'model_layer',
          model,
          entry.name,
          entry.layer,
          entry.args,
          entry.site.file,
          entry.site.line,
        );
    return model;
  } catch (error) {
    lib.call('model_free', model);
    throw error;
  }
}

export function addParam(lib: Library, model: Handle, entry: ParamEntry, values: boolean): void {
  if (!entry.values) {
    lib.need('model_param', model, entry.name, jsonText(entry.options), null, 0);
    return;
  }
  const options = values ? entry.options : { ...entry.options, init: 'zeros' };
  const { buffer, byteOffset, byteLength, length } = entry.values;
  lib.withBytes(new Uint8Array(buffer, byteOffset, byteLength), (pointer) =>
    lib.need('model_param', model, entry.name, jsonText(options), pointer, length),
  );
}

/** Begins a graph. `of` is the model, or the program for an attached graph. */
export function beginGraph(
  lib: Library,
  kind: ProgramRecording['kind'],
  of: Handle,
  options: string,
): Handle {
  return lib.need(`begin_${kind}`, of, options);
}

/** Makes a call; its results are the next tensors of the graph. */
export function makeCall(lib: Library, graph: Handle, call: OpCall): number {
  const { op, args, site } = call;
  return lib.index(typeof op === 'number' ? 'layer' : 'op', graph, op, args, site.file, site.line);
}

/** The value of a future, which the library can complete without waiting. Frees the future. */
export function valueNow<T>(lib: Library, future: Handle, read: (future: Handle) => T): T {
  try {
    let state = 0;
    while ((state = lib.call('ready', future)) === 0) lib.index('poll');
    if (state < 0) throw lib.error();
    return read(future);
  } finally {
    lib.call('future_free', future);
  }
}

/** Compiles a program for a device that runs nothing now, looks at it, and frees it. */
export function withProgram<T>(
  lib: Library,
  entries: ModelEntries,
  recording: ProgramRecording,
  device: string,
  look: (program: Handle) => T,
): T {
  const model = buildModel(lib, entries, false);
  try {
    const { training: _, ...forward } = recording.options;
    const trains = recording.kind === 'training';
    const options = { ...(trains ? recording.options : forward), device };
    const kind = trains ? 'training' : 'forward';
    const graph = buildGraph(lib, { ...recording, kind, options }, model);
    const program = valueNow(lib, lib.need('compile', graph), (future) =>
      lib.need('future_program', future),
    );
    try {
      return look(program);
    } finally {
      lib.call('program_free', program);
    }
  } finally {
    lib.call('model_free', model);
  }
}

/** Replays a program and returns its graph, which is ready to be compiled. */
export function buildGraph(lib: Library, recording: ProgramRecording, of: Handle): Handle {
  const graph = beginGraph(lib, recording.kind, of, jsonText(recording.options));
  try {
    for (const call of recording.calls) makeCall(lib, graph, call);
    for (const [name, tensor] of recording.outputs) lib.need('output', graph, name, tensor);
    return graph;
  } catch (error) {
    lib.call('graph_free', graph);
    throw error;
  }
}
