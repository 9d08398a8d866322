// Builds the npm package: node web/build.mjs [TREE]. TREE is the build tree of the preset `web`
// (build/web): its dist-wasm/ has the binaries, and the package goes to TREE/package.
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build, transform } from 'esbuild';
import { layers_module, ops_module } from './generate.mjs';

const web = dirname(fileURLToPath(import.meta.url));
const tree = resolve(process.argv[2] ?? join(web, '../build/web'));
const binaries = join(tree, 'dist-wasm');
const package_folder = join(tree, 'package');
const dist = join(package_folder, 'dist');

// The library, for the registry.
async function open_library() {
  const { default: create } = await import(pathToFileURL(join(binaries, 'tensorgrad-cpu.mjs')));
  const wasm = await readFile(join(binaries, 'tensorgrad-cpu.wasm'));
  return create({ wasmModule: await WebAssembly.compile(wasm) });
}

function with_text(library, text, body) {
  const bytes = new TextEncoder().encode(text);
  const pointer = library._malloc(bytes.length + 1);
  library.bytes().set(bytes, pointer);
  library.bytes()[pointer + bytes.length] = 0;
  try {
    return body(pointer);
  } finally {
    library._free(pointer);
  }
}

// The names of the parameters of a layer.
function probe(library, layer, args) {
  const model = library._tg_model_new();
  try {
    const number = with_text(library, layer, (name) =>
      with_text(library, JSON.stringify(args), (json) =>
        with_text(library, '', (empty) =>
          library._tg_model_layer(model, empty, name, json, empty, 0),
        ),
      ),
    );
    if (number < 0) throw new Error(library.UTF8ToString(library._tg_error()));
    const params = JSON.parse(library.UTF8ToString(library._tg_model_params(model)));
    return params.map(({ name }) => name);
  } finally {
    library._tg_model_free(model);
  }
}

async function generate() {
  const library = await open_library();
  const registry = JSON.parse(library.UTF8ToString(library._tg_registry()));
  const folder = join(web, 'src/generated');
  await mkdir(folder, { recursive: true });
  await write(join(folder, 'ops.ts'), ops_module(registry));
  await write(
    join(folder, 'layers.ts'),
    layers_module(registry, (layer, args) => probe(library, layer, args)),
  );
  return library.UTF8ToString(library._tg_version());
}

// Unchanged files keep their times.
async function write(file, text) {
  if ((await readFile(file, 'utf8').catch(() => '')) !== text) await writeFile(file, text);
}

async function write_types() {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const options = [
    '--noEmit',
    'false',
    '--declaration',
    '--emitDeclarationOnly',
    '--stripInternal',
  ];
  const args = [tsc, '-p', web, ...options, '--outDir', join(dist, 'types')];
  try {
    await promisify(execFile)(process.execPath, args);
  } catch (error) {
    throw new Error(error.stdout || error.message);
  }
}

const output = { target: 'es2022', minify: true };

// Bundlers must leave an import() of an address alone, which they are told by comments that the
// minifier drops.
const for_bundlers = '/* webpackIgnore: true */ /* @vite-ignore */';
async function mark_imports({ outputFiles }) {
  for (const { path, text } of outputFiles) {
    const marked = text.replace(/\bimport\((?=[\w$])/g, `import(${for_bundlers} `);
    await writeFile(path, path.endsWith('.map') ? text : marked);
  }
}

const write_scripts = async () =>
  mark_imports(await build({
    ...output,
    entryPoints: ['index.ts', 'core.ts', 'worker.ts'].map((file) => join(web, 'src', file)),
    outdir: dist,
    bundle: true,
    splitting: true,
    format: 'esm',
    sourcemap: true,
    sourcesContent: true,
    chunkNames: '[name]-[hash]',
    logLevel: 'warning',
    write: false,
  }));

// An older tree may have others.
const names = ['cpu', 'webgpu', 'core-cpu', 'core-webgpu', 'threads'].map((end) => `tensorgrad-${end}`);

async function copy_binaries() {
  const files = await readdir(binaries);
  for (const file of files.filter((each) => names.includes(each.split('.')[0]))) {
    if (file.endsWith('.wasm')) await cp(join(binaries, file), join(dist, file));
    if (!/\.m?js$/.test(file)) continue;
    // No bundler reads these: they are files.
    const options = { ...output, format: 'esm' };
    const { code } = await transform(await readFile(join(binaries, file), 'utf8'), options);
    await writeFile(join(dist, file), code);
  }
}

async function write_manifest(version) {
  const own = JSON.parse(await readFile(join(web, 'package.json'), 'utf8'));
  const { name, description, license, keywords } = own;
  const entry = (file) => ({ types: `./dist/types/${file}.d.ts`, default: `./dist/${file}.js` });
  const manifest = {
    ...{ name, version, description, license, keywords },
    type: 'module',
    main: './dist/index.js',
    types: './dist/types/index.d.ts',
    exports: { '.': entry('index'), './core': entry('core'), './package.json': './package.json' },
    sideEffects: ['./dist/index.js'],
    files: ['dist'],
    engines: { node: '>=20' },
    peerDependencies: { webgpu: '>=0.3' },
    peerDependenciesMeta: { webgpu: { optional: true } },
  };
  await writeFile(join(package_folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  await cp(join(web, 'README.md'), join(package_folder, 'README.md'));
  await cp(join(web, '../LICENSE'), join(package_folder, 'LICENSE'));
}

async function main() {
  const version = await generate();
  await rm(package_folder, { recursive: true, force: true });
  await mkdir(dist, { recursive: true });
  await Promise.all([write_types(), write_scripts(), copy_binaries(), write_manifest(version)]);
}

main().catch((error) => {
  console.error(`build: ${error.message}`);
  process.exitCode = 1;
});
