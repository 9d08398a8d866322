// Compiled training steps.
import type { Channel } from '../engine/channel.js';
import type {
  EngineEvent,
  KernelInfo,
  KernelTime,
  Position,
  ProgramInfo,
  RunValue,
} from '../engine/protocol.js';
import { buffersOf } from '../wasm/arrays.js';
import { TensorgradError } from '../wasm/errors.js';
import { localLibrary, type Library } from '../wasm/library.js';
import type { InputType } from '../trace/recording.js';
import { siteOf, within, type Site } from '../trace/site.js';
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
import {
  guarded,
  located,
  look,
  ModelHandle,
  progressOf,
  type CheckpointInfo,
} from './handle.js';
import { OrderedChannel } from './ordered.js';
import { declared, feedOf, fixed } from './inputs.js';
import { inspect, type CompiledIR, type Graph } from './ir.js';
import { openChannel } from './open.js';
import { checkSpec, optimizerJson, trainingJson } from './options.js';
import { checkRate, rateOf, startingNow, type LR, type Rate } from './rates.js';
import { traceProgram, type Traced } from './tracing.js';
import type {
  CallOptions,
  EnqueuedResult,
  ForwardFn,
  ForwardSpec,
  InputDecls,
  OptimizerConfig,
  Outputs,
  ProfileOptions,
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
  /** One step whose loss nobody needs: reading it takes longer than a small step on a GPU. */
  step(inputs: TypedInputs<I>, options: { read: false }): Promise<EnqueuedResult>;
  /**
   * Fixes inputs, whose values then stay on the device. Returns the same program as one whose steps
   * are fed the others.
   */
  setInputs<K extends keyof I>(
    values: Pick<TypedInputs<I>, K>,
  ): Promise<CompiledTraining<M, { [P in Exclude<keyof I, K>]: I[P] }>>;
  /** Compiles a forward program over the same parameters. */
  attach<I2 extends InputDecls, O2 extends 'f32' | 'i32' = 'f32'>(
    spec: ForwardSpec<M, I2, O2>,
  ): Promise<CompiledForward<M, I2, O2>>;
  /** The gradients of the last step, before clipping. */
  downloadParamGrads(): Promise<Record<string, Float32Array>>;
  /**
   * Measures each kernel of the step, alone. The steps that it makes are undone: weights, optimizer
   * state and step stay as they are. The gradients are those of the last step measured.
   */
  profile(options?: ProfileOptions<I>): Promise<KernelTime[]>;
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
  checkSpec('compile', spec, 'loss');
  if (!spec.optimizer)
    throw new TensorgradError(
      "compile: the optimizer is missing\n  hint: optimizer: { kind: 'adam', lr: 0.001 }",
    );
  const model = TracedModel.of(lib, spec.model);
  return model.orFree(() => {
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
  });
}

export class TrainingHandle<M extends Module, I extends InputDecls>
  extends ModelHandle
  implements CompiledTraining<M, I>
{
  protected override readonly channel: OrderedChannel;
  private readonly children = new Set<Forwards>();
  private inspected: CompiledIR | undefined;
  private rate: Rate;
  private lastId = 0;
  private destroyed = false;

  constructor(
    private readonly lib: Library,
    channel: Channel,
    private spec: Spec,
    private planned: Planned,
    protected override info: ProgramInfo,
  ) {
    super();
    this.channel = new OrderedChannel(channel);
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

  step(given: TypedInputs<I>, options?: CallOptions): Promise<StepResult>;
  step(given: TypedInputs<I>, options: { read: false }): Promise<EnqueuedResult>;
  step(
    given: TypedInputs<I>,
    { captures = true, read = true }: CallOptions & { read?: boolean } = {},
  ): Promise<StepResult | EnqueuedResult> {
    return guarded(siteOf(this.step), async () => {
      const { inputs, traced } = this.planned;
      const feed = feedOf('step', inputs, given);
      const run = { kind: 'run' as const, id: 0, feed, captures: captures && traced.captures, read };
      const transfer = buffersOf(feed);
      const { rate } = this;
      const value = (await ('at' in rate
        ? this.channel.prepared(async (inner) => {
            const { updates } = (await inner.request({ kind: 'position' })) as Position;
            const lr = checkRate(rate.at(updates), `, for update ${updates}`);
            return { command: { ...run, lr }, transfer };
          })
        : this.channel.request(run, transfer))) as RunValue;
      return read ? stepResult(value) : { kind: 'enqueued' as const };
    });
  }

  setInputs<K extends keyof I>(
    values: Pick<TypedInputs<I>, K>,
  ): Promise<CompiledTraining<M, { [P in Exclude<keyof I, K>]: I[P] }>> {
    return located(siteOf(this.setInputs), async () => {
      const feed = feedOf('setInputs', this.planned.inputs, values);
      await this.channel.request({ kind: 'setInputs', id: 0, feed }, buffersOf(feed));
      return this as unknown as CompiledTraining<M, { [P in Exclude<keyof I, K>]: I[P] }>;
    });
  }

  attach<I2 extends InputDecls, O2 extends 'f32' | 'i32' = 'f32'>(
    spec: ForwardSpec<M, I2, O2>,
  ): Promise<CompiledForward<M, I2, O2>> {
    const site = siteOf(this.attach);
    return located(site, () => this.attachAt(spec as never, site));
  }

  /** @internal `anyOutput`: the dtype of the output need not be declared. */
  async attachAt(
    spec: ForwardSpec<never, InputDecls, 'f32' | 'i32'>,
    site: Site,
    anyOutput = false,
  ): Promise<AttachedForward<never, never, never>> {
    checkSpec('attach', spec, 'forward');
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
    const forwards = new Forwards('attach', owner, spec, site, anyOutput);
    if (this.destroyed) forwards.end();
    this.children.add(forwards);
    try {
      if (forwards.fixedInputs) await forwards.find(forwards.fixedInputs).info;
    } catch (error) {
      this.children.delete(forwards);
      throw error;
    }
    return new AttachedForward(this, forwards, () => this.children.delete(forwards));
  }

  profile({ steps = 10, inputs = {} }: ProfileOptions<I> = {}): Promise<KernelTime[]> {
    return located(siteOf(this.profile), async () => {
      const feed = feedOf('profile', this.planned.inputs, inputs);
      return look(this.channel, { kind: 'profile', id: 0, steps, feed }, buffersOf(feed));
    });
  }

  downloadParamGrads(): Promise<Record<string, Float32Array>> {
    return located(siteOf(this.downloadParamGrads), () => this.download('gradients'));
  }

  reset({
    params = true,
    optimizer = true,
    seed,
  }: { params?: boolean; optimizer?: boolean; seed?: number } = {}): Promise<void> {
    return located(siteOf(this.reset), async () => {
      if (seed !== undefined && !params)
        throw new TensorgradError('reset: a seed draws new weights\n  hint: without params: false');
      if (!params && !optimizer) return;
      const seeded = seed === undefined ? {} : { seed };
      await this.channel.request({ kind: 'reset', params, optimizer, ...seeded });
      if (seed !== undefined) this.planned = { ...this.planned, seed };
    });
  }

  override async load(bytes: ArrayBuffer | Uint8Array, name?: string): Promise<CheckpointInfo> {
    const site = siteOf(this.load);
    const info = await within(site, () => super.load(bytes, name));
    this.planned = { ...this.planned, seed: info.seed };
    return info;
  }

  setLR(lr: LR): Promise<void> {
    return located(siteOf(this.setLR), async () => {
      const rate = startingNow(lr, rateOf(lr));
      const before = this.rate;
      this.rate = rate;
      if ('at' in rate) return;
      try {
        await this.channel.request({ kind: 'setLr', lr: rate.json });
      } catch (error) {
        if (this.rate === rate) this.rate = before;
        throw error;
      }
    });
  }

  replaceModel(
    model: M,
    options: { seed?: number; optimizer?: OptimizerConfig } = {},
  ): Promise<void> {
    const site = siteOf(this.replaceModel);
    return located(site, () => this.replaceAt(model, options, site));
  }

  private async replaceAt(
    model: M,
    { seed = randomSeed(), optimizer }: { seed?: number; optimizer?: OptimizerConfig },
    site: Site,
  ): Promise<void> {
    const spec = { ...this.spec, model, ...(optimizer && { optimizer }) };
    const planned = planTraining(this.lib, spec, seed, site);
    const created = this.channel.request({
      kind: 'create',
      model: planned.model.entries,
      program: planned.traced.recording,
    });
    // Calls from here on are for the new model, if it can be built.
    const before = { spec: this.spec, planned: this.planned, rate: this.rate };
    this.take({ spec, planned, rate: planned.rate });
    try {
      this.info = (await created) as ProgramInfo;
    } catch (error) {
      planned.model.free();
      this.take(before);
      throw error;
    }
    before.planned.model.free();
  }

  private take({ spec, planned, rate }: { spec: Spec; planned: Planned; rate: Rate }): void {
    this.spec = spec;
    this.planned = planned;
    this.rate = rate;
    this.inspected = undefined;
    for (const child of this.children) child.forget();
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    for (const child of this.children) child.end();
    this.children.clear();
    this.channel.close();
    this.planned.model.free();
  }
}

function stepResult({ outputs, captures, step: report, deviceLost }: RunValue): StepResult {
  const { loss, ...others } = outputs;
  const { step, lr, finite, grad_norm } = report!;
  return {
    kind: 'completed',
    loss: loss!.values[0]!,
    captures: new Captures(captures),
    step: step + 1, // the library counts from 0
    lr,
    finite,
    outputs: valuesByName(others),
    ...(grad_norm !== undefined && { gradNorm: grad_norm ?? NaN }),
    ...(deviceLost !== undefined && { deviceLost }),
  };
}

/** Compiles a training step. */
export async function compileSpec<M extends Module, I extends InputDecls>(
  spec: TrainingSpec<M, I>,
  site: Site,
): Promise<TrainingHandle<M, I>> {
  const lib = await localLibrary(spec.device);
  const own = spec as unknown as Spec;
  const planned = planTraining(lib, own, spec.seed ?? randomSeed(), site);
  let handle: TrainingHandle<M, I> | undefined;
  const receive = (event: EngineEvent): void => {
    if (handle) handle.receive(event, spec.onProgress);
    else progressOf(event, spec.onProgress);
  };
  let channel: Channel | undefined;
  try {
    channel = await openChannel(spec, receive);
    const info = (await channel.request({
      kind: 'create',
      model: planned.model.entries,
      program: planned.traced.recording,
    })) as ProgramInfo;
    handle = new TrainingHandle<M, I>(lib, channel, own, planned, info);
    return handle;
  } catch (error) {
    channel?.close();
    planned.model.free();
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
