// The memory as others read it. A thread may have made it larger, so ask for it each time.
Module['bytes'] = () => HEAPU8;
Module['words'] = () => HEAP32;
Module['floats'] = () => HEAPF32;

// Ends the workers of threads.
Module['endThreads'] = () => {
  if (typeof PThread === 'object') PThread.terminateAllThreads();
};

// How an instance is made: from the compiled `wasmModule` of create(), or else from the .wasm file
// beside this module, or where create()'s locateFile(name) says.
// The workers of threads have a way of their own.
if (!Module['ENVIRONMENT_IS_PTHREAD']) Module['instantiateWasm'] = (imports, done) => {
  const load = async () => {
    if (!wasmBinaryFile.startsWith('file:'))
      return WebAssembly.compile(await (await fetch(wasmBinaryFile)).arrayBuffer());
    // Node. Bundlers for pages do not see this import.
    return WebAssembly.compile(process.getBuiltinModule('fs').readFileSync(new URL(wasmBinaryFile)));
  };
  const make = async () => {
    const module = Module['wasmModule'] || (await load());
    done(await WebAssembly.instantiate(module, imports), module);
  };
  make().catch(readyPromiseReject);
  return {};
};
