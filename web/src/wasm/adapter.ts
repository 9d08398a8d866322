// The page's GPU adapter, as far as it decides which binary a page needs.
import type { Backend } from './module.js';

export function requestAdapter(gpu: GPU): Promise<GPUAdapter | null> {
  return gpu.requestAdapter({ powerPreference: 'high-performance' });
}

/** A driver that computes on the CPU. */
export function isSoftware(adapter: GPUAdapter): boolean {
  const { info } = adapter;
  const { isFallbackAdapter } = adapter as { isFallbackAdapter?: boolean };
  if (isFallbackAdapter || (info as { isFallbackAdapter?: boolean }).isFallbackAdapter) return true;
  return /swiftshader|llvmpipe|lavapipe|softpipe|software/i.test(
    `${info.vendor} ${info.architecture} ${info.device} ${info.description}`,
  );
}

/**
 * What a device option most likely computes with. An engine, which opens the device, takes another
 * binary if this was wrong. In Node, where nothing is downloaded, `auto` looks for no GPU here.
 */
export async function likelyBackend(device: string): Promise<Backend> {
  if (device !== 'auto') return device === 'cpu' ? 'cpu' : 'webgpu';
  const { gpu } = (globalThis.navigator ?? {}) as { gpu?: GPU };
  const adapter = gpu && (await requestAdapter(gpu).catch(() => null));
  return adapter && !isSoftware(adapter) ? 'webgpu' : 'cpu';
}
