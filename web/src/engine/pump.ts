// Makes progress in one instance of the library, and completes promises for its futures.
import type { Handle, Library } from '../wasm/library.js';

interface Watched {
  readonly future: Handle;
  readonly take: (future: Handle) => void;
  readonly fail: (error: Error) => void;
  readonly progress: ((text: string) => void) | undefined;
}

// A task after those that wait: messages, timers.
const later: (task: () => void) => void = (() => {
  const { setImmediate: immediate } = globalThis as { setImmediate?: (task: () => void) => void };
  if (immediate) return immediate;
  const channel = new MessageChannel();
  const tasks: (() => void)[] = [];
  channel.port1.onmessage = () => tasks.shift()?.();
  return (task) => {
    tasks.push(task);
    channel.port2.postMessage(null);
  };
})();

export class Pump {
  private readonly watched = new Set<Watched>();
  private scheduled = false;
  private stopped = false;
  /** Called after each poll. */
  afterPoll: (() => void) | undefined;

  /** `waits`: something tells arrived() when there is progress to be made. */
  constructor(
    private readonly lib: Library,
    private readonly waits: boolean,
  ) {}

  /** The value of a future, read by `read`, which must not keep the handle. Frees the future. */
  watch<T>(
    future: Handle,
    read: (future: Handle) => T,
    progress?: (text: string) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const take = (handle: Handle): void => {
        try {
          resolve(read(handle));
        } catch (error) {
          reject(error as Error);
        }
      };
      this.watched.add({ future, take, fail: reject, progress });
      queueMicrotask(() => this.poll());
    });
  }

  /** Something that the library waits for has arrived. */
  arrived(): void {
    this.poll();
  }

  /** The instance is not called any more. Its promises stay as they are. */
  stop(): void {
    this.stopped = true;
    this.watched.clear();
  }

  private poll(): void {
    if (this.stopped || this.watched.size === 0) return;
    try {
      this.look();
    } catch (error) {
      // A trap, or no memory left for a text: nobody would poll again.
      this.failAll(error as Error);
    }
  }

  private look(): void {
    if (this.lib.call('poll') < 0) return this.failAll(this.lib.error());
    this.afterPoll?.();
    for (const each of this.watched) {
      if (each.progress) each.progress(this.lib.text('future_progress', each.future));
      const state = this.lib.call('ready', each.future);
      if (state === 0) continue;
      this.watched.delete(each);
      if (state > 0) each.take(each.future);
      else each.fail(this.lib.error());
      this.lib.call('future_free', each.future);
    }
    if (this.watched.size > 0) this.schedule();
  }

  private failAll(error: Error): void {
    const all = [...this.watched];
    this.watched.clear();
    for (const { fail } of all) fail(error);
    try {
      for (const { future } of all) this.lib.call('future_free', future);
    } catch {
      // after a trap, the instance is of no use
    }
  }

  // A GPU announces what has arrived; looking now and then costs little and cannot miss anything.
  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const task = (): void => {
      this.scheduled = false;
      this.poll();
    };
    if (this.waits) setTimeout(task, 5);
    else later(task);
  }
}
