// What a handle asks of the engine behind it, in a worker or in the same thread. Everything here
// can be cloned by postMessage.
import type { HostArrays } from '../wasm/arrays.js';
import type { WireError } from '../wasm/errors.js';
import type { Binaries } from '../wasm/module.js';
import type {
  Json,
  JsonObject,
  ModelEntries,
  ModelParameter,
  ProgramRecording,
} from '../trace/recording.js';

/** Where an engine computes. */
export interface OpenOptions {
  readonly binaries: Binaries;
  /** "auto", "cpu", "webgpu" or "webgpu:N". */
  readonly device: string;
  readonly threads: number;
  /** Steps between snapshots; 0: none; null: the default of the device. */
  readonly snapshotEvery: number | null;
}

/** What was found when the engine opened. */
export interface Opened {
  /** The device in the library's words: "cpu" or "webgpu". */
  readonly device: string;
  readonly gpu: GpuReport;
}

/** Whether the GPU can be used, and why not. */
export interface GpuReport {
  readonly ok: boolean;
  /** Empty when `ok`; otherwise a text for the user of the page. */
  readonly message: string;
  readonly reason?: 'no-webgpu' | 'no-adapter' | 'software' | 'not-asked';
}

/** Which program a command is for: 0 is the one that owns the parameters. */
export type ProgramId = number;

export interface CreateModel {
  readonly kind: 'create';
  readonly model: ModelEntries;
  readonly program: ProgramRecording;
}
export interface CreateTrainer {
  readonly kind: 'createTrainer';
  readonly tokenizer: string;
  readonly text: Uint8Array<ArrayBuffer>;
  readonly options: JsonObject;
}
export interface CreateGenerator {
  readonly kind: 'createGenerator';
  readonly checkpoint: Uint8Array<ArrayBuffer>;
  readonly options: JsonObject;
}
export type Create = CreateModel | CreateTrainer | CreateGenerator;

/** What looks inside a program. A text model in training has program 0. */
export type LookCommand =
  | { readonly kind: 'show'; readonly id: ProgramId; readonly stage: string }
  | { readonly kind: 'plan'; readonly id: ProgramId }
  | { readonly kind: 'shaders'; readonly id: ProgramId }
  | {
      readonly kind: 'profile';
      readonly id: ProgramId;
      readonly steps: number;
      readonly feed: HostArrays;
    };

export type ModelCommand =
  | LookCommand
  | { readonly kind: 'attach'; readonly id: ProgramId; readonly program: ProgramRecording }
  | { readonly kind: 'free'; readonly id: ProgramId }
  | {
      readonly kind: 'run';
      readonly id: ProgramId;
      readonly feed: HostArrays;
      readonly captures: boolean;
      /** False: nobody wants the result. */
      readonly read: boolean;
      /** The learning rate of this step, if the caller computes it. */
      readonly lr?: number;
    }
  | { readonly kind: 'download'; readonly what: 'parameters' | 'gradients' | 'optimizer' }
  | { readonly kind: 'upload'; readonly params: HostArrays; readonly partial: boolean }
  | {
      readonly kind: 'reset';
      readonly params: boolean;
      readonly optimizer: boolean;
      readonly seed?: number;
    }
  | { readonly kind: 'setLr'; readonly lr: Json }
  | { readonly kind: 'save'; readonly info: JsonObject; readonly optimizer: boolean }
  | { readonly kind: 'load'; readonly bytes: Uint8Array<ArrayBuffer>; readonly name: string }
  | { readonly kind: 'position' }
  | { readonly kind: 'setInputs'; readonly id: ProgramId; readonly feed: HostArrays };

export type TextCommand =
  | LookCommand
  | { readonly kind: 'trainStep' }
  | { readonly kind: 'setLr'; readonly lr: Json }
  | { readonly kind: 'validate'; readonly tokens: number }
  | { readonly kind: 'checkpoint' }
  | { readonly kind: 'restoreCheckpoint'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'generate'; readonly prompt: string; readonly options: JsonObject }
  | { readonly kind: 'forget' };

export type Command = Create | ModelCommand | TextCommand;

/** A kernel of a compiled program. */
export interface KernelInfo {
  /** rows, columns, matmul, single or copy */
  kind: string;
  /** forward, backward or update */
  phase: string;
  ops: string[];
  /** The line of the call: "layers.0.mlp, at main.ts:41" */
  where: string;
}
/** A tensor that a kernel of the plan writes. */
export interface PlannedTensor {
  /** "f32[32,784]" */
  type: string;
  /** "arena", "gradients", ... */
  space: string;
  /** Its place in that space, in bytes. */
  offset: number;
  bytes: number;
  /** The last kernel that reads it; the number of kernels if it outlives the run. */
  last_use: number;
  /** It overwrites an operand. */
  in_place: boolean;
}
/** A kernel with its work and its memory. Bytes are counted once, also if they are read twice. */
export interface PlannedKernel extends KernelInfo {
  /** Kernels of one stage do not depend on each other, and may run at the same time. */
  stage: number;
  operations: number;
  bytes_read: number;
  bytes_written: number;
  writes: PlannedTensor[];
}
/** The time of a dispatch, measured alone. */
export interface KernelTime {
  /** Its kernel, in the plan. Some kernels take two dispatches. */
  kernel: number;
  name: string;
  /** The shortest. */
  microseconds: number;
  /** Over all steps. In a page, browsers round times to 100 us: measure many steps. */
  mean_microseconds: number;
}
export interface TensorInfo {
  name: string;
  shape: number[];
  dtype: 'f32' | 'i32' | 'bool';
}
/** The work and the memory of a step. */
export interface Counts {
  kernels: number;
  dispatches: number;
  passes: number;
  submits: number;
  arena_bytes: number;
  param_bytes: number;
  gradient_bytes: number;
  state_bytes: number;
  input_bytes: number;
  operations: number;
  bytes_moved: number;
}
export interface ProgramInfo {
  trains: boolean;
  device: string;
  threads: number;
  parameters: ModelParameter[];
  inputs: TensorInfo[];
  outputs: TensorInfo[];
  captures: TensorInfo[];
  kernels: KernelInfo[];
  counts: Counts;
  compile_ms: number;
}

export interface RunValue {
  readonly outputs: HostArrays;
  readonly captures: HostArrays;
  /** Of a training step. */
  readonly step?: StepReport;
  /** The device was lost since the last result, and this is why. */
  readonly deviceLost?: string;
}
export interface StepReport {
  readonly step: number;
  readonly lr: number;
  readonly finite: boolean;
  readonly grad_norm?: number | null;
}
/** The number of the next step and update, counted from 1. */
export interface Position {
  readonly steps: number;
  readonly updates: number;
}

export type EngineEvent =
  | { readonly type: 'devicelost'; readonly message: string; readonly reason: string }
  | {
      readonly type: 'recovered';
      readonly device: string;
      readonly gpu: GpuReport;
      /** The snapshot that was restored was taken after this step. */
      readonly snapshotStep: number;
      readonly repeatedSteps: number;
    }
  | {
      readonly type: 'progress';
      readonly work: string;
      readonly done: number;
      readonly total: number;
    }
  | {
      readonly type: 'text';
      readonly piece: string;
      /** How much of the text came before it. */
      readonly offset: number;
    };

/** What goes to a worker, and what comes back. */
export type ToWorker =
  | { readonly id: number; readonly open: OpenOptions }
  | { readonly id: number; readonly command: Command }
  | { readonly id: number; readonly lose: true }
  | { readonly id: number; readonly stop: true }
  | { readonly id: number; readonly probe: true };
export type FromWorker =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: WireError }
  | { readonly event: EngineEvent };

/** Thrown to calls that were in flight when their program was destroyed or replaced. */
export class AbortError extends Error {
  override name = 'AbortError';
  constructor() {
    super('the program was destroyed or replaced');
  }
}
