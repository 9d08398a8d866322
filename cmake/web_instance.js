// How an instance is made: from the compiled `wasmModule` of create(), or else from the .wasm file
// beside this module, or where create()'s locateFile(name) says.
Module['instantiateWasm'] = (imports, done) => {
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
