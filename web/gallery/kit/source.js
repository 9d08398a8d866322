// The source of a page beside it, one pane for each file. markLine() shows a line.

const words =
  'async await break case class const continue default else export extends for from function if ' +
  'import in let new of return static super switch this throw try catch typeof while yield';
const keyword = new Set(words.split(' '));
const parts = /(\/\/.*|\/\*[^]*?\*\/)|('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)|([A-Za-z_$][\w$]*)|[^]/g;

function piece(text, kind) {
  if (!kind) return text;
  const span = document.createElement('span');
  span.className = kind;
  span.textContent = text;
  return span;
}

// The source as lines, each with its number.
function lines(text) {
  const all = [];
  let line;
  const begin = () => {
    line = document.createElement('span');
    line.className = 'line';
    all.push(line);
  };
  begin();
  let plain = '';
  const flush = () => {
    line.append(plain);
    plain = '';
  };
  for (const [match, comment, string, word] of text.trimEnd().matchAll(parts)) {
    const kind = comment ? 'comment' : string ? 'string' : keyword.has(word) ? 'keyword' : '';
    match.split('\n').forEach((part, i) => {
      if (i > 0) {
        flush();
        line.append('\n');
        begin();
      }
      if (kind) {
        flush();
        line.append(piece(part, kind));
      } else plain += part;
    });
  }
  flush();
  return all;
}

let panes; // file name -> { details, code }

/** Fills `element` with the files of the page, which are read when the visitor opens them. */
export function sourcePanes(element, files) {
  panes = new Map();
  for (const file of files) {
    const details = document.createElement('details');
    details.innerHTML = '<summary></summary><pre tabindex="0"><code></code></pre>';
    details.querySelector('summary').textContent = file;
    details.querySelector('pre').setAttribute('aria-label', `Source of ${file}`);
    const pane = { details, code: details.querySelector('code'), filled: undefined };
    details.addEventListener('toggle', () => details.open && fill(file, pane));
    panes.set(file, pane);
    element.append(details);
  }
}

function fill(file, pane) {
  pane.filled ??= (async () => {
    const answer = await fetch(file);
    if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
    pane.code.append(...lines(await answer.text()));
  })().catch((error) => {
    pane.filled = undefined;
    pane.code.textContent = error.message;
  });
  return pane.filled;
}

/** Shows a line of a file of the page, and marks it. Returns false if the page has no such file. */
export async function markLine(file, number) {
  const pane = panes?.get(file.split('/').at(-1));
  if (!pane) return false;
  pane.details.open = true;
  await fill(file.split('/').at(-1), pane);
  for (const marked of document.querySelectorAll('.line.marked')) marked.classList.remove('marked');
  const line = pane.code.querySelectorAll('.line')[number - 1];
  line?.classList.add('marked');
  line?.scrollIntoView({ block: 'center' });
  return Boolean(line);
}
