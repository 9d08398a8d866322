// Host arrays by name: records of typed arrays, and the library's tg_arrays.
import type { Handle, Library } from './library.js';

export type Dtype = 'f32' | 'i32' | 'bool';
export type Shape = readonly number[];
export type Values = Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>;

export interface HostArray {
  dtype: Dtype;
  shape: Shape;
  values: Values;
}
export type HostArrays = Record<string, HostArray>;

export interface Type {
  dtype: Dtype;
  shape: Shape;
}

export function elements(shape: Shape): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** "f32[2,3]" */
export function typeText(dtype: Dtype, shape: Shape): string {
  return `${dtype}[${shape.join(',')}]`;
}

export function parseType(text: string): Type {
  const open = text.indexOf('[');
  const sizes = text.slice(open + 1, -1);
  return {
    dtype: text.slice(0, open) as Dtype,
    shape: Object.freeze(sizes === '' ? [] : sizes.split(',').map(Number)),
  };
}

/** Copies arrays into the library, runs `body`, and frees the copies. */
export function withArrays<T>(lib: Library, arrays: HostArrays, body: (handle: Handle) => T): T {
  const handle = lib.need('arrays_new');
  try {
    for (const [name, array] of Object.entries(arrays)) addArray(lib, handle, name, array);
    return body(handle);
  } finally {
    lib.call('arrays_free', handle);
  }
}

function addArray(lib: Library, handle: Handle, name: string, array: HostArray): void {
  const { values, dtype } = array;
  const fits = elements(array.shape) === values.length;
  // The library says what is wrong with an array of another length.
  const type = typeText(dtype, fits ? array.shape : [values.length]);
  const pointer = lib.need('arrays_add', handle, name, type);
  if (values.length === 0) return;
  if (values instanceof Float32Array) lib.module.floats().set(values, pointer / 4);
  else lib.module.words().set(values, pointer / 4);
}

/** Copies all arrays out of the library. The handle stays valid. */
export function readArrays(lib: Library, handle: Handle): HostArrays {
  const arrays: HostArrays = {};
  const count = lib.call('arrays_count', handle);
  for (let i = 0; i < count; ++i) {
    const name = lib.text('arrays_name', handle, i);
    const { dtype, shape } = parseType(lib.text('arrays_type', handle, i));
    const first = lib.pointer('arrays_data', handle, i) / 4;
    const end = first + elements(shape);
    const values =
      dtype === 'f32'
        ? new Float32Array(lib.module.floats().subarray(first, end))
        : new Int32Array(lib.module.words().subarray(first, end));
    arrays[name] = { dtype, shape, values };
  }
  return arrays;
}

/** The values alone. */
export function valuesOf(arrays: HostArrays): Record<string, Values> {
  return Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, array.values]));
}

/** The buffers behind arrays, for postMessage. */
export function buffersOf(arrays: HostArrays): ArrayBuffer[] {
  return Object.values(arrays).map((array) => array.values.buffer);
}
