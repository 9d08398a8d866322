// A small server for pages that use the package: ./tg web and the tests in a browser. It serves
// folders as they are, to this machine alone, and isolates the pages (COOP, COEP), which threads need.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename, extname, join, resolve, sep } from 'node:path';

const types = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.safetensors': 'application/octet-stream',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

// The file that a URL path stands for: the longest prefix in `folders` decides. Null if there is
// none, or if the path leaves its folder.
function file_of(path, folders) {
  const prefixes = Object.keys(folders).filter((prefix) => path.startsWith(prefix));
  if (prefixes.length === 0) return null;
  const prefix = prefixes.reduce((a, b) => (b.length > a.length ? b : a));
  const folder = resolve(folders[prefix]);
  const file = join(folder, path.slice(prefix.length));
  return file.startsWith(folder + sep) ? file : null;
}

async function answer(request, response, { folders, isolated, index }) {
  const refuse = (status, headers = {}) => {
    response.writeHead(status, { 'Content-Type': 'text/plain', ...headers });
    response.end(`${status}\n`);
  };
  if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(405, { Allow: 'GET, HEAD' });
  let path;
  try {
    path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
  } catch {
    return refuse(400);
  }
  if (path.includes('\0')) return refuse(400);
  const file = file_of(path.endsWith('/') ? path + index : path, folders);
  const found = file && (await stat(file).catch(() => null));
  if (found?.isDirectory()) return refuse(301, { Location: `./${encodeURIComponent(basename(path))}/` });
  if (!found?.isFile()) return refuse(404);
  response.writeHead(200, {
    'Content-Type': types[extname(file)] ?? 'application/octet-stream',
    'Content-Length': found.size,
    'Cache-Control': 'no-cache',
    ...(isolated ? isolation : {}),
  });
  if (request.method === 'HEAD') return response.end();
  createReadStream(file).on('error', () => response.destroy()).pipe(response);
}

// Serves `folders` ({ '/prefix/': folder }) on 127.0.0.1 and resolves to { origin, close }. Port 0
// is any free port. `index` is the page of a folder. Not isolated: without the headers that threads
// need.
export async function serve({ folders, port = 0, isolated = true, index = 'index.html' }) {
  const server = createServer((request, response) => {
    answer(request, response, { folders, isolated, index }).catch(() => response.destroy());
  });
  await new Promise((listening, failed) => {
    server.once('error', failed);
    server.listen(port, '127.0.0.1', listening);
  });
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((closed) => server.close(closed));
    },
  };
}
