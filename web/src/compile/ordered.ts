// Keeps the order of a handle's calls where a command needs an answer before it can be sent.
import type { Channel } from '../engine/channel.js';
import type { Command } from '../engine/protocol.js';

export interface Prepared {
  readonly command: Command;
  readonly transfer: ArrayBuffer[];
}

export class OrderedChannel implements Channel {
  private holding = false;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly inner: Channel) {}

  get opened(): Channel['opened'] {
    return this.inner.opened;
  }
  get notes(): readonly string[] {
    return this.inner.notes;
  }

  request(command: Command, transfer?: ArrayBuffer[]): Promise<unknown> {
    if (!this.holding) return this.inner.request(command, transfer);
    return new Promise((resolve, reject) => {
      this.waiting.push(() => this.inner.request(command, transfer).then(resolve, reject));
    });
  }

  /** Sends what `prepare` makes. What is requested meanwhile comes after it. */
  prepared(prepare: (inner: Channel) => Promise<Prepared>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        this.holding = true;
        prepare(this.inner)
          .then(({ command, transfer }) => {
            this.inner.request(command, transfer).then(resolve, reject);
          }, reject)
          .finally(() => this.release());
      };
      if (this.holding) this.waiting.push(begin);
      else begin();
    });
  }

  private release(): void {
    this.holding = false;
    while (!this.holding && this.waiting.length > 0) this.waiting.shift()!();
  }

  loseDevice(): void {
    this.inner.loseDevice();
  }
  stop(): void {
    this.inner.stop();
  }
  close(): void {
    this.inner.close();
  }
}
