// The commands since the last snapshot: what recovery repeats.
import type { Command } from './protocol.js';

export interface Entry {
  readonly command: Command;
  changes: boolean; // the state; known when it is issued
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly bytes: number;
  /** When it was issued and settled, on one clock; 0: not yet. */
  issued: number;
  settled: number;
  failure: string | undefined;
}

/** What a command keeps in memory while it is in the log. */
export function bytesOf(command: Command): number {
  if (command.kind === 'load' || command.kind === 'restoreCheckpoint')
    return command.bytes.byteLength;
  const arrays =
    command.kind === 'run' || command.kind === 'setInputs'
      ? command.feed
      : command.kind === 'upload'
        ? command.params
        : {};
  return Object.values(arrays).reduce((sum, array) => sum + array.values.byteLength, 0);
}

export class CommandLog {
  private entries: Entry[] = [];
  private clock = 0;
  private readonly together: { first: number; last: number }[] = [];
  private readonly waiting: { mark: number; resolve: () => void }[] = [];
  /** Of entries that recovery would repeat. */
  bytes = 0;
  runs = 0;

  /** `keeps`: there is something to recover from a lost device. */
  constructor(private keeps: boolean) {}

  issue(entry: Entry): void {
    const first = entry.issued === 0;
    entry.issued = ++this.clock;
    if (!first) return; // it is repeated, and has its place
    this.entries.push(entry);
    if (!this.keeps || !entry.changes) return;
    this.bytes += entry.bytes;
    if (entry.command.kind === 'run' || entry.command.kind === 'trainStep') ++this.runs;
  }

  settle(entry: Entry, failure: string | undefined): void {
    entry.settled = ++this.clock;
    entry.failure = failure;
    this.settleUnread(entry);
    if (!this.keeps || !entry.changes || this.refused(entry)) this.drop((each) => each === entry);
    this.wake();
  }

  // A step that is read tells how those ended that were not. If one of them failed, this one reports
  // it, and a snapshot must not come between them: repeated alone, this one would not fail.
  private settleUnread({ command, issued, failure }: Entry): void {
    if (command.kind !== 'run' || command.id !== 0 || !command.read) return;
    const unread = this.entries.filter(
      (each) =>
        each.settled === 0 &&
        each.issued < issued &&
        each.command.kind === 'run' &&
        !each.command.read,
    );
    for (const each of unread) each.settled = this.clock;
    if (failure !== undefined && unread.length > 0)
      this.together.push({ first: unread[0]!.issued, last: issued });
    if (!this.keeps) this.drop((each) => each.settled > 0);
  }

  /** Whether a snapshot of that place would come between steps that failed together. */
  splits(mark: number): boolean {
    return this.together.some(({ first, last }) => first < mark && mark < last);
  }

  // A step that was enqueued behind one that failed has changed nothing, and has the same error.
  // Repeated alone, it would not fail.
  private refused(entry: Entry): boolean {
    if (entry.failure === undefined) return false;
    return this.entries.some(
      (other) =>
        other.failure === entry.failure &&
        other.issued < entry.issued &&
        other.settled > entry.issued,
    );
  }

  /** A place in the log: behind all that was issued so far. */
  mark(): number {
    this.bytes = 0;
    this.runs = 0;
    return ++this.clock;
  }

  /** Resolves when all that was issued before the mark is settled. */
  settledBefore(mark: number): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push({ mark, resolve });
      this.wake();
    });
  }

  private wake(): void {
    const ready = ({ mark }: { mark: number }): boolean =>
      this.entries.every((entry) => entry.issued > mark || entry.settled > 0);
    for (const each of this.waiting.filter(ready)) {
      this.waiting.splice(this.waiting.indexOf(each), 1);
      each.resolve();
    }
  }

  /** Forgets what a snapshot of that place contains. */
  forget(mark: number): void {
    this.drop((entry) => entry.issued < mark && entry.settled > 0);
  }

  /** Everything that is left, in order. */
  all(): readonly Entry[] {
    return [...this.entries];
  }

  /** The entries that are not answered yet. */
  open(): Entry[] {
    return this.entries.filter((entry) => entry.settled === 0);
  }

  keepNothing(): void {
    this.keeps = false;
    this.drop((entry) => entry.settled > 0);
  }

  clear(): void {
    this.entries = [];
    this.mark();
  }

  private drop(which: (entry: Entry) => boolean): void {
    this.entries = this.entries.filter((entry) => !which(entry));
  }
}
