// The WebAssembly module: its functions as this package calls them, and how it is loaded. A binary
// is compiled once per page; each instance has memory of its own.
import { threadWorkers } from './threads.js';

/** What the generated JavaScript beside the WebAssembly offers. */
export interface WasmModule {
  /** The memory. It grows: ask for it each time. */
  bytes(): Uint8Array;
  words(): Int32Array;
  floats(): Float32Array;
  UTF8ToString(pointer: number): string;
  _malloc(bytes: number): number;
  _free(pointer: number): void;
  /** Ends the workers of further threads. */
  endThreads(): void;
  readonly [name: `_tg_${string}`]: (...args: (number | bigint)[]) => number | bigint;
}

export interface InstanceOptions {
  /** What openGpu() returned. */
  gpu?: unknown;
  /** How many threads there are: more than one if the binary has them. */
  threads?: number;
  /** Called when something that the GPU was asked for has arrived. */
  onArrived?: () => void;
}

type CreateModule = (options: Record<string, unknown>) => Promise<WasmModule>;

/** `core` has no text models and no tokenizers; `threads` needs a cross-origin isolated page. */
export type Variant = 'full' | 'core' | 'threads';

/** A compiled binary and the addresses of the JavaScript beside it. Workers receive it. */
export interface Binary {
  readonly module: WebAssembly.Module;
  readonly script: string;
  /** What the workers of further threads run. */
  readonly threadScript?: string;
}

// Bundlers find files by these expressions. The scripts are files too, not imports, so that a
// worker needs no module of its own.
interface Files {
  readonly wasm: URL;
  readonly script: URL;
  readonly threadScript?: URL;
}
const files: Record<Variant, () => Files> = {
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
    threadScript: new URL('./tensorgrad-threads.worker.js', import.meta.url),
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

async function compileBinary({ wasm, script, threadScript }: Files): Promise<Binary> {
  const scripts = {
    script: script.href,
    ...(threadScript && { threadScript: threadScript.href }),
  };
  if (wasm.protocol === 'file:')
    return { module: await WebAssembly.compile(await readFile(wasm)), ...scripts };
  const response = await fetch(wasm);
  if (!response.ok) throw new Error(`tensorgrad: ${wasm} could not be loaded: ${response.status}`);
  // A server that does not know the type of .wasm files must not be an obstacle.
  const typed = response.headers.get('Content-Type') === 'application/wasm'; // no parameters
  const module = typed
    ? await WebAssembly.compileStreaming(response)
    : await WebAssembly.compile(await response.arrayBuffer());
  return { module, ...scripts };
}

// Node. Bundlers for pages must not resolve this import.
async function readFile(url: URL): Promise<BufferSource> {
  const fs = 'node:fs/promises';
  const { readFile: read } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ fs)) as {
    readFile(url: URL): Promise<Uint8Array<ArrayBuffer>>;
  };
  return read(url);
}

/** Makes an instance of the library. Several threads need a worker's thread, which may block. */
export async function instantiate(
  binary: Binary,
  options: InstanceOptions = {},
): Promise<WasmModule> {
  const { module, script, threadScript } = binary;
  const { default: create } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ script
  )) as { default: CreateModule };
  const made = { ...options, wasmModule: module };
  if (threadScript === undefined) return create(made);
  const { workers, failed, started } = await threadWorkers(threadScript);
  // It warns of blocking where it does not see that it is in a worker: in Node.
  const printErr = (text: string): void => {
    if (!text.startsWith('Blocking on the main thread')) console.error(text);
  };
  const own = { ...made, printErr, mainScriptUrlOrBlob: script, locateFile: () => workers };
  return Promise.race([create(own), failed]).finally(started);
}
