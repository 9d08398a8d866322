// test/types.ts under tsc --strict, against the declarations of the built package.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { package_folder } from './package.mjs';

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const here = fileURLToPath(new URL('.', import.meta.url));

function check(more) {
  const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-types-'));
  try {
    const config = JSON.parse(readFileSync(join(here, 'tsconfig.json'), 'utf8'));
    const types = join(package_folder, 'dist/types');
    config.compilerOptions.paths = {
      tensorgrad: [join(types, 'index.d.ts')],
      'tensorgrad/core': [join(types, 'core.d.ts')],
    };
    Object.assign(config.compilerOptions, more);
    config.files = [join(here, 'types.ts')];
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    execFileSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
  } catch (error) {
    assert.fail(error.stdout ?? error.message);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('the types allow what they should, and refuse the rest', () => check({}));
test('the same with fewer options', () =>
  check({
    exactOptionalPropertyTypes: false,
    noUncheckedIndexedAccess: false,
    lib: ['ES2023', 'DOM'],
  }));
