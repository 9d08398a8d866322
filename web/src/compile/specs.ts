// What compile() and its relatives take and return, as types.
import type { Dtype, Shape } from '../wasm/arrays.js';
import type { Module } from '../nn/module.js';
import type { Tensor } from '../trace/tensor.js';
import type { Captures } from './captures.js';
import type { LR } from './rates.js';

/**
 * Sizes of an input. `null`, once per shape: known when the program runs (forward programs only).
 */
export type InputShape = readonly (number | null)[];

export interface InputDeclObject {
  readonly shape: InputShape;
  /** Default: 'f32'. */
  readonly dtype?: Dtype;
}
/** A shape (f32), or a shape and a dtype. */
export type InputDecl = InputShape | InputDeclObject;
export type InputDecls = Record<string, InputDecl>;

export type InputsTensors<I extends InputDecls> = { [K in keyof I]: Tensor };

export type DtypeOf<D extends InputDecl> = D extends InputShape
  ? 'f32'
  : D extends { readonly dtype: infer T extends Dtype }
    ? T
    : 'f32';

/** bool inputs are Int32Arrays of 0 and 1. */
export type TypedArrayFor<D extends Dtype> = D extends 'f32' ? Float32Array : Int32Array;

/** The values of the inputs: a Float32Array for f32, an Int32Array for i32. */
export type TypedInputs<I extends InputDecls> = { [K in keyof I]: TypedArrayFor<DtypeOf<I[K]>> };

/** One tensor, or several with names. */
export type Outputs = Tensor | { readonly [name: string]: Tensor };

export type ForwardFn<M extends Module, I extends InputDecls = InputDecls> = (
  model: M,
  inputs: InputsTensors<I>,
) => Outputs;

interface OptimizerBase {
  lr: LR;
  /** Weight decay, for parameters that decay: by default the matrices of layers. */
  weightDecay?: number;
  /** Which parameters decay, by name. Replaces their own `decay`. */
  decayFilter?: (name: string) => boolean;
  /** Scales all gradients down to this global norm. */
  clipGradNorm?: number;
  /** Scales the gradient of each of these parameters to norm 1, before clipping. */
  normalizeGrads?: boolean | ((name: string) => boolean);
}
export interface AdamConfig extends OptimizerBase {
  /** Default: 0.9. */
  beta1?: number;
  b1?: number;
  /** Default: 0.999. */
  beta2?: number;
  b2?: number;
  /** Default: 1e-8. */
  eps?: number;
}
export interface AdamWConfig extends AdamConfig {
  weightDecay: number;
}
export interface SGDConfig extends OptimizerBase {
  momentum?: number;
  nesterov?: boolean;
}
export type OptimizerConfig =
  | ({ readonly kind: 'adam' } & Readonly<AdamConfig>)
  | ({ readonly kind: 'adamw' } & Readonly<AdamWConfig>)
  | ({ readonly kind: 'sgd' } & Readonly<SGDConfig>)
  /** Updates nothing: for gradients alone. */
  | { readonly kind: 'none' };

/** Where and how a model runs. */
export interface RunOptions {
  /**
   * 'auto' (the default) is the GPU, or the CPU where there is none; `gpu` of the handle says why.
   * 'cpu' and 'webgpu' choose one.
   */
  device?: 'auto' | 'cpu' | 'webgpu' | 'webgpu:0';
  /** Threads on the CPU: only in cross-origin isolated pages and in Node. Default: 1. */
  threads?: number;
  /** False: the model lives in this thread, not in a worker of its own. */
  worker?: boolean;
  /**
   * A snapshot for a lost device is taken every so many steps. Default: 100 on a GPU, none on the
   * CPU, which is not lost. 0: none.
   */
  snapshotEvery?: number;
  /** Called with the progress of compilation, which takes long on software drivers. */
  onProgress?: (progress: Progress) => void;
  /** Passes of the compiler to leave out, by name. */
  without?: readonly string[];
  /** 'full' is all there is: as accurate as f32. */
  precision?: 'full';
}
export interface Progress {
  work: string;
  done: number;
  total: number;
}

export interface TrainingSpec<
  M extends Module,
  I extends InputDecls = InputDecls,
> extends RunOptions {
  model: M;
  /** Returns the loss, a scalar; or the loss and other tensors by name. */
  loss: ForwardFn<M, I>;
  inputs: I;
  optimizer: OptimizerConfig;
  /** For initial weights and random ops. Default: a new one, which the handle has. */
  seed?: number;
  /** Averages the gradients of this many steps, then updates once. */
  accumulate?: number;
  /** Which parameters are not trained, by name. */
  freeze?: (name: string) => boolean;
  /** What a step does that is not finite. Default: it fails, and changes nothing. */
  nonFinite?: 'fail' | 'skip' | 'ignore';
}

export interface ForwardSpec<
  M extends Module,
  I extends InputDecls = InputDecls,
  O extends 'f32' | 'i32' = 'f32',
> {
  forward: ForwardFn<M, I>;
  /** A size may be `null`: a program is compiled for each size that occurs. */
  inputs: I;
  /** The dtype of the output. Default: 'f32'. */
  output?: O;
  /** How many programs for different sizes are kept. Default: 8. */
  maxCachedShapes?: number;
  /** True: dropout is active. */
  training?: boolean;
}

export interface ForwardExecutorSpec<
  M extends Module,
  I extends InputDecls = InputDecls,
  O extends 'f32' | 'i32' = 'f32',
>
  extends ForwardSpec<M, I, O>, RunOptions {
  model: M;
  seed?: number;
}

export type OutputArray = Float32Array | Int32Array;
export type DtypeArray<O extends 'f32' | 'i32'> = O extends 'i32' ? Int32Array : Float32Array;

/** A call that did not end because its program was destroyed or replaced, or that failed. */
export type NotCompleted = { kind: 'aborted' } | { kind: 'failed'; error: Error };

export type StepResult =
  | {
      kind: 'completed';
      loss: number;
      captures: Captures;
      /** The number of the step, counted from 1, and its learning rate. */
      step: number;
      lr: number;
      /** False: the step was skipped (`nonFinite: 'skip'`). */
      finite: boolean;
      /** Of all gradients, before clipping; with `clipGradNorm`. */
      gradNorm?: number;
      /** Tensors that the loss function returned beside the loss. */
      outputs: Record<string, OutputArray>;
      /** The device was lost and replaced since the last result, for this reason. */
      deviceLost?: string;
    }
  | NotCompleted;

export type RunResult<O extends 'f32' | 'i32' = 'f32'> =
  | {
      kind: 'completed';
      /** The output, or the first of several. */
      output: DtypeArray<O>;
      /** Its shape. */
      shape: Shape;
      /** All outputs by name; one without a name is called 'out'. */
      outputs: Record<string, OutputArray>;
      captures: Captures;
      deviceLost?: string;
    }
  | NotCompleted;

/** The step is on its way. A later step that is read reports its failure. */
export type EnqueuedResult = { kind: 'enqueued' } | NotCompleted;

export interface ProfileOptions<I extends InputDecls = InputDecls> {
  /** How often each kernel is measured. Default: 10. */
  steps?: number;
  /** Values of the inputs that setInputs() did not fix. */
  inputs?: Partial<TypedInputs<I>>;
}

export interface CallOptions {
  /** Whether captured tensors are read. Default: true. */
  captures?: boolean;
}
