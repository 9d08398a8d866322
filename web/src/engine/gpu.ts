// The page's GPU: adapter and device, with what the library can use of them.
import { isSoftware, requestAdapter } from '../wasm/adapter.js';
import type { GpuReport } from './protocol.js';

/** The library uses adapter and device through the JavaScript beside the WebAssembly. */
export interface Gpu extends GpuReport {
  readonly adapter?: unknown;
  readonly device?: {
    readonly lost: Promise<{ readonly message: string; readonly reason?: string }>;
    destroy(): void;
  };
}

const features = ['timestamp-query', 'subgroups', 'shader-f16'] as const;
const limits = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxUniformBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
] as const;

const { process } = globalThis as { process?: { versions?: { node?: string } } };

const messages = {
  'no-webgpu': process?.versions?.node
    ? 'Node has no WebGPU of its own: npm install webgpu.'
    : 'This browser has no WebGPU. Chrome, Edge, Firefox and Safari have it in recent versions, ' +
      'on pages from https and localhost.',
  'no-adapter':
    'WebGPU found no GPU. In Chrome on Linux it needs the flags #enable-unsafe-webgpu and ' +
    '#enable-vulkan at chrome://flags. Elsewhere the GPU may be blocked, or its driver too old.',
  software:
    'WebGPU found a software adapter, which computes on the CPU, slower than our own CPU code.',
} as const;

function without(reason: keyof typeof messages, adapter?: GPUAdapter): Gpu {
  return { ok: false, reason, message: messages[reason], ...(adapter && { adapter }) };
}

/** Opens the GPU. `software`: a software adapter will do. Never throws. */
export async function openGpu({ software = false } = {}): Promise<Gpu> {
  const { gpu } = (globalThis.navigator ?? {}) as { gpu?: GPU };
  if (!gpu) return without('no-webgpu');
  try {
    const adapter = await requestAdapter(gpu);
    if (!adapter) return without('no-adapter');
    if (isSoftware(adapter) && !software) return without('software', adapter);
    const requiredFeatures = features.filter((feature) => adapter.features.has(feature));
    const requiredLimits = Object.fromEntries(limits.map((name) => [name, adapter.limits[name]]));
    const device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
    return { ok: true, message: '', adapter, device };
  } catch (error) {
    return { ...without('no-adapter'), message: `WebGPU failed: ${(error as Error).message}` };
  }
}
