// What ./tg web does with the package that was built: serve the site that site.mjs assembles, write
// it to a folder for a web server, pack the package for npm, or tell its size. What was made goes to
// stdout, the rest to stderr.
//
//   node web/publish.mjs serve|pack|out|sizes PACKAGE ARGUMENT [--json]
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';

import { serve } from './serve.mjs';
import { make_site } from './site.mjs';

const [action, folder, argument, ...options] = process.argv.slice(2);

const say = (text) => process.stderr.write(`tg: ${text}\n`);
// One line on stdout: JSON for programs, `text` for people and scripts.
const answer = (text, fields) =>
  process.stdout.write(options.includes('--json') ? `${JSON.stringify(fields)}\n` : `${text}\n`);

// Bytes that a page downloads, compressed.
async function download(entry, binary) {
  const gzipped = async (name) =>
    gzipSync(await readFile(join(folder, 'dist', name)), { level: 9 }).length;
  const scripts = new Set([entry, 'worker.js']);
  for (const name of scripts) {
    const text = await readFile(join(folder, 'dist', name), 'utf8');
    for (const [, imported] of text.matchAll(/(?:from|import)\s*\(?\s*["']\.\/([^"']+)["']/g))
      scripts.add(imported);
  }
  scripts.add(`${binary}.mjs`);
  let js = 0;
  for (const name of scripts) js += await gzipped(name);
  return { js, wasm: await gzipped(`${binary}.wasm`) };
}

const actions = {
  async serve() {
    const site = join(dirname(resolve(folder)), 'site');
    await rm(site, { recursive: true, force: true });
    await make_site(resolve(folder), site);
    const folders = { '/': site };
    const wanted = argument === '' ? 8080 : Number(argument);
    const server = await serve({ folders, port: wanted }).catch((error) => {
      if (error.code !== 'EADDRINUSE' || argument !== '') throw error;
      return serve({ folders });
    });
    const address = `${server.origin}/`;
    answer(address, { event: 'serving', address });
    say('press ctrl-C to stop');
  },

  async pack() {
    const place = dirname(resolve(folder));
    const { stdout } = await promisify(execFile)(
      'npm',
      ['pack', '--json', '--ignore-scripts', '--pack-destination', place],
      { cwd: folder },
    );
    // Older versions of npm name the file of @scope/package wrongly; ours has no scope.
    const file = join(place, JSON.parse(stdout)[0].filename);
    answer(file, { event: 'done', file });
  },

  async out() {
    const place = resolve(argument);
    await make_site(resolve(folder), place);
    answer(place, { event: 'done', folder: place });
    say('copy the folder to a web server; threads need the headers that docs/browser.md names');
  },

  // What a page downloads on one thread: a script with what it imports, the script of the workers with
  // what that imports, and the binary for its GPU or the one for its CPU. The first numbers of --json are
  // those of the larger one.
  async sizes() {
    const fields = { event: 'done', wasm_gz: 0, js_gz: 0, core_gz: 0 };
    const lines = [];
    const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`.padStart(8);
    for (const [name, entry, prefix] of [
      ['everything', 'index.js', 'tensorgrad'],
      ['core', 'core.js', 'tensorgrad-core'],
    ])
      for (const [backend, label] of [['webgpu', 'GPU'], ['cpu', 'CPU']]) {
        const { wasm, js } = await download(entry, `${prefix}-${backend}`);
        const whole = wasm + js;
        fields[`${name}_${backend}_gz`] = whole;
        if (name === 'core') fields.core_gz = Math.max(fields.core_gz, whole);
        else if (whole > fields.wasm_gz + fields.js_gz) Object.assign(fields, { wasm_gz: wasm, js_gz: js });
        lines.push(
          `${name.padEnd(10)}  ${label}  ${kilobytes(whole)}: WebAssembly ${kilobytes(wasm)}, ` +
            `JavaScript ${kilobytes(js)}`,
        );
      }
    answer([...lines, 'core is without text models and tokenizers'].join('\n'), fields);
  },
};

actions[action]().catch((error) => {
  say(`web: ${error.stderr || error.message}`);
  process.exitCode = 1;
});
