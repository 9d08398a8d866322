// The way from a handle to its engine: in a worker of its own, or in this thread.
import {
  AbortError,
  type Command,
  type EngineEvent,
  type FromWorker,
  type GpuReport,
  type Opened,
  type OpenOptions,
  type ToWorker,
} from './protocol.js';
import { Engine, type MakeSession } from './engine.js';
import { fromWire } from '../wasm/errors.js';

/** An engine that computes somewhere. */
export interface Channel {
  readonly opened: Opened;
  /** What was asked for and could not be had, as texts. */
  readonly notes: readonly string[];
  request(command: Command, transfer?: ArrayBuffer[]): Promise<unknown>;
  loseDevice(): void;
  stop(): void;
  close(): void;
}

type Listener = (event: EngineEvent) => void;

/** An engine in this thread. */
export async function openHere(
  options: OpenOptions,
  listener: Listener,
  make: MakeSession,
): Promise<Channel> {
  const { engine, opened } = await Engine.open(options, listener, make);
  return {
    opened,
    notes: [],
    request: (command) => engine.request(command),
    loseDevice: () => engine.loseDevice(),
    stop: () => engine.stop(),
    close: () => engine.close(),
  };
}

// A worker of a page or of Node.
interface AnyWorker {
  postMessage(message: ToWorker, transfer: ArrayBuffer[]): void;
  listen(message: (message: FromWorker) => void, failed: (error: Error) => void): void;
  /** Whether the process waits for the worker. */
  hold(on: boolean): void;
  terminate(): void;
}

/** An engine in a worker of its own. Rejects where there are no workers. */
export async function openWorker(options: OpenOptions, listener: Listener): Promise<Channel> {
  const line = new WorkerLine(await startWorker(), listener);
  try {
    const opened = (await line.send({ open: options })) as Opened;
    return {
      opened,
      notes: [],
      request: (command, transfer) => line.send({ command }, transfer),
      loseDevice: () => line.tell({ lose: true }),
      stop: () => line.tell({ stop: true }),
      close: () => line.close(new AbortError()),
    };
  } catch (error) {
    line.close(error as Error);
    throw error;
  }
}

/** Asks a worker whether there is a GPU: the first question may take long. */
export async function probeInWorker(): Promise<GpuReport> {
  const line = new WorkerLine(await startWorker(), () => undefined);
  try {
    return (await line.send({ probe: true })) as GpuReport;
  } finally {
    line.close(new AbortError());
  }
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;

class WorkerLine {
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  private closed: Error | undefined;

  constructor(
    private readonly worker: AnyWorker,
    private readonly listener: Listener,
  ) {
    worker.listen(
      (message) => this.receive(message),
      (error) => this.close(new Error(`tensorgrad: the worker failed: ${error.message}`)),
    );
  }

  send(message: WithoutId<ToWorker>, transfer: ArrayBuffer[] = []): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(this.closed);
      const id = ++this.last;
      this.waiting.set(id, { resolve, reject });
      this.worker.hold(true);
      try {
        this.worker.postMessage({ id, ...message } as ToWorker, transfer);
      } catch (error) {
        this.settle(id);
        reject(error);
      }
    });
  }

  /** The same, if no answer is wanted. */
  tell(message: WithoutId<ToWorker>): void {
    this.send(message).catch(() => undefined);
  }

  private receive(message: FromWorker): void {
    if ('event' in message) return this.listener(message.event);
    const waiting = this.settle(message.id);
    if (!waiting) return;
    if ('error' in message) waiting.reject(fromWire(message.error));
    else waiting.resolve(message.value);
  }

  private settle(id: number): Waiting | undefined {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (this.waiting.size === 0) this.worker.hold(false);
    return waiting;
  }

  close(why: Error): void {
    if (this.closed) return;
    this.closed = why;
    this.worker.terminate();
    for (const { reject } of this.waiting.values()) reject(why);
    this.waiting.clear();
  }
}

function startWorker(): Promise<AnyWorker> {
  return typeof Worker === 'undefined' ? startNodeWorker() : Promise.resolve(startWebWorker());
}

function startWebWorker(): AnyWorker {
  const worker = makeWebWorker();
  return {
    postMessage: (message, transfer) => worker.postMessage(message, transfer),
    listen(message, failed) {
      worker.onmessage = ({ data }: MessageEvent<FromWorker>) => message(data);
      worker.onerror = (event) => failed(new Error(event.message || 'it could not be loaded'));
      worker.onmessageerror = () => failed(new Error('a message could not be read'));
    },
    hold: () => undefined,
    terminate: () => worker.terminate(),
  };
}

function makeWebWorker(): Worker {
  const { origin } = globalThis.location ?? {};
  const here = import.meta.url;
  if (!origin || !/^https?:/.test(here) || new URL(here).origin === origin)
    return new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  // A page may not start a worker from another site, but a worker may import a module from there.
  const script = here.slice(0, here.lastIndexOf('/') + 1) + 'worker.js';
  const source = new Blob([`import ${JSON.stringify(script)}`], {
    type: 'text/javascript',
  });
  const address = URL.createObjectURL(source);
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // it has been read by then
  return new Worker(address, { type: 'module' });
}

interface NodeWorker {
  postMessage(message: ToWorker, transfer: ArrayBuffer[]): void;
  on(event: string, listener: (value: never) => void): void;
  ref(): void;
  unref(): void;
  terminate(): void;
}

async function startNodeWorker(): Promise<AnyWorker> {
  const threads = 'node:worker_threads';
  const { Worker: Threads } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ threads
  )) as { Worker: new (url: URL) => NodeWorker };
  const worker = new Threads(new URL('./worker.js', import.meta.url));
  worker.unref();
  return {
    postMessage: (message, transfer) => worker.postMessage(message, transfer),
    listen(message, failed) {
      worker.on('message', message);
      worker.on('error', failed);
    },
    hold: (on) => (on ? worker.ref() : worker.unref()),
    terminate: () => worker.terminate(),
  };
}
