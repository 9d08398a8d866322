// Compiled training steps.
import type { Channel } from '../engine/channel.js';
import type {
  EngineEvent,
  KernelInfo,
  Position,
  ProgramInfo,
  RunValue,
} from '../engine/protocol.js';
import { buffersOf } from '../wasm/arrays.js';
import { TensorgradError } from '../wasm/errors.js';
import { localLibrary, type Library } from '../wasm/library.js';
import type { InputType } from '../trace/recording.js';
import { siteOf, type Site } from '../trace/site.js';
import { TracedModel } from '../nn/model.js';
import type { Module } from '../nn/module.js';
import { Captures } from './captures.js';
import {
  AttachedForward,
  Forwards,
  randomSeed,
  valuesByName,
  type CompiledForward,
} from './forward.js';
import { guarded, ModelHandle, progressOf } from './handle.js';
import { declared, feedOf, fixed } from './inputs.js';
import { inspect, type CompiledIR, type Graph } from './ir.js';
import { openChannel } from './open.js';
import { optimizerJson, trainingJson } from './options.js';
import { rateOf, type LR, type Rate } from './rates.js';
import { traceProgram, type Traced } from './tracing.js';
import type {
  CallOptions,
  ForwardFn,
  ForwardSpec,
  InputDecls,
  OptimizerConfig,
  Outputs,
  StepResult,
  TrainingSpec,
  TypedInputs,
} from './specs.js';

/** A training step that was compiled: forward, backward and update. */
export interface CompiledTraining<
  M extends Module,
  I extends InputDecls = InputDecls,
> extends ModelHandle {
  /** What the step computes: the loss and its gradients. The update is not in it. */
  readonly graph: Graph;
  readonly kernels: readonly KernelInfo[];
  /** The number of kernels. */
  readonly kernelCount: number;
  /** Always []: a loss is a scalar. */
  readonly outputShape: readonly number[];
  /** Gives the same weights again. */
  readonly seed: number;

  /** One step. It never rejects. Steps are made in the order of the calls. */
  step(inputs: TypedInputs<I>, options?: CallOptions): Promise<StepResult>;
  /** Compiles a forward program over the same parameters. */
  attach<I2 extends InputDecls, O2 extends 'f32' | 'i32' = 'f32'>(
    spec: ForwardSpec<M, I2, O2>,
  ): Promise<CompiledForward<M, I2, O2>>;
  /** The gradients of the last step, before clipping. */
  downloadParamGrads(): Promise<Record<string, Float32Array>>;
  /** Initial weights and an empty optimizer state, or one of them. */
  reset(options?: { params?: boolean; optimizer?: boolean; seed?: number }): Promise<void>;
  /** Sets the learning rate. A schedule without `startStep` starts with the next update. */
  setLR(lr: LR): Promise<void>;
  /** Trains another model from now on. The handle and its attached programs stay valid. */
  replaceModel(model: M, options?: { seed?: number; optimizer?: OptimizerConfig }): Promise<void>;
  /** Frees everything. Calls in flight are aborted. */
  destroy(): void;
}

type Spec = TrainingSpec<Module, InputDecls>;

interface Planned {
  readonly model: TracedModel;
  readonly module: Module;
  readonly inputs: readonly InputType[];
  readonly traced: Traced;
  readonly rate: Rate;
  readonly seed: number;
}

/** Traces a spec. */
export function planTraining(lib: Library, spec: Spec, seed: number, site: Site): Planned {
  if (!spec.optimizer)
    throw new TensorgradError(
      "compile: the optimizer is missing\n  hint: optimizer: { kind: 'adam', lr: 0.001 }",
    );
  const model = TracedModel.of(lib, spec.model);
  const inputs = fixed(declared(spec.inputs), 'compile');
  const { options, rate } = optimizerJson(spec.optimizer, model.names);
  const traced = traceProgram(lib, model, {
    what: 'compile',
    kind: 'training',
    options: { ...trainingJson(spec, model.names), ...options, seed },
    inputs,
    site,
    body: (tensors): Outputs => (spec.loss as ForwardFn<Module>)(spec.model, tensors),
  });
  return { model, module: spec.model, inputs, traced, rate, seed };
}

export class TrainingHandle<M extends Module, I extends InputDecls>
  extends ModelHandle
  implements CompiledTraining<M, I>
{
  private readonly children = new Set<Forwards>();
  private inspected: CompiledIR | undefined;
  private rate: Rate;
  private turn: Promise<unknown> = Promise.resolve(); // of rates that are functions
  private lastId = 0;
  private destroyed = false;

  constructor(
    private readonly lib: Library,
    protected override channel: Channel,
    private spec: Spec,
    private planned: Planned,
    protected override info: ProgramInfo,
  ) {
    super();
    this.rate = planned.rate;
  }

  /** What the compiler makes of the step. */
  inspect(): CompiledIR {
    const { model, traced } = this.planned;
    this.inspected ??= inspect(this.lib, model.entries, traced.recording);
    return this.inspected;
  }
  get graph(): Graph {
    return this.inspect().graph;
  }
  get kernels(): readonly KernelInfo[] {
    return this.info.kernels;
  }
  get kernelCount(): number {
    return this.info.kernels.length;
  }
  get outputShape(): readonly number[] {
    return [];
  }
  get seed(): number {
    return this.planned.seed;
  }

  step(given: TypedInputs<I>, { captures = true }: CallOptions = {}): Promise<StepResult> {
    return guarded(siteOf(this.step), async () => {
      const { inputs, traced } = this.planned;
      const feed = feedOf('step', inputs, given);
      const send = (lr?: number): Promise<unknown> =>
        this.channel.request(
          {
            kind: 'run',
            id: 0,
            feed,
            captures: captures && traced.captures,
            ...(lr !== undefined && { lr }),
          },
          buffersOf(feed),
        );
      const { rate } = this;
      const value = (await ('at' in rate ? this.atRate(rate.at, send) : send())) as RunValue;
      const { loss, ...others } = value.outputs;
      const { step, lr, finite, grad_norm } = value.step!;
      return {
        kind: 'completed' as const,
        loss: loss!.values[0]!,
        captures: new Captures(value.captures),
        step: step + 1, // the library counts from 0
        lr,
        finite,
        outputs: valuesByName(others),
        ...(grad_norm !== undefined && { gradNorm: grad_norm ?? NaN }),
        ...(value.deviceLost !== undefined && { deviceLost: value.deviceLost }),
      };
    });
  }

  // Asks for the number of the update, and sends the step with its rate before another one asks.
  private async atRate(
    at: (update: number) => number,
    send: (lr: number) => Promise<unknown>,
  ): Promise<unknown> {
    const before = this.turn;
    let done!: () => void;
    this.turn = new Promise<void>((resolve) => (done = resolve));
    await before;
    let sent: Promise<unknown>;
    try {
      const { updates } = (await this.channel.request({ kind: 'position' })) as Position;
      const lr = at(updates);
      if (typeof lr !== 'number' || Number.isNaN(lr))
        throw new TensorgradError(`lr: the function returned ${lr} for update ${updates}`);
      sent = send(lr);
    } finally {
      done();
    }
    return sent;
  }

  async attach<I2 extends InputDecls, O2 extends 'f32' | 'i32' = 'f32'>(
    spec: ForwardSpec<M, I2, O2>,
  ): Promise<CompiledForward<M, I2, O2>> {
    const site = siteOf(this.attach);
    const handle = this;
    const owner = {
      lib: this.lib,
      nextId: () => ++this.lastId,
      get channel() {
        return handle.channel;
      },
      get traced() {
        return handle.planned.model;
      },
      get module() {
        return handle.planned.module;
      },
    };
    const forwards = new Forwards('attach', owner, spec as never, site);
    if (forwards.fixedInputs) await forwards.find(forwards.fixedInputs).info;
    this.children.add(forwards);
    return new AttachedForward<M, I2, O2>(this, forwards, () => this.children.delete(forwards));
  }

  downloadParamGrads(): Promise<Record<string, Float32Array>> {
    return this.download('gradients');
  }

  async reset({
    params = true,
    optimizer = true,
    seed,
  }: { params?: boolean; optimizer?: boolean; seed?: number } = {}): Promise<void> {
    if (!params && !optimizer) return;
    await this.channel.request({
      kind: 'reset',
      params,
      optimizer,
      ...(seed !== undefined && { seed }),
    });
    if (seed !== undefined) this.planned = { ...this.planned, seed };
  }

  async setLR(lr: LR): Promise<void> {
    const rate = rateOf(lr);
    this.rate = rate;
    if ('json' in rate) await this.channel.request({ kind: 'setLr', lr: rate.json });
  }

  async replaceModel(
    model: M,
    { seed = randomSeed(), optimizer }: { seed?: number; optimizer?: OptimizerConfig } = {},
  ): Promise<void> {
    const spec = { ...this.spec, model, ...(optimizer && { optimizer }) };
    const planned = planTraining(this.lib, spec, seed, siteOf(this.replaceModel));
    const created = this.channel.request({
      kind: 'create',
      model: planned.model.entries,
      program: planned.traced.recording,
    });
    this.planned.model.free();
    this.spec = spec;
    this.planned = planned;
    this.rate = planned.rate;
    this.inspected = undefined;
    for (const child of this.children) child.forget();
    this.info = (await created) as ProgramInfo;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.children.clear();
    this.channel.close();
    this.planned.model.free();
  }
}

/** Compiles a training step. */
export async function compileSpec<M extends Module, I extends InputDecls>(
  spec: TrainingSpec<M, I>,
  site: Site,
): Promise<TrainingHandle<M, I>> {
  const lib = await localLibrary();
  const own = spec as unknown as Spec;
  const planned = planTraining(lib, own, spec.seed ?? randomSeed(), site);
  let handle: TrainingHandle<M, I> | undefined;
  const receive = (event: EngineEvent): void => {
    if (handle) handle.receive(event, spec.onProgress);
    else progressOf(event, spec.onProgress);
  };
  const channel = await openChannel(spec, receive);
  try {
    const info = (await channel.request({
      kind: 'create',
      model: planned.model.entries,
      program: planned.traced.recording,
    })) as ProgramInfo;
    handle = new TrainingHandle<M, I>(lib, channel, own, planned, info);
    return handle;
  } catch (error) {
    channel.close();
    throw error;
  }
}

/** What the compiler makes of a training step, without a device. */
export async function traceSpec<M extends Module, I extends InputDecls>(
  spec: TrainingSpec<M, I>,
  site: Site,
): Promise<CompiledIR> {
  const lib = await localLibrary();
  const { model, traced } = planTraining(lib, spec as unknown as Spec, spec.seed ?? 0, site);
  try {
    return inspect(lib, model.entries, traced.recording);
  } finally {
    model.free();
  }
}
