// Runs every code block of the README: the blocks of a section one after the other, as one program,
// and the shell commands, in a folder where the built package is installed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { transform } from 'esbuild';
import { package_folder } from './package.mjs';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

// [{ title, blocks: [{ language, code }] }]
const sections = readme.split(/^## /m).map((part) => {
  const blocks = [...part.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)];
  return {
    title: part.split('\n')[0],
    blocks: blocks.map(([, language, code]) => ({ language, code })),
  };
});

// Blocks that go on where another section ended.
const follows = {
  'Learning rates': 'Classes, and layers',
  'Small steps on a GPU': 'Learning rates',
  'Save and continue': 'Small steps on a GPU',
};

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'tensorgrad-readme-'));
  writeFileSync(join(folder, 'package.json'), '{"type": "module", "private": true}');
});
after(() => rmSync(folder, { recursive: true }));

function run(file) {
  const args = ['--unhandled-rejections=strict', file];
  return execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8', timeout: 240_000 });
}

test('the install command', () => {
  const commands = sections.flatMap(({ blocks }) =>
    blocks.filter(({ language }) => language === 'sh'),
  );
  assert.deepEqual(
    commands.map(({ code }) => code.trim()),
    ['npm install tensorgrad'],
  );
  execFileSync(
    'npm',
    ['install', '--offline', '--no-audit', '--no-fund', '--install-links', package_folder],
    {
      cwd: folder,
      stdio: 'pipe',
    },
  );
  assert.ok(existsSync(join(folder, 'node_modules/tensorgrad/dist/index.js')));
});

// Programs of the README as TypeScript. A section that goes on contains what came before.
function programs() {
  const found = new Map();
  for (const { title, blocks } of sections) {
    const code = blocks.filter(({ language }) => language === 'ts').map((block) => block.code);
    if (code.length === 0) continue;
    const earlier = follows[title] ? found.get(follows[title]) : '';
    found.set(title, earlier + code.join('\n'));
  }
  const last = new Set(Object.values(follows));
  return [...found].filter(([title]) => !last.has(title));
}

for (const [title, code] of programs())
  test(`the program of "${title}"`, async () => {
    const name = title.replace(/\W+/g, '_');
    const { code: script } = await transform(code, { loader: 'ts', format: 'esm' });
    writeFileSync(join(folder, `${name}.mjs`), script);
    const output = run(`${name}.mjs`);
    if (title === '# tensorgrad' || title === 'A first model') {
      const losses = [...output.matchAll(/^\d+ ([\d.]+)$/gm)].map(([, loss]) => Number(loss));
      assert.ok(losses.at(-1) < 0.02, output);
    }
    if (title === 'Save and continue') {
      const [, loss] = /loss ([\d.e-]+)/.exec(output);
      assert.ok(Number(loss) < 0.5, output);
    }
    if (title === 'Train on text') assert.match(output, /brown|fox|jumps|lazy/);
    if (title === 'Classes, and layers' || title === 'Save and continue')
      assert.match(output, /matmul: inner sizes differ/);
  });

test('the programs are right for tsc --strict', () => {
  const files = programs().map(([title, code]) => {
    const file = join(folder, `${title.replace(/\W+/g, '_')}.ts`);
    writeFileSync(file, code);
    return file;
  });
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const options = [
    '--strict',
    '--noEmit',
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--noUncheckedIndexedAccess',
  ];
  try {
    execFileSync(process.execPath, [tsc, ...options, ...files], { cwd: folder, encoding: 'utf8' });
  } catch (error) {
    assert.fail(error.stdout);
  }
});

test('the script of the page', () => {
  const pages = sections.flatMap(({ blocks }) =>
    blocks.filter(({ language }) => language === 'html'),
  );
  assert.equal(pages.length, 1);
  const [, script] = /<script type="module">([\s\S]*)<\/script>/.exec(pages[0].code);
  const document = 'const log = {}; globalThis.document = { querySelector: () => log };\n';
  writeFileSync(join(folder, 'page.mjs'), `${document}${script}\nconsole.log(log.textContent);\n`);
  assert.match(run('page.mjs'), /^y = 3\.0 x \+ 1\.0/m);
});

test('there are no blocks of another kind', () => {
  const kinds = new Set(sections.flatMap(({ blocks }) => blocks.map(({ language }) => language)));
  assert.deepEqual([...kinds].sort(), ['html', 'sh', 'ts']);
});
