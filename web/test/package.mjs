// The built package, and files of the repository. TENSORGRAD_PACKAGE names another package.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const repository = fileURLToPath(new URL('../../', import.meta.url));
export const package_folder = resolve(
  process.env.TENSORGRAD_PACKAGE ?? `${repository}build/web/package`,
);
export const tg = await import(pathToFileURL(`${package_folder}/dist/index.js`));

export async function fixture(name) {
  const folder = `${repository}tests/fixtures`;
  const json = JSON.parse(await readFile(`${folder}/${name}.json`, 'utf8'));
  return { json, bytes: await readFile(`${folder}/${name}.safetensors`) };
}

// Numbers from 0 to 1 that do not change from run to run.
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

// The sine that examples fit: 256 points.
export function sine_batch(next, size = 256) {
  const x = Float32Array.from({ length: size }, () => 6 * next() - 3);
  return { x, y: x.map(Math.sin) };
}
