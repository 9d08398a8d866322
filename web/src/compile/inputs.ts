// Inputs: declared shapes, sizes that are known at run time, and the values of a call.
import { TensorgradError } from '../wasm/errors.js';
import { elements, typeText, type Dtype, type HostArrays, type Shape } from '../wasm/arrays.js';
import type { InputType } from '../trace/recording.js';
import type { InputDecls, InputShape } from './specs.js';

export interface Declared {
  readonly name: string;
  readonly shape: InputShape;
  readonly dtype: Dtype;
}

export function declared(decls: InputDecls): Declared[] {
  return Object.entries(decls).map(([name, decl]) => {
    const { shape, dtype } = Array.isArray(decl)
      ? { shape: decl as InputShape, dtype: 'f32' as const }
      : (decl as { shape: InputShape; dtype?: Dtype });
    if (!Array.isArray(shape))
      throw new TensorgradError(
        `inputs: '${name}' needs a shape\n  hint: [2, 3], or { shape: [2, 3], dtype: 'i32' }`,
      );
    if (shape.filter((size) => size === null).length > 1)
      throw new TensorgradError(
        `inputs: '${name}' has more than one null: only one size can be inferred`,
      );
    return { name, shape, dtype: dtype ?? 'f32' };
  });
}

/** Throws if a size is not known. */
export function fixed(inputs: readonly Declared[], what: string): InputType[] {
  for (const { name, shape } of inputs)
    if (shape.includes(null))
      throw new TensorgradError(
        `${what}: input '${name}' is [${shape.map((size) => size ?? 'null').join(', ')}]: ` +
          'null is for forward programs, see attach() and compileForward()',
      );
  return inputs as InputType[];
}

export function isFixed(inputs: readonly Declared[]): boolean {
  return inputs.every(({ shape }) => !shape.includes(null));
}

type Given = { readonly [name: string]: unknown };

/** The inputs with the size that these values have. All nulls of a call are the same size. */
export function resolve(inputs: readonly Declared[], given: Given, what = 'run'): InputType[] {
  let agreed: { name: string; size: number } | undefined;
  return inputs.map(({ name, shape, dtype }) => {
    if (!shape.includes(null)) return { name, shape: shape as Shape, dtype };
    const length = lengthOf(given?.[name]);
    if (length === undefined) throw new TensorgradError(`${what}: input '${name}' is missing`);
    const rest = elements(shape.map((size) => size ?? 1));
    const size = length / rest;
    const text = shape.map((each) => each ?? 'null').join(', ');
    if (!Number.isInteger(size))
      throw new TensorgradError(
        `${what}: input '${name}' is [${text}]: ${length} values do not divide by ${rest}`,
      );
    if (agreed && agreed.size !== size)
      throw new TensorgradError(
        `${what}: null is ${agreed.size} by input '${agreed.name}', and ${size} by '${name}'\n` +
          '  hint: all nulls of a call are the same size',
      );
    agreed ??= { name, size };
    return { name, shape: shape.map((each) => each ?? size), dtype };
  });
}

function lengthOf(value: unknown): number | undefined {
  return (value as { length?: number } | undefined)?.length;
}

/** A program for these shapes. */
export function shapeKey(inputs: readonly InputType[]): string {
  return inputs.map(({ dtype, shape }) => typeText(dtype, shape)).join(' ');
}

/**
 * Copies of the values of a call, so that the caller may change its arrays. What is missing or
 * unknown, or has the wrong number of values, is left for the library to report.
 */
export function feedOf(what: string, inputs: readonly InputType[], given: Given): HostArrays {
  const feed: HostArrays = {};
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value === undefined) continue;
    const input = inputs.find((each) => each.name === name);
    const { dtype, shape } = input ?? dtypeOf(value);
    feed[name] = { dtype, shape, values: copyOf(what, name, dtype, shape, value) };
  }
  return feed;
}

function dtypeOf(value: unknown): { dtype: Dtype; shape: Shape } {
  const dtype = value instanceof Int32Array ? 'i32' : 'f32';
  return { dtype, shape: [lengthOf(value) ?? 0] };
}

function copyOf(
  what: string,
  name: string,
  dtype: Dtype,
  shape: Shape,
  value: unknown,
): Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> {
  const wanted = dtype === 'f32' ? Float32Array : Int32Array;
  const fail = (rule: string, hint = ''): never => {
    throw new TensorgradError(
      `${what}: input '${name}' is ${typeText(dtype, shape)}: ${rule}` +
        (hint && `\n  hint: ${hint}`),
    );
  };
  if (value instanceof wanted) {
    if (value.length === 0 && isDetached(value.buffer))
      fail('the buffer of its values is detached: it was transferred to another thread');
    return new wanted(value);
  }
  const kind = (value as object | null)?.constructor?.name ?? String(value);
  return fail(`it was given ${kind}`, `new ${wanted.name}(values)`);
}

export function isDetached(buffer: ArrayBufferLike): boolean {
  const { detached } = buffer as { detached?: boolean };
  if (detached !== undefined) return detached;
  try {
    new Uint8Array(buffer); // throws if it is
    return false;
  } catch {
    return true;
  }
}
