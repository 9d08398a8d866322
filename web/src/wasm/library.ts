// Calls of the C interface (tensorgrad/c.h): texts into memory, errors out of it.
import { likelyBackend } from './adapter.js';
import { ShapeError, TensorgradError, type ErrorKind } from './errors.js';
import {
  instantiate,
  loadBinaries,
  type Backend,
  type Binary,
  type InstanceOptions,
  type WasmModule,
} from './module.js';

/** A pointer to an object of the library. */
export type Handle = number;

/** Arguments: a text is copied into memory for the call. */
export type CallArgument = string | number | bigint | null;

const encoder = new TextEncoder();

// Errors name functions and options as C++ does, and count steps from 0. In quotes are names of the
// user.
function inJavaScript(message: string): string {
  const camel = (text: string): string =>
    text.replace(/\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b/g, (name) =>
      name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    );
  const hint = (line: string): string =>
    line
      .replace(/\btg::(f32|i32|bool)\b/g, "'$1'")
      .replace(/\bUpload::partial\b/g, '{ partial: true }')
      .replace(/\bset_input\(/g, 'setInputs(')
      .replace(/\bkeepdims\b/g, 'keepDims')
      .split(/('[^']*'|\bat \S+:\d+)/)
      .map((part, i) => (i % 2 === 0 ? camel(part) : part))
      .join('');
  return message
    .replace(/^step (\d+):/, (_, step: string) => `step ${Number(step) + 1}:`)
    .replace(/^[a-z0-9_]+(?=:)/, camel)
    .split('\n')
    .map((line) => (line.startsWith('  hint:') ? hint(line) : line))
    .join('\n');
}

/** One instance of the library. Use it from one thread. */
export class Library {
  private scratch = 0;
  private scratchSize = 0;

  private constructor(
    readonly module: WasmModule,
    private readonly backend: Backend,
  ) {}

  static async open(binary: Binary, options: InstanceOptions = {}): Promise<Library> {
    return new Library(await instantiate(binary, options), binary.backend);
  }

  /** A device that this instance compiles for without opening anything. */
  get deviceToShow(): string {
    return this.backend === 'cpu' ? 'cpu' : 'wgsl';
  }

  /** Calls tg_NAME and returns what it returns. */
  call(name: string, ...args: CallArgument[]): number {
    const fn = this.module[`_tg_${name}`];
    if (!fn) throw new TensorgradError(`tensorgrad: the binary has no tg_${name}`, 'internal');
    return Number(fn(...this.place(args)));
  }

  /** The same for functions that return a pointer: above 2 GiB it comes as a negative number. */
  pointer(name: string, ...args: CallArgument[]): number {
    return this.call(name, ...args) >>> 0;
  }

  /** The same for functions that return 0 (a null pointer) on failure. */
  need(name: string, ...args: CallArgument[]): Handle {
    const result = this.pointer(name, ...args);
    if (result === 0) throw this.error();
    return result;
  }

  /** Ends the threads of the instance, which is not called any more. */
  end(): void {
    this.module.endThreads();
  }

  /** Memory, or an error of kind out_of_memory. */
  private allocate(bytes: number): number {
    const pointer = this.module._malloc(Math.max(1, bytes)) >>> 0;
    if (pointer === 0)
      throw new TensorgradError(`memory is exhausted: ${bytes} bytes`, 'out_of_memory');
    return pointer;
  }

  /** A number of 32 bits at an address. */
  wordAt(pointer: number): number {
    return this.module.words()[pointer / 4]! >>> 0;
  }

  /** The same for functions that return -1 on failure. */
  index(name: string, ...args: CallArgument[]): number {
    const result = this.call(name, ...args);
    if (result < 0) throw this.error();
    return result;
  }

  /** The same for functions that return a text. */
  text(name: string, ...args: CallArgument[]): string {
    return this.module.UTF8ToString(this.need(name, ...args));
  }

  json<T>(name: string, ...args: CallArgument[]): T {
    return JSON.parse(this.text(name, ...args)) as T;
  }

  /** The error of the last call that failed. */
  error(): TensorgradError {
    const message = this.module.UTF8ToString(this.call('error')) || 'memory is exhausted';
    return new TensorgradError(
      inJavaScript(message),
      this.module.UTF8ToString(this.call('error_kind')) as ErrorKind,
    );
  }

  /** Calls something that reads a model's ops. User errors in it are about shapes and arguments. */
  traced<T>(body: () => T): T {
    try {
      return body();
    } catch (error) {
      if (error instanceof TensorgradError && error.kind === 'user')
        throw new ShapeError(error.message);
      throw error;
    }
  }

  /** Runs `body` with the bytes in memory. */
  withBytes<T>(bytes: Uint8Array, body: (pointer: number, size: number) => T): T {
    const pointer = this.allocate(bytes.length);
    try {
      this.module.bytes().set(bytes, pointer);
      return body(pointer, bytes.length);
    } finally {
      this.module._free(pointer);
    }
  }

  /** A copy of bytes in memory. */
  bytesAt(pointer: number, size: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.module.bytes().subarray(pointer, pointer + size));
  }

  /** Takes the contents of a tg_bytes and frees it. */
  takeBytes(handle: Handle): Uint8Array<ArrayBuffer> {
    const bytes = this.bytesAt(
      this.pointer('bytes_data', handle),
      this.pointer('bytes_size', handle),
    );
    this.call('bytes_free', handle);
    return bytes;
  }

  // Texts go into memory that all calls share. The library copies what it keeps.
  private place(args: CallArgument[]): (number | bigint)[] {
    const encoded = args.map((arg) => (typeof arg === 'string' ? encoder.encode(arg) : undefined));
    const needed = encoded.reduce((sum, text) => sum + (text ? text.length + 1 : 0), 0);
    if (needed > this.scratchSize) this.growScratch(needed);
    let at = this.scratch;
    return args.map((arg, i) => {
      const text = encoded[i];
      if (!text) return arg === null ? 0 : (arg as number | bigint);
      const pointer = at;
      const heap = this.module.bytes();
      heap.set(text, pointer);
      heap[pointer + text.length] = 0;
      at += text.length + 1;
      return pointer;
    });
  }

  private growScratch(needed: number): void {
    const size = Math.max(needed, 4096, 2 * this.scratchSize);
    const pointer = this.allocate(size);
    if (this.scratch) this.module._free(this.scratch);
    this.scratch = pointer;
    this.scratchSize = size;
  }
}

let local: Promise<Library> | undefined;
let loaded: Library | undefined;

// Of the binary that engines for `device` most likely use, so that a page downloads one.
async function openLocal(device: string): Promise<Library> {
  const backend = await likelyBackend(device);
  return Library.open((await loadBinaries(backend))[backend]);
}

/** The instance of this thread that traces models, for any device. The first call makes it. */
export function localLibrary(device = 'auto'): Promise<Library> {
  local ??= openLocal(device).then(
    (library) => (loaded = library),
    (error: unknown) => {
      local = undefined;
      throw error;
    },
  );
  return local;
}

/** The same for functions that cannot wait. */
export function readyLibrary(what: string): Library {
  if (!loaded)
    throw new TensorgradError(
      `${what}: the library is not loaded yet\n  hint: await ready() once before`,
    );
  return loaded;
}

/** Loads the library. Functions that return promises do it themselves. */
export async function ready(): Promise<void> {
  await localLibrary();
}
