// Runs a test program of this folder: node run.mjs PROGRAM ARGUMENTS...
//
// The tests wait for the GPU in the middle of C++ functions. For that, this file runs the callbacks
// of npm's `webgpu`, which come by setImmediate, and the jobs of promises, inside runEventLoop().
// Node does that only outside of promise jobs, hence the setTimeout at the end.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [program, ...args] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const waiting = [];
const afterwards = globalThis.setImmediate;
globalThis.setImmediate = (callback, ...rest) => {
  waiting.push(() => callback(...rest));
  afterwards(runEventLoop);
};

function runEventLoop() {
  for (const callback of waiting.splice(0)) callback();
  process._tickCallback();
}

let instance; // its objects do not keep it

// The record that openGpu() of the package would make. A software adapter will do.
async function open_gpu() {
  const wanted = process.env.TENSORGRAD_NPM_WEBGPU;
  if (!wanted) return { ok: false, message: 'TENSORGRAD_NPM_WEBGPU is not set' };
  try {
    const { create, globals } = await import(pathToFileURL(resolve(wanted, 'index.js')));
    Object.assign(globalThis, globals);
    instance = create(['disable-dawn-features=timestamp_quantization']);
    const adapter = await instance.requestAdapter({ powerPreference: 'high-performance' });
    if (!adapter) return { ok: false, message: "npm's webgpu found no adapter" };
    const requiredLimits = {};
    for (const name in adapter.limits) requiredLimits[name] = adapter.limits[name];
    const features = ['timestamp-query', 'subgroups', 'shader-f16'];
    const requiredFeatures = features.filter((name) => adapter.features.has(name));
    const device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
    return { ok: true, adapter, device };
  } catch (error) {
    return { ok: false, message: error.message };
  }
}

const module = await require(resolve(program))({
  gpu: await open_gpu(),
  wasmBinary: readFileSync(program.replace(/js$/, 'wasm')),
  runEventLoop,
  noInitialRun: true,
  preRun: [(self) => Object.assign(self.ENV, process.env)],
  quit: (status, error) => {
    if (error?.name !== 'ExitStatus') console.error(error);
    process.exit(status);
  },
});
setTimeout(() => module.callMain(args));
