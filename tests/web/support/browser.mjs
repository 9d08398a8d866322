// A headless Chromium for tests, whose WebGPU adapter is SwiftShader: correct on every machine, and
// slow. Every test that opens a page also tests that the page asks only its own server, and that it
// logs no error.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import { serve } from '../../../web/serve.mjs';

const require = createRequire(new URL('../../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');

export const root = fileURLToPath(new URL('../../../', import.meta.url));
// Where ./tg builds.
export const builds = process.env.TENSORGRAD_WEB_BUILDS ?? `${root}build`;
export const package_folder = `${builds}/web/package`;

const host = '127.0.0.1';
// A name that is no localhost: its pages are not secure, and have no WebGPU.
const insecure = 'insecure.test';

const args = [
  '--no-sandbox', // CI runs as root
  `--host-resolver-rules=MAP ${insecure} ${host}`,
];
const swiftshader = [
  '--enable-unsafe-webgpu',
  '--enable-unsafe-swiftshader',
  '--use-webgpu-adapter=swiftshader',
  '--disable-gpu-watchdog', // SwiftShader may take a minute to compile a shader
  // The tests of a lost device lose it more often than Chromium allows a page.
  '--disable-gpu-process-crash-limit',
  '--disable-domain-blocking-for-3d-apis',
];
// What a page finds when it asks for a GPU.
const adapters = {
  software: { flags: swiftshader, host },
  'no-adapter': { flags: ['--disable-gpu'], host },
  'no-webgpu': { flags: ['--disable-gpu'], host: insecure },
};

// Opens the browser and a server of `folders`; call close() at the end. By default the page
// /test.html is empty but for an import map, which finds the package at /tensorgrad/. `gpu` is one of
// the adapters above.
export async function open_browser({
  folders = {},
  isolated = true,
  gpu = 'software',
  package_at = package_folder,
} = {}) {
  const server = await serve({
    isolated,
    folders: {
      '/': `${root}tests/web/pages`,
      '/fixtures/': `${root}tests/fixtures`,
      '/web/': `${root}web`,
      '/tensorgrad/': package_at,
      ...folders,
    },
  });
  const origin = server.origin.replace(host, adapters[gpu].host);
  let browser;
  try {
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      headless: true,
      args: [...args, ...adapters[gpu].flags],
    });
  } catch (error) {
    await server.close();
    throw error;
  }
  const problems = [];
  return {
    origin,
    browser,
    problems,
    // Opens a page, in a context of its own unless one is given. Its errors and its requests elsewhere
    // become problems.
    async open(path = '/test.html', { context, ...options } = {}) {
      const page = await (context?.newPage() ?? browser.newPage(options));
      page.setDefaultTimeout(10 * 60 * 1000); // ctest ends what hangs
      page.on('pageerror', (error) => problems.push(`page error: ${error.stack ?? error}`));
      page.on('console', (message) => {
        if (message.type() === 'error') problems.push(`console: ${message.text()}`);
      });
      page.context().on('request', (request) => {
        const url = request.url();
        if (!url.startsWith(`${origin}/`) && !/^(blob|data):/.test(url))
          problems.push(`the page asked ${url}`);
      });
      const answer = await page.goto(origin + path);
      assert.equal(answer.status(), 200, path);
      return page;
    },
    // Ends the GPU process, as a driver's crash would.
    async crash_gpu() {
      const session = await browser.newBrowserCDPSession();
      await session.send('Browser.crashGpuProcess').catch(() => {}); // it answers with its own end
      await session.detach();
    },
    // Fails if a page did what no page should.
    async close() {
      await browser.close();
      await server.close();
      assert.deepEqual(problems, []);
    },
  };
}

// Calls a function of pages/actions.mjs in the page.
export function act(page, name, options) {
  return page.evaluate(
    async ([name, options]) => (await import('/actions.mjs'))[name](options),
    [name, options],
  );
}
