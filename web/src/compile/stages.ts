// The stages of the compiler, as the library lists them.
import { localLibrary } from '../wasm/library.js';

/** A stage of the compiler: `show(name)` returns what it made. */
export interface StageInfo {
  readonly name: string;
  /** What is true after it. */
  readonly what: string;
  readonly from: string;
  readonly to: string;
}

/** The stages of the compiler in order. */
export async function compilerStages(): Promise<readonly StageInfo[]> {
  const lib = await localLibrary();
  return lib.json<{ stages: StageInfo[] }>('registry').stages;
}
