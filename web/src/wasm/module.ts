// The WebAssembly module: its functions as this package calls them, and how it is loaded. A binary
// is compiled once per page; each instance has memory of its own.

/**
 * What the generated JavaScript beside the WebAssembly offers. Memory grows: read the views anew.
 */
export interface WasmModule {
  readonly HEAPU8: Uint8Array;
  readonly HEAP32: Int32Array;
  readonly HEAPF32: Float32Array;
  UTF8ToString(pointer: number): string;
  _malloc(bytes: number): number;
  _free(pointer: number): void;
  readonly [name: `_tg_${string}`]: (...args: (number | bigint)[]) => number | bigint;
}

export interface InstanceOptions {
  /** What openGpu() returned. */
  gpu?: unknown;
  /** Called when something that the GPU was asked for has arrived. */
  onArrived?: () => void;
}

type CreateModule = (options: Record<string, unknown>) => Promise<WasmModule>;

/** `core` has no text models and no tokenizers; `threads` needs a cross-origin isolated page. */
export type Variant = 'full' | 'core' | 'threads';

/** A compiled binary and the address of the JavaScript beside it. Workers receive it. */
export interface Binary {
  readonly module: WebAssembly.Module;
  readonly script: string;
}

// Bundlers find files by these expressions. The scripts are files too, not imports, so that a
// worker needs no module of its own.
const files: Record<Variant, () => { wasm: URL; script: URL }> = {
  full: () => ({
    wasm: new URL('./tensorgrad.wasm', import.meta.url),
    script: new URL('./tensorgrad.mjs', import.meta.url),
  }),
  core: () => ({
    wasm: new URL('./tensorgrad-core.wasm', import.meta.url),
    script: new URL('./tensorgrad-core.mjs', import.meta.url),
  }),
  threads: () => ({
    wasm: new URL('./tensorgrad-threads.wasm', import.meta.url),
    script: new URL('./tensorgrad-threads.mjs', import.meta.url),
  }),
};

let single: 'full' | 'core' = 'core';

/** Called by the entry that has text models. */
export function useEverything(): void {
  single = 'full';
}

const binaries = new Map<Variant, Promise<Binary>>();

/** Fetches and compiles a binary. Later calls return the same one. */
export function loadBinary(threads = false): Promise<Binary> {
  const variant = threads ? 'threads' : single;
  const known = binaries.get(variant);
  if (known) return known;
  const loading = compileBinary(files[variant]());
  binaries.set(variant, loading);
  loading.catch(() => binaries.delete(variant)); // a later call may find the network again
  return loading;
}

async function compileBinary({ wasm, script }: { wasm: URL; script: URL }): Promise<Binary> {
  if (wasm.protocol === 'file:')
    return { module: await WebAssembly.compile(await readFile(wasm)), script: script.href };
  const response = await fetch(wasm);
  if (!response.ok) throw new Error(`tensorgrad: ${wasm} could not be loaded: ${response.status}`);
  // A server that does not know the type of .wasm files must not be an obstacle.
  const typed = response.headers.get('Content-Type')?.startsWith('application/wasm') ?? false;
  const module = typed
    ? await WebAssembly.compileStreaming(response)
    : await WebAssembly.compile(await response.arrayBuffer());
  return { module, script: script.href };
}

// Node. Bundlers for pages must not resolve this import.
async function readFile(url: URL): Promise<BufferSource> {
  const fs = 'node:fs/promises';
  const { readFile: read } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ fs)) as {
    readFile(url: URL): Promise<Uint8Array<ArrayBuffer>>;
  };
  return read(url);
}

/** Makes an instance of the library. */
export async function instantiate(
  binary: Binary,
  options: InstanceOptions = {},
): Promise<WasmModule> {
  const { default: create } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ binary.script
  )) as { default: CreateModule };
  return create({ ...options, wasmModule: binary.module });
}
