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

/** What a binary computes with. A page uses one of them, and downloads one. */
export type Backend = 'cpu' | 'webgpu';

/** The addresses of a binary. Workers receive it. */
export interface Binary {
  readonly backend: Backend;
  readonly wasm: string;
  /** The JavaScript beside it. */
  readonly script: string;
  /** What the workers of further threads run. */
  readonly threadScript?: string;
  /** The binary, if it is compiled already. */
  readonly module?: WebAssembly.Module;
}

/** What an engine chooses from, once it knows its device. */
export type Binaries = Readonly<Record<Backend, Binary>>;

// Bundlers find files by these expressions. The scripts are files too, not imports, so that a
// worker needs no module of its own.
const everything = (): Binaries => ({
  cpu: {
    backend: 'cpu',
    wasm: new URL('./tensorgrad-cpu.wasm', import.meta.url).href,
    script: new URL('./tensorgrad-cpu.mjs', import.meta.url).href,
  },
  webgpu: {
    backend: 'webgpu',
    wasm: new URL('./tensorgrad-webgpu.wasm', import.meta.url).href,
    script: new URL('./tensorgrad-webgpu.mjs', import.meta.url).href,
  },
});
// Without text models and tokenizers.
const core = (): Binaries => ({
  cpu: {
    backend: 'cpu',
    wasm: new URL('./tensorgrad-core-cpu.wasm', import.meta.url).href,
    script: new URL('./tensorgrad-core-cpu.mjs', import.meta.url).href,
  },
  webgpu: {
    backend: 'webgpu',
    wasm: new URL('./tensorgrad-core-webgpu.wasm', import.meta.url).href,
    script: new URL('./tensorgrad-core-webgpu.mjs', import.meta.url).href,
  },
});
// For several threads on the CPU, which need a cross-origin isolated page.
const threaded = (): Binary => ({
  backend: 'cpu',
  wasm: new URL('./tensorgrad-threads.wasm', import.meta.url).href,
  script: new URL('./tensorgrad-threads.mjs', import.meta.url).href,
  threadScript: new URL('./tensorgrad-threads.worker.js', import.meta.url).href,
});

let binaries = core;

/** Called by the entry that has text models. */
export function useEverything(): void {
  binaries = everything;
}

/** The binaries of this page. The one that is likely needed is loaded. */
export async function loadBinaries(likely: Backend, threads = false): Promise<Binaries> {
  const all = { ...binaries(), ...(threads && { cpu: threaded() }) };
  return { ...all, [likely]: { ...all[likely], module: await loadModule(all[likely]) } };
}

const modules = new Map<string, Promise<WebAssembly.Module>>();

// Fetches and compiles a binary. Later calls return the same one.
function loadModule({ wasm, module }: Binary): Promise<WebAssembly.Module> {
  if (module) return Promise.resolve(module);
  const known = modules.get(wasm);
  if (known) return known;
  const loading = compile(wasm);
  modules.set(wasm, loading);
  loading.catch(() => modules.delete(wasm)); // a later call may find the network again
  return loading;
}

async function compile(wasm: string): Promise<WebAssembly.Module> {
  if (wasm.startsWith('file:')) return WebAssembly.compile(await readFile(new URL(wasm)));
  const response = await fetch(wasm);
  if (!response.ok) throw new Error(`tensorgrad: ${wasm} could not be loaded: ${response.status}`);
  // A server that does not know the type of .wasm files must not be an obstacle.
  const typed = response.headers.get('Content-Type') === 'application/wasm'; // no parameters
  return typed
    ? WebAssembly.compileStreaming(response)
    : WebAssembly.compile(await response.arrayBuffer());
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
  const { script, threadScript } = binary;
  const module = await loadModule(binary);
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
