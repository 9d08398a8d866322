// Opens an engine for a handle.
import { TensorgradError } from '../wasm/errors.js';
import { loadBinary, type Binary } from '../wasm/module.js';
import { openHere, openWorker, type Channel } from '../engine/channel.js';
import type { MakeSession } from '../engine/engine.js';
import type { EngineEvent } from '../engine/protocol.js';
import type { RunOptions } from './specs.js';

let makeSession: MakeSession = () => undefined;

/** Called by the entry that has text models. */
export function offerSessions(make: MakeSession): void {
  makeSession = make;
}

// Threads share memory, which pages have only when they are isolated; Node always has it. They need
// another binary, which a page may not have.
async function binaryFor(threads: number): Promise<{ binary: Binary; threads: number }> {
  const { crossOriginIsolated: isolated } = globalThis as { crossOriginIsolated?: boolean };
  if (threads > 1 && isolated !== false)
    try {
      return { binary: await loadBinary(true), threads };
    } catch {
      // one thread computes the same
    }
  return { binary: await loadBinary(), threads: 1 };
}

export async function openChannel(
  options: RunOptions,
  listener: (event: EngineEvent) => void,
): Promise<Channel> {
  const open = {
    ...(await binaryFor(options.threads ?? 1)),
    device: options.device ?? 'auto',
    snapshotEvery: options.snapshotEvery ?? null,
  };
  if (options.worker === false) return openHere(open, listener, makeSession);
  try {
    return await openWorker(open, listener);
  } catch (error) {
    // A page may forbid workers. What is wrong with the device is wrong here too.
    if (error instanceof TensorgradError) throw error;
    return openHere(open, listener, makeSession);
  }
}
