// Whether there is a GPU, before a model is compiled.
import { probeInWorker } from './engine/channel.js';
import { probe } from './engine/device.js';
import type { GpuReport } from './engine/protocol.js';

export type WebGPUFailureReason = NonNullable<GpuReport['reason']>;
/** Whether the GPU can be used. Otherwise `message` is a text for the user of the page. */
export type WebGPUSupport = GpuReport;

let found: Promise<WebGPUSupport> | undefined;

/**
 * Asks for a GPU, in a worker, because the first question may take long. Without one, models train
 * on the CPU. After a failure, the next call asks again: it may be temporary.
 */
export function checkWebGPU(): Promise<WebGPUSupport> {
  found ??= probeInWorker()
    .catch(() => probe())
    .then((support) => {
      if (!support.ok) found = undefined;
      return support;
    });
  return found;
}
