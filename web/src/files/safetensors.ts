// Safetensors files: named arrays with their shapes. They need no library.
import { TensorgradError } from '../wasm/errors.js';
import { elements } from '../wasm/arrays.js';

export interface SafetensorsData {
  /** The f32 tensors, for uploadParams(). */
  tensors: Record<string, Float32Array>;
  /** The shapes of all tensors. */
  shapes: Record<string, number[]>;
  /** Tensors of integers or bools, which are no parameters: their dtype by name. */
  skipped: Record<string, string>;
  /** The texts of the file. */
  metadata: Record<string, string>;
}

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

const floats = new Set(['F64', 'F16', 'BF16', 'F8_E4M3', 'F8_E5M2']);

function fail(rule: string): never {
  throw new TensorgradError(`loadSafetensors: ${rule}`);
}

/** Reads the f32 tensors of a safetensors file. */
export function loadSafetensors(file: ArrayBuffer | Uint8Array): SafetensorsData {
  const bytes = file instanceof Uint8Array ? file : new Uint8Array(file);
  if (bytes.length < 8) fail(`the file is too small: ${bytes.length} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = Number(view.getBigUint64(0, true));
  const start = 8 + size;
  if (start > bytes.length)
    fail(`the header of ${size} bytes exceeds buffer and file, which have ${bytes.length} bytes`);
  const data: SafetensorsData = { tensors: {}, shapes: {}, skipped: {}, metadata: {} };
  const header = headerOf(bytes.subarray(8, start));
  checkOffsets(header, bytes.length - start);
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') data.metadata = entry as unknown as Record<string, string>;
    else readEntry(name, entry, bytes.subarray(start), data);
  }
  return data;
}

// The tensors lie one behind the other, from the start of the body to its end.
function checkOffsets(entries: Record<string, Entry>, size: number): void {
  const places = Object.entries(entries)
    .filter(([name]) => name !== '__metadata__')
    .map(([name, { data_offsets: offsets }]) => ({ name, from: offsets?.[0], to: offsets?.[1] }))
    .sort((a, b) => a.from - b.from || a.to - b.to);
  let end = 0;
  for (const { name, from, to } of places) {
    if (!Number.isInteger(from) || !Number.isInteger(to) || to < from)
      fail(`the entry of '${name}' is damaged`);
    if (to > size) fail(`'${name}' lies at ${from} .. ${to}, outside of the file`);
    if (from !== end)
      fail(`'${name}' starts at byte ${from}, and the tensor before it ends at byte ${end}`);
    end = to;
  }
  if (end !== size) fail(`${size - end} bytes behind the last tensor`);
}

function headerOf(bytes: Uint8Array): Record<string, Entry> {
  try {
    const header: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof header !== 'object' || header === null || Array.isArray(header))
      throw new Error('it is not an object');
    for (const [name, entry] of Object.entries(header))
      if (typeof entry !== 'object' || entry === null)
        throw new Error(`the entry of '${name}' is not an object`);
    return header as Record<string, Entry>;
  } catch (error) {
    return fail(`the header is not JSON: ${(error as Error).message}`);
  }
}

function readEntry(name: string, entry: Entry, body: Uint8Array, data: SafetensorsData): void {
  const { dtype, shape, data_offsets: offsets } = entry;
  if (!Array.isArray(shape)) fail(`the entry of '${name}' is damaged`);
  data.shapes[name] = shape;
  if (floats.has(dtype))
    fail(`'${name}' is ${dtype}, and this function is f32-only\n  hint: convert the file to f32`);
  if (dtype !== 'F32') {
    data.skipped[name] = dtype;
    return;
  }
  const [from, to] = offsets;
  if (to - from !== 4 * elements(shape))
    fail(
      `'${name}' has the byte length ${to - from}: f32[${shape.join(',')}] needs ` +
        `${4 * elements(shape)}`,
    );
  // A copy: slice() of Node's Buffer would be a view.
  data.tensors[name] = new Float32Array(new Uint8Array(body.subarray(from, to)).buffer);
}

/** Writes a safetensors file. Without shapes, tensors have one axis. */
export function saveSafetensors(
  tensors: Readonly<Record<string, Float32Array>>,
  options: {
    shapes?: Readonly<Record<string, readonly number[]>>;
    metadata?: Readonly<Record<string, string>>;
  } = {},
): Uint8Array<ArrayBuffer> {
  const { shapes = {}, metadata } = options;
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {};
  const names = Object.keys(tensors).sort();
  let size = 0;
  for (const name of names) {
    const { length } = tensors[name]!;
    const shape = shapes[name] ?? [length];
    if (elements(shape) !== length)
      throw new TensorgradError(
        `saveSafetensors: '${name}' has ${length} values: f32[${shape.join(',')}] needs ` +
          `${elements(shape)}`,
      );
    header[name] = { dtype: 'F32', shape, data_offsets: [size, size + 4 * length] };
    size += 4 * length;
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = 8 + Math.ceil(text.length / 8) * 8; // values are aligned
  const bytes = new Uint8Array(start + size).fill(0x20, 8, start);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(start - 8), true);
  bytes.set(text, 8);
  const values = new Float32Array(bytes.buffer, start);
  let at = 0;
  for (const name of names) {
    values.set(tensors[name]!, at);
    at += tensors[name]!.length;
  }
  return bytes;
}
