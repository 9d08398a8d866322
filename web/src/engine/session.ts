// What an engine runs: something with state on a device, which is changed by commands in order. The
// engine builds it again after the device was lost.
import type { Library } from '../wasm/library.js';
import type { Command, EngineEvent } from './protocol.js';
import type { Pump } from './pump.js';

/** One instance of the library, with its device. */
export interface Place {
  readonly lib: Library;
  readonly pump: Pump;
  /** What the library calls the device. */
  readonly device: string;
  readonly threads: number;
  /** An instance that has the device `wgsl`, which shows shaders and runs nothing. */
  shaderLibrary(): Promise<Library>;
  emit(event: EngineEvent): void;
}

export interface Session {
  /** Makes everything new in an instance: as it was after `create` and all that define() kept. */
  build(place: Place): Promise<unknown>;
  /**
   * Begins a command. Its effects on the state are in the order of the calls. The engine waits for a
   * `slow` command before it issues the next one.
   */
  issue(command: Command): Promise<unknown>;
  /** True if the next command must wait until this one is done. */
  slow(command: Command): boolean;
  /** True if the state is another one afterwards, so that recovery has to repeat the command. */
  changes(command: Command): boolean;
  /** True if nothing that came before the command matters after it. */
  forgets?(command: Command): boolean;
  /** Commands that build() repeats itself. */
  define(command: Command): void;
  /** Asks for the state, without waiting for it. Undefined if there are no snapshots. */
  snapshot(): Promise<unknown> | undefined;
  restore(snapshot: unknown): Promise<void>;
  /** The number of steps that the state has seen. */
  steps(): number;
  /** Ends what takes long, at once: not in the order of commands. */
  stop?(): void;
  /** The instance is given back. */
  free(): void;
}
