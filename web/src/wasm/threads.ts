// Threads of the library are workers, which the generated JavaScript starts by `new Worker(address)`.
// That happens in the package's own worker, whose globals are ours.

type Failed = (event: { message?: string }) => void;

interface Scope {
  Worker?: new (address: string) => object;
  readonly location?: { readonly origin: string };
}
const scope = globalThis as unknown as Scope;

export interface ThreadWorkers {
  /** What the generated JavaScript passes to `new Worker()`. */
  readonly workers: string;
  /** Rejects when a worker fails, which the generated JavaScript does not report. */
  readonly failed: Promise<never>;
  /** Call it when the instance is there. */
  started(): void;
}

type AnyWorker = new (address: string) => EventTarget;
let base: Promise<AnyWorker> | undefined; // of the workers that watch for errors

export async function threadWorkers(script: string): Promise<ThreadWorkers> {
  let fail!: Failed;
  const failed = new Promise<never>((_, reject) => {
    fail = ({ message }) =>
      reject(new Error(`a thread failed: ${message || 'its script could not be loaded'}`));
  });
  failed.catch(() => undefined); // it may be that nobody waits
  // A script that cannot import another one reports nothing.
  const limit = setTimeout(() => fail({ message: 'it did not start within a minute' }), 60_000);
  base ??= scope.Worker && !isNode() ? Promise.resolve(scope.Worker as AnyWorker) : nodeWorker();
  const Base = await base;
  scope.Worker = class extends Base {
    constructor(address: string) {
      super(address);
      this.addEventListener('error', fail as unknown as EventListener);
    }
  };
  return { workers: sameOrigin(script), failed, started: () => clearTimeout(limit) };
}

// A page may not start a worker from another site, and one of a data: URL may import nothing. But a
// worker of this site may import a script from anywhere.
function sameOrigin(script: string): string {
  const { origin } = scope.location ?? {};
  if (!origin || new URL(script).origin === origin) return script;
  const source = `importScripts(${JSON.stringify(script)})`;
  return URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
}

function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node !== undefined;
}

// In a worker of Node, what the script of a thread expects of a worker of a page.
const nodePrelude = `
  import { parentPort, workerData } from 'node:worker_threads';
  globalThis.self = globalThis;
  globalThis.postMessage = (message) => parentPort.postMessage(message);
  await import(workerData);
  parentPort.on('message', (data) => globalThis.onmessage({ data }));
`;

interface NodeThread {
  postMessage(message: unknown, transfer?: unknown): void;
  on(event: string, listener: (value: never) => void): void;
  terminate(): void;
}

// A worker of Node with the interface of a page's.
async function nodeWorker(): Promise<AnyWorker> {
  const threads = 'node:worker_threads';
  const { Worker: Threads } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ threads
  )) as { Worker: new (url: URL, options: object) => NodeThread };
  const prelude = new URL(`data:text/javascript,${encodeURIComponent(nodePrelude)}`);
  return class {
    onmessage: ((event: { data: unknown }) => void) | undefined;
    private readonly thread: NodeThread;
    constructor(address: string) {
      this.thread = new Threads(prelude, { workerData: address });
      this.thread.on('message', (data: unknown) => this.onmessage?.({ data }));
    }
    addEventListener(type: string, listener: Failed): void {
      this.thread.on(type, listener);
    }
    postMessage(message: unknown, transfer?: unknown): void {
      this.thread.postMessage(message, transfer);
    }
    terminate(): void {
      this.thread.terminate();
    }
  } as unknown as AnyWorker;
}
