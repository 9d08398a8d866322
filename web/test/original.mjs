// Runs the tests and samples of the original TypeScript library against this package, with only
// their imports redirected:
//
//   node web/test/original.mjs FOLDER [NAME...]
//
// FOLDER is a checkout of the original. Nothing of it is in this repository. Prints what runs and
// what does not; docs/notes/web_original.md explains it.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { package_folder } from './package.mjs';

const web = fileURLToPath(new URL('..', import.meta.url));
const [folder, ...names] = process.argv.slice(2);
if (!folder) {
  console.error('original: which folder?\n  hint: node web/test/original.mjs FOLDER');
  process.exit(2);
}
const original = resolve(folder);
const dist = join(package_folder, 'dist');
const out = mkdtempSync(join(dirname(package_folder), 'original-'));

// `tensorgrad` and the original's index are the package. What its tests take from other files of
// the original is in original/internals.ts, as far as there is such a thing here.
const redirect = (index) => ({
  name: 'redirect',
  setup({ onResolve }) {
    const internals = join(web, 'test/original/internals.ts');
    onResolve({ filter: /^tensorgrad$|^\.\.\/src\/index\.js$/ }, () => index);
    onResolve({ filter: /^(\.\.\/src\/(trace|grad)|\.\/_eval)\.js$/ }, () => ({ path: internals }));
    onResolve({ filter: /^\.\.\/src\// }, ({ path }) => ({
      errors: [{ text: `${path} is a part of the original's compiler` }],
    }));
  },
});

async function bundle(name, entry, index) {
  const file = join(out, `${name.replace(/\W/g, '_')}.mjs`);
  await build({
    stdin: { contents: entry, resolveDir: original, loader: 'ts' },
    outfile: file,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'node',
    logLevel: 'silent',
    plugins: [redirect(index)],
  });
  return file;
}

// The library's sources in one file with the test, because it looks inside.
const source = { path: join(web, 'src/index.ts') };
const built = { path: join(dist, 'index.js'), external: true };

const test = (name) =>
  `import { ready } from ${JSON.stringify(source.path)};\n` +
  `await ready();\nawait import('./test/${name}.ts');\n`;

const sample = (name) => `
import * as spec from './samples/${name}/spec.ts';
import { compileForward, trace, traceForward } from 'tensorgrad';
const { irSpec } = spec;
const values = (decls, seed) => Object.fromEntries(Object.entries(decls).map(([key, decl]) => {
  const { shape, dtype } = Array.isArray(decl) ? { shape: decl, dtype: 'f32' } : decl;
  const size = shape.reduce((a, b) => a * b, 1);
  const next = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const length = { length: size };
  const ints = () => Int32Array.from(length, () => 2 * next());
  return [key, dtype === 'i32' ? ints() : Float32Array.from(length, next)];
}));
const train = await spec.compileTraining();
const feed = values(irSpec.inputs, 1);
const losses = [];
for (let i = 0; i < 3; ++i) {
  const step = await train.step(feed);
  if (step.kind !== 'completed') throw step.error;
  if (!Number.isFinite(step.loss)) throw new Error('the loss is ' + step.loss);
  losses.push(step.loss.toFixed(4));
}
const output = irSpec.predictOutput ? { output: irSpec.predictOutput } : {};
const predict = { forward: irSpec.predict, inputs: irSpec.predictInputs };
const infer = await train.attach({ ...predict, ...output });
const run = await infer.run(values(irSpec.predictInputs, 2));
if (run.kind !== 'completed') throw run.error;
const ir = await trace(irSpec);
const forward = await traceForward({ model: irSpec.model, ...predict });
const ops = [ir, forward].map(({ graph }) => graph.ops.length).join(' and ');
console.log('losses ' + losses.join(' ') + ', output ' + run.output.length + ', ops ' + ops);
train.destroy();
`;

const tests = readdirSync(join(original, 'test')).filter((file) => /^[a-z].*\.ts$/.test(file));
const samples = readdirSync(join(original, 'samples')).filter((name) =>
  existsSync(join(original, 'samples', name, 'spec.ts')),
);
const jobs = [
  ...tests.map((file) => ({ name: `test/${file}`, entry: test(file.slice(0, -3)), index: source })),
  ...samples.map((name) => ({ name: `samples/${name}`, entry: sample(name), index: built })),
].filter(({ name }) => names.length === 0 || names.some((word) => name.includes(word)));

for (const file of readdirSync(dist).filter((name) => /^tensorgrad.*\.(wasm|mjs|js)$/.test(name)))
  symlinkSync(join(dist, file), join(out, file));
writeFileSync(join(out, 'worker.js'), `import ${JSON.stringify(join(dist, 'worker.js'))};\n`);

let failed = 0;
try {
  for (const { name, entry, index } of jobs) {
    let text;
    try {
      const file = await bundle(name, entry, index);
      const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
        encoding: 'utf8',
        timeout: 600_000,
      });
      if (status === 0) text = `runs   ${stdout.trim().split('\n').at(-1)}`;
      else text = `FAILS  ${(stderr || stdout).trim().split('\n').slice(0, 4).join('\n       ')}`;
      if (status !== 0) console.error(`${stdout}\n${stderr}`);
    } catch (error) {
      const reasons = error.errors?.map((each) => each.text) ?? [error.message];
      text = `does not: ${[...new Set(reasons)].join('; ')}`;
    }
    if (!text.startsWith('runs')) ++failed;
    console.log(`${name.padEnd(28)} ${text}`);
  }
} finally {
  rmSync(out, { recursive: true });
}
process.exitCode = failed > 0 ? 1 : 0;
