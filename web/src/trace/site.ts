// The caller's line: the first stack frame outside the package. Errors of the library name it.

export interface Site {
  readonly file: string;
  readonly line: number;
}

const unknown: Site = { file: '', line: 0 };

interface Frame {
  getFileName(): string | null | undefined;
  getScriptNameOrSourceURL?(): string | null | undefined;
  getLineNumber(): number | null;
}
interface V8Error {
  captureStackTrace?(target: object, above: Function): void;
  prepareStackTrace?: ((error: Error, frames: Frame[]) => unknown) | undefined;
  stackTraceLimit?: number;
}
const engine = Error as unknown as V8Error;

// A layer's call is the site of all ops in it.
let outer: Site | undefined;

/** The line that called `entry`, a function of this package. */
export function siteOf(entry: Function): Site {
  if (outer) return outer;
  return engine.captureStackTrace ? frameAbove(entry) : frameOutside();
}

/** Runs `body` as part of a call that the user made at `site`. */
export function within<T>(site: Site, body: () => T): T {
  const before = outer;
  outer = outer ?? site;
  try {
    return body();
  } finally {
    outer = before;
  }
}

// V8 and newer browsers: the frames above a function are known, also in a bundle of everything.
// Where Node maps lines to the sources of TypeScript, it does so in the text of the stack.
function frameAbove(entry: Function): Site {
  const { prepareStackTrace, stackTraceLimit } = engine;
  const { process } = globalThis as { process?: { sourceMapsEnabled?: boolean } };
  const holder: { stack?: unknown } = {};
  try {
    engine.stackTraceLimit = 1;
    if (!process?.sourceMapsEnabled) engine.prepareStackTrace = (_error, frames) => frames;
    engine.captureStackTrace!(holder, entry);
    const frames = holder.stack;
    if (typeof frames === 'string') return sitesIn(frames)[0] ?? unknown;
    const frame = (frames as Frame[])[0];
    if (!frame) return unknown;
    const file = frame.getFileName() ?? frame.getScriptNameOrSourceURL?.() ?? '';
    return { file: shown(file), line: frame.getLineNumber() ?? 0 };
  } finally {
    engine.prepareStackTrace = prepareStackTrace;
    if (stackTraceLimit !== undefined) engine.stackTraceLimit = stackTraceLimit;
  }
}

// Engines without it: the first frame of a file that is not in the package's folder.
function frameOutside(): Site {
  const sites = sitesIn(new Error().stack ?? '');
  return sites.find((site) => folderOf(site.file) !== own) ?? unknown;
}

const own = folderOf(sitesIn(new Error().stack ?? '')[0]?.file ?? '');

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/') + 1);
}

function sitesIn(stack: string): Site[] {
  return stack.split('\n').flatMap((text) => {
    const found = /([^\s(@]+):(\d+):\d+\)?$/.exec(text);
    return found ? [{ file: shown(found[1]!), line: Number(found[2]) }] : [];
  });
}

// "http://localhost:4000/src/main.ts?t=1" -> "src/main.ts"; files below the working directory
// without it.
function shown(file: string): string {
  const path = file.replace(/^[a-z-]+:\/\/[^/]*\//, '/').replace(/[?#].*$/, '');
  const { process } = globalThis as { process?: { cwd?: () => string } };
  const folder = process?.cwd ? `${process.cwd()}/` : '/';
  return path.startsWith(folder) ? path.slice(folder.length) : path;
}

/** ", at main.ts:41": for messages that are made in JavaScript. */
export function atSite(site: Site): string {
  return site.file ? `, at ${site.file}:${site.line}` : '';
}
