// Opens the GPU, and says why there is none.
import { TensorgradError } from '../wasm/errors.js';
import type { GpuReport } from './protocol.js';
import { openGpu, type Gpu } from './gpu.js';

export type { Gpu } from './gpu.js';

const isNode = (globalThis as { process?: { versions?: { node?: string } } }).process?.versions
  ?.node;

// npm's `webgpu`, if it is installed.
async function offerNodeGpu(): Promise<void> {
  const scope = globalThis as { navigator?: { gpu?: unknown } };
  if (!isNode || scope.navigator?.gpu) return;
  const name = 'webgpu';
  let found: { create(options: string[]): unknown; globals: object };
  try {
    found = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as typeof found;
  } catch {
    return;
  }
  Object.assign(globalThis, found.globals);
  const gpu = found.create([]);
  if (scope.navigator)
    Object.defineProperty(scope.navigator, 'gpu', { value: gpu, configurable: true });
  else
    Object.defineProperty(globalThis, 'navigator', {
      value: { gpu },
      configurable: true,
      writable: true,
    });
}

const retries = [0, 100, 400]; // a GPU process that has just crashed takes a moment

/** Opens the GPU for a device option, or reports why not. Throws if a GPU was asked for by name. */
export async function openDevice(wanted: string): Promise<Gpu> {
  if (wanted === 'cpu') return { ok: false, message: '', reason: 'not-asked' };
  const named = wanted.startsWith('webgpu');
  await offerNodeGpu();
  let gpu: Gpu = { ok: false, message: '', reason: 'no-adapter' };
  for (const pause of retries) {
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
    gpu = await openGpu({ software: named });
    if (gpu.ok || gpu.reason !== 'no-adapter') break;
  }
  if (named && !gpu.ok) throw new TensorgradError(`device '${wanted}': ${gpu.message}`, 'device');
  return gpu;
}

/** The part of it that others may see. */
export function reportOf({ ok, message, reason }: GpuReport): GpuReport {
  return { ok, message, ...(reason && { reason }) };
}

/** Opens the GPU only to see whether there is one. */
export async function probe(): Promise<GpuReport> {
  const gpu = await openDevice('auto');
  gpu.device?.destroy();
  return reportOf(gpu);
}
