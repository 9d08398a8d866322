// What compileModule() and compileForward() of version 0.0.12 return: plain values, and errors that
// are thrown.
import { Captures } from '../compile/captures.js';
import type { CompiledForward } from '../compile/forward.js';
import type { CompiledIR } from '../compile/ir.js';
import type {
  ForwardFn,
  InputDecls,
  NotCompleted,
  OptimizerConfig,
  OutputArray,
  RunOptions,
} from '../compile/specs.js';
import { compileForwardSpec } from '../compile/forward.js';
import { compileSpec, type CompiledTraining, type TrainingHandle } from '../compile/training.js';
import type { LR } from '../compile/rates.js';
import { siteOf, within, type Site } from '../trace/site.js';
import type { Module } from '../nn/module.js';

export interface LegacyAdam {
  /** A number, a schedule, or a function of the update, which counts from 1. */
  lr: LR;
  b1?: number;
  b2?: number;
  eps?: number;
  weightDecay?: number;
  decayFilter?: (name: string) => boolean;
  clipGradNorm?: number;
}
export interface CompileModuleOptions<I extends InputDecls = InputDecls> extends RunOptions {
  inputs?: I;
  /** Without it, nothing is updated. */
  adam?: LegacyAdam;
  seed?: number;
}
export interface CompileForwardOptions<I extends InputDecls = InputDecls> extends RunOptions {
  inputs?: I;
  seed?: number;
}

type Values = Record<string, Float32Array | Int32Array>;
interface WithCaptures {
  withCaptures: true;
}
interface MaybeCaptures {
  withCaptures?: boolean;
}

export interface StepFunction {
  (inputs: Values): Promise<number>;
  (inputs: Values, options: WithCaptures): Promise<{ loss: number; captures: Captures }>;
  (inputs: Values, options: MaybeCaptures): Promise<number | { loss: number; captures: Captures }>;
}
export interface RunFunction {
  (inputs: Values): Promise<OutputArray>;
  (inputs: Values, options: WithCaptures): Promise<{ output: OutputArray; captures: Captures }>;
  (
    inputs: Values,
    options: MaybeCaptures,
  ): Promise<OutputArray | { output: OutputArray; captures: Captures }>;
}

interface Base {
  readonly kernelCount: number;
  uploadParams(
    params: Record<string, Float32Array>,
    options?: { partial?: boolean },
  ): Promise<void>;
  downloadParams(): Promise<Record<string, Float32Array>>;
  destroy(): void;
}
export interface CompiledRuntime extends Base {
  readonly outputShape: readonly number[];
  step: StepFunction;
  downloadParamGrads(): Promise<Record<string, Float32Array>>;
  resetOptimizerState(): Promise<void>;
}
export interface CompiledModule<M extends Module> extends CompiledRuntime {
  readonly ir: CompiledIR;
  readonly paramNames: readonly string[];
  reset(): Promise<void>;
  setLR(lr: LR): Promise<void>;
  compileForward<I extends InputDecls>(
    forward: ForwardFn<M, I>,
    options?: { inputs?: I },
  ): Promise<CompiledForwardModule>;
}
export interface CompiledForwardModule extends Base {
  run: RunFunction;
}

function completed<T extends { kind: 'completed' }>(result: T | NotCompleted): T {
  if (result.kind === 'failed') throw result.error;
  if (result.kind === 'aborted') throw new Error('the program was destroyed');
  return result;
}

function stepOf(handle: CompiledTraining<Module, InputDecls>): StepFunction {
  const step = async (inputs: Values, { withCaptures = false }: MaybeCaptures = {}) => {
    const stepped = within(siteOf(step), () => handle.step(inputs as never, { captures: withCaptures }));
    const result = completed(await stepped);
    return withCaptures ? { loss: result.loss, captures: result.captures } : result.loss;
  };
  return step as StepFunction;
}

function runOf(handle: CompiledForward<Module, InputDecls, 'f32' | 'i32'>): RunFunction {
  const run = async (inputs: Values, { withCaptures = false }: MaybeCaptures = {}) => {
    const ran = within(siteOf(run), () => handle.run(inputs as never, { captures: withCaptures }));
    const result = completed(await ran);
    return withCaptures ? { output: result.output, captures: result.captures } : result.output;
  };
  return run as RunFunction;
}

/** A handle with the calls of version 0.0.12. `ir` is made when it is read. */
export function runtimeOf(
  handle: TrainingHandle<Module, InputDecls>,
  ir: () => CompiledIR,
): CompiledRuntime & { ir: CompiledIR } {
  let made: CompiledIR | undefined;
  return {
    get ir() {
      return (made ??= ir());
    },
    get kernelCount() {
      return handle.kernelCount;
    },
    outputShape: [],
    step: stepOf(handle),
    uploadParams: (params, options) => handle.uploadParams(params, options),
    downloadParams: () => handle.downloadParams(),
    downloadParamGrads: () => handle.downloadParamGrads(),
    resetOptimizerState: () => handle.reset({ params: false }),
    destroy: () => handle.destroy(),
  };
}

function forwardOf(
  handle: CompiledForward<Module, InputDecls, 'f32' | 'i32'>,
  kernelCount: () => number,
): CompiledForwardModule {
  return {
    get kernelCount() {
      return kernelCount();
    },
    run: runOf(handle),
    uploadParams: (params, options) => handle.uploadParams(params, options),
    downloadParams: () => handle.downloadParams(),
    destroy: () => handle.destroy(),
  };
}

function optimizerOf(adam: LegacyAdam | undefined): OptimizerConfig {
  if (!adam) return { kind: 'none' };
  const { weightDecay } = adam;
  return weightDecay ? { kind: 'adamw', ...adam, weightDecay } : { kind: 'adam', ...adam };
}

/** compile() of version 0.0.12: a function that makes the model, the loss, and options. */
export async function compileModule<M extends Module, I extends InputDecls = InputDecls>(
  factory: () => M,
  loss: ForwardFn<M, I>,
  options: CompileModuleOptions<I> = {},
): Promise<CompiledModule<M>> {
  const site = siteOf(compileModule);
  const { inputs = {} as I, adam, ...run } = options;
  const spec = { ...run, model: factory(), loss, inputs, optimizer: optimizerOf(adam) };
  const handle = await compileSpec<M, I>(spec, site);
  const loose = handle as unknown as TrainingHandle<Module, InputDecls>;
  const runtime = runtimeOf(loose, () => handle.inspect());
  return Object.defineProperties(
    {
      reset: () => handle.reset(),
      setLR: (lr: LR) => handle.setLR(lr),
      compileForward: async function compileForward<J extends InputDecls>(
        forward: ForwardFn<M, J>,
        { inputs: own = {} as J }: { inputs?: J } = {},
      ): Promise<CompiledForwardModule> {
        const at = siteOf(compileForward);
        const made = await handle.attachAt({ forward, inputs: own } as never, at, true);
        return forwardOf(made as never, () => handle.kernelCount);
      },
      paramNames: handle.paramNames,
    },
    Object.getOwnPropertyDescriptors(runtime),
  ) as CompiledModule<M>;
}

/** compileForward() of version 0.0.12. */
export async function compileForwardModule<M extends Module, I extends InputDecls = InputDecls>(
  factory: () => M,
  forward: ForwardFn<M, I>,
  { inputs = {} as I, ...run }: CompileForwardOptions<I>,
  site: Site,
): Promise<CompiledForwardModule> {
  const spec = { ...run, model: factory(), forward, inputs };
  const handle = await compileForwardSpec<M, I, 'f32'>(spec, site, true);
  return forwardOf(handle as never, () => handle.counts.kernels);
}
