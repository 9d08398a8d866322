// What the package exports, but for text models.
import { compileFunction, traceFunction } from './legacy/declared.js';
import {
  compileForwardModule,
  type CompiledForwardModule,
  type CompiledRuntime,
  type CompileForwardOptions,
} from './legacy/runtime.js';
import { compileForwardSpec, type ForwardModel } from './compile/forward.js';
import type { CompiledIR, Graph } from './compile/ir.js';
import { inspect } from './compile/ir.js';
import { declared, fixed } from './compile/inputs.js';
import { compileSpec, traceSpec, type CompiledTraining } from './compile/training.js';
import { traceProgram } from './compile/tracing.js';
import type {
  ForwardExecutorSpec,
  ForwardFn,
  InputDecls,
  Outputs,
  RunOptions,
  TrainingSpec,
} from './compile/specs.js';
import { TracedModel } from './nn/model.js';
import type { Module } from './nn/module.js';
import { siteOf, type Site } from './trace/site.js';
import type { Tensor } from './trace/tensor.js';
import { localLibrary } from './wasm/library.js';

export * from './generated/ops.js';
export * from './generated/layers.js';
export * from './ops/ops.js';
export type { SumOptions as ReduceOptions } from './generated/ops.js';
export type { LayerOptions } from './nn/layer.js';
export { Layer } from './nn/layer.js';
export { Module, type ParamOptions } from './nn/module.js';
export { init, type InitSpec } from './nn/init.js';
export { lr, type LR, type Schedule } from './compile/rates.js';
export { Captures } from './compile/captures.js';
export type * from './compile/specs.js';
export type { CompiledForward, ForwardModel } from './compile/forward.js';
export type { CompiledTraining } from './compile/training.js';
export {
  DeviceLostEvent,
  RecoveredEvent,
  type CheckpointInfo,
  type HandleEvents,
  type SaveOptions,
} from './compile/handle.js';
export {
  getOpInputs,
  type CompiledIR,
  type Graph,
  type GraphTensor,
  type OpNode,
} from './compile/ir.js';
export { compilerStages, type StageInfo } from './compile/stages.js';
export type {
  Counts,
  GpuReport,
  KernelInfo,
  KernelTime,
  PlannedKernel,
  PlannedTensor,
} from './engine/protocol.js';
export { loadSafetensors, saveSafetensors, type SafetensorsData } from './files/safetensors.js';
export { readCheckpoint, type CheckpointContents } from './files/checkpoint.js';
export { singleFlight, type SingleFlightResult } from './single_flight.js';
export { checkWebGPU, type WebGPUFailureReason, type WebGPUSupport } from './webgpu.js';
export { ShapeError, TensorgradError, type ErrorKind } from './wasm/errors.js';
export { ready } from './wasm/library.js';
export type { Dtype, Shape } from './wasm/arrays.js';
export type { Operand, Tensor } from './trace/tensor.js';
export type { Site as CallSite } from './trace/site.js';

// Version 0.0.12.
export * from './legacy/ops.js';
export { compileToIR, paramInput, stateInput, tensorInput } from './legacy/declared.js';
export {
  compileModule,
  type CompiledForwardModule,
  type CompiledModule,
  type CompiledRuntime,
  type CompileForwardOptions,
  type CompileModuleOptions,
} from './legacy/runtime.js';
export * as nn from './legacy/nn.js';

/**
 * Compiles a training step: forward, backward and update.
 * ```ts
 * const train = await compile({
 *   model: new Net(),
 *   loss: (m, { x, y }) => mean(square(sub(m.l1.fwd(x), y))),
 *   inputs: { x: [256, 1], y: [256, 1] },
 *   optimizer: { kind: 'adam', lr: 0.005 },
 * });
 * ```
 */
export function compile<M extends Module, const I extends InputDecls>(
  spec: TrainingSpec<M, I>,
): Promise<CompiledTraining<M, I>>;
/** As in version 0.0.12: a function that declares its inputs, with its gradients. */
export function compile(
  fn: () => Tensor,
  options?: RunOptions,
): Promise<CompiledRuntime & { ir: CompiledIR }>;
export function compile(
  spec: TrainingSpec<Module> | (() => Tensor),
  options: RunOptions = {},
): Promise<unknown> {
  const site = siteOf(compile);
  return typeof spec === 'function'
    ? compileFunction(spec, options, site)
    : compileSpec(spec, site);
}

/** Compiles a forward program with parameters of its own. */
export function compileForward<
  M extends Module,
  const I extends InputDecls,
  O extends 'f32' | 'i32' = 'f32',
>(spec: ForwardExecutorSpec<M, I, O>): Promise<ForwardModel<M, I, O>>;
/** As in version 0.0.12. */
export function compileForward<M extends Module, const I extends InputDecls>(
  factory: () => M,
  forward: ForwardFn<M, I>,
  options?: CompileForwardOptions<I>,
): Promise<CompiledForwardModule>;
export function compileForward(
  spec: ForwardExecutorSpec<Module> | (() => Module),
  forward?: ForwardFn<Module>,
  options: CompileForwardOptions = {},
): Promise<unknown> {
  const site = siteOf(compileForward);
  return typeof spec === 'function'
    ? compileForwardModule(spec, forward!, options, site)
    : compileForwardSpec(spec, site);
}

/** What the compiler makes of a training step, without a device. */
export function trace<M extends Module, const I extends InputDecls>(
  spec: TrainingSpec<M, I>,
): Promise<CompiledIR>;
/** As in version 0.0.12: the graph of a function. Needs `await ready()` once before. */
export function trace(fn: () => Tensor | Tensor[]): Graph;
export function trace(
  spec: TrainingSpec<Module> | (() => Tensor | Tensor[]),
): Promise<CompiledIR> | Graph {
  const site = siteOf(trace);
  return typeof spec === 'function' ? traceFunction(spec, site) : traceSpec(spec, site);
}

/** What the compiler makes of a forward function, without a device. All sizes must be known. */
export function traceForward<M extends Module, const I extends InputDecls>(spec: {
  model: M;
  forward: ForwardFn<M, I>;
  inputs: I;
}): Promise<CompiledIR> {
  const site = siteOf(traceForward);
  return traceForwardAt(spec as never, site);
}

async function traceForwardAt(
  spec: { model: Module; forward: ForwardFn<Module>; inputs: InputDecls },
  site: Site,
): Promise<CompiledIR> {
  const lib = await localLibrary();
  const model = TracedModel.of(lib, spec.model);
  try {
    const { recording } = traceProgram(lib, model, {
      what: 'traceForward',
      kind: 'forward',
      options: {},
      inputs: fixed(declared(spec.inputs), 'traceForward'),
      site,
      body: (tensors): Outputs => spec.forward(spec.model, tensors),
    });
    return inspect(lib, model.entries, recording);
  } finally {
    model.free();
  }
}
