// Assembles the site: the gallery, the package's files that run, what comes from npm, and the guide
// and the list of ops as pages. All links are relative, so that the site works from any folder.
//
//   node web/site.mjs PACKAGE OUT
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Marked } from 'marked';

import { write_digits } from './digits.mjs';

const web = dirname(fileURLToPath(import.meta.url));
const root = dirname(web);
const require = createRequire(import.meta.url);

/** The names of the files that run, below dist/ of the package. */
export async function runtime_files(folder) {
  const names = await readdir(join(folder, 'dist'));
  return names.filter((name) => /\.(js|mjs|wasm)$/.test(name)).sort();
}

// ---- documents

// What becomes a page of the site, by its path in the repository.
const documents = {
  'web/README.md': { page: 'guide.html', title: 'Guide', levels: [2] },
  'docs/ops.md': { page: 'ops.html', title: 'Ops and layers', levels: [2] },
};

const escaped = (text) =>
  text.replace(/[&<>"]/g, (mark) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[mark]);

// Where a link of a document leads on the site; undefined if that is not part of the site.
function address_on_site(href, path) {
  if (/^([a-z]+:|#)/.test(href)) return href;
  const [file, hash] = posix.join(posix.dirname(path), href).split('#');
  return documents[file] && documents[file].page + (hash ? `#${hash}` : '');
}

/** A page of the site from a document in Markdown. */
export function page_of(markdown, path) {
  const { title, levels } = documents[path];
  const headings = [];
  const used = new Set();
  const id_of = (text) => {
    const id = text.toLowerCase().replace(/[^\w\s-]/g, '').trim().replace(/\s+/g, '-');
    let unique = id;
    for (let i = 1; used.has(unique); ++i) unique = `${id}-${i}`;
    used.add(unique);
    return unique;
  };
  const renderer = {
    heading({ tokens, depth, text }) {
      const inner = this.parser.parseInline(tokens);
      const id = id_of(text);
      if (levels.includes(depth)) headings.push({ id, inner });
      const contents = depth === 1 ? '<!-- contents -->' : '';
      return `<h${depth} id="${id}">${inner}</h${depth}>\n${contents}`;
    },
    code({ text, lang }) {
      const language = lang ? ` data-language="${escaped(lang)}"` : '';
      return `<pre tabindex="0"${language}><code>${escaped(text)}\n</code></pre>\n`;
    },
    table(token) {
      // The renderer of marked, in a box that scrolls on a phone.
      const row = (cells, tag) =>
        `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>\n`;
      const named = token.header.some(({ text }) => text !== '');
      const head = named ? `<thead>${row(token.header, 'th')}</thead>` : '';
      const body = token.rows.map((cells) => row(cells, 'td')).join('');
      return `<div class="wide"><table>${head}<tbody>${body}</tbody></table></div>\n`;
    },
    link({ href, tokens }) {
      const inner = this.parser.parseInline(tokens);
      const address = address_on_site(href, path);
      return address ? `<a href="${escaped(address)}">${inner}</a>` : inner;
    },
  };
  const body = new Marked({ renderer }).parse(markdown.replace(/^<!--.*?-->\s*/s, ''));
  const contents = headings.map(({ id, inner }) => `<li><a href="#${id}">${inner}</a></li>\n`);
  const nav = `<nav aria-label="Contents"><ul class="contents">\n${contents.join('')}</ul></nav>\n`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title} · tensorgrad</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="kit/style.css">
</head>
<body>
<nav class="top" aria-label="Site"><a href="index.html">Gallery</a>
<a href="guide.html">Guide</a> <a href="ops.html">Ops</a></nav>
<main class="document">
${body.replace('<!-- contents -->', nav)}</main>
</body>
</html>
`;
}

// ---- the site

// Files of npm packages, by their place in vendor/.
const vendor = {
  'uPlot.esm.js': 'uplot/dist/uPlot.esm.js',
  'uPlot.min.css': 'uplot/dist/uPlot.min.css',
  'uPlot.LICENSE': 'uplot/LICENSE',
};

/** Writes the site to the folder `out`, whose other files stay. `folder` is the package. */
export async function make_site(folder, out) {
  await cp(join(web, 'gallery'), out, { recursive: true });
  for (const name of await runtime_files(folder))
    await cp(join(folder, 'dist', name), join(out, 'tensorgrad/dist', name));
  const place = join(out, 'vendor');
  for (const [name, file] of Object.entries(vendor))
    await cp(join(dirname(require.resolve('uplot/package.json')), '..', file), join(place, name));
  await write_digits(place);
  for (const [path, { page }] of Object.entries(documents))
    await writeFile(join(out, page), page_of(await readFile(join(root, path), 'utf8'), path));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, out] = process.argv.slice(2);
  await make_site(resolve(folder), resolve(out));
}
