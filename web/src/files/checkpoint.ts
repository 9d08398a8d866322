// What a checkpoint contains, without a model.
import { readArrays, valuesOf, type Shape } from '../wasm/arrays.js';
import { localLibrary } from '../wasm/library.js';
import type { CheckpointInfo } from '../compile/handle.js';

export interface CheckpointContents extends CheckpointInfo {
  parameters: Record<string, Float32Array>;
  shapes: Record<string, Shape>;
}

/** Reads a checkpoint: of save(), or of the command line tool. A damaged one is an error. */
export async function readCheckpoint(
  file: ArrayBuffer | Uint8Array,
  name = 'checkpoint',
): Promise<CheckpointContents> {
  const lib = await localLibrary();
  const bytes = file instanceof Uint8Array ? file : new Uint8Array(file);
  const checkpoint = lib.withBytes(bytes, (pointer, size) =>
    lib.need('checkpoint_load', pointer, size, name),
  );
  try {
    const arrays = readArrays(lib, lib.need('checkpoint_parameters', checkpoint));
    return {
      ...lib.json<CheckpointInfo>('checkpoint_info', checkpoint),
      parameters: valuesOf(arrays) as Record<string, Float32Array>,
      shapes: Object.fromEntries(Object.entries(arrays).map(([key, { shape }]) => [key, shape])),
    };
  } finally {
    lib.call('checkpoint_free', checkpoint);
  }
}
