// Opens an engine for a handle.
import { TensorgradError } from '../wasm/errors.js';
import { likelyBackend } from '../wasm/adapter.js';
import { loadBinaries } from '../wasm/module.js';
import { openHere, openWorker, type Channel } from '../engine/channel.js';
import type { MakeSession } from '../engine/engine.js';
import type { EngineEvent } from '../engine/protocol.js';
import type { RunOptions } from './specs.js';

let makeSession: MakeSession = () => undefined;

/** Called by the entry that has text models. */
export function offerSessions(make: MakeSession): void {
  makeSession = make;
}

// Why there is only one thread. Threads share memory, which pages have only when they are isolated;
// Node always has it. The thread that uses them blocks, which the calling thread must not.
function whyOneThread(worker: boolean): string | undefined {
  const { crossOriginIsolated } = globalThis as { crossOriginIsolated?: boolean };
  if (!worker) return 'the model lives in the calling thread, which may not block';
  if (crossOriginIsolated === false) return 'the page is not cross-origin isolated';
  return undefined;
}

/** Opens an engine as the options say, or as near to that as the page allows. */
export async function openChannel(
  options: RunOptions,
  listener: (event: EngineEvent) => void,
): Promise<Channel> {
  const { device = 'auto', snapshotEvery = null, worker = true, threads = 1 } = options;
  if (!['auto', 'cpu', 'webgpu', 'webgpu:0'].includes(device))
    throw new TensorgradError(
      `device: '${String(device)}' is unknown\n  hint: 'auto', 'cpu' or 'webgpu'`,
    );
  if (!Number.isInteger(threads) || threads < 1)
    throw new TensorgradError(`threads: ${String(threads)} is not a number of threads: 1 or more`);
  const notes: string[] = [];
  const likely = await likelyBackend(device);
  const common = { device, snapshotEvery };
  if (threads > 1) {
    let why = whyOneThread(worker);
    try {
      const most = await processors();
      if (!why && most > 1) {
        const binaries = await loadBinaries(likely, true);
        const open = { ...common, binaries, threads: Math.min(threads, most) };
        return { ...(await openWorker(open, listener)), notes };
      }
      why ??= 'there is one processor';
    } catch (error) {
      if (error instanceof TensorgradError) throw error;
      why = (error as Error).message;
    }
    notes.push(`one thread: ${why}`);
  }
  const open = { ...common, binaries: await loadBinaries(likely), threads: 1 };
  if (worker)
    try {
      return { ...(await openWorker(open, listener)), notes };
    } catch (error) {
      // A page may forbid workers. What is wrong with the device is wrong here too.
      if (error instanceof TensorgradError) throw error;
      notes.push(`no worker: ${(error as Error).message}`);
    }
  return { ...(await openHere(open, listener, makeSession)), notes };
}

async function processors(): Promise<number> {
  const { navigator } = globalThis as { navigator?: { hardwareConcurrency?: number } };
  if (navigator?.hardwareConcurrency) return navigator.hardwareConcurrency;
  const os = 'node:os';
  const { availableParallelism } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ os)) as {
    availableParallelism(): number;
  };
  return availableParallelism();
}
