// Forward programs: attached to a model in training, or with parameters of their own.
import type { Channel } from '../engine/channel.js';
import {
  AbortError,
  type KernelTime,
  type ProgramId,
  type ProgramInfo,
  type RunValue,
} from '../engine/protocol.js';
import { buffersOf, type HostArrays } from '../wasm/arrays.js';
import { TensorgradError } from '../wasm/errors.js';
import { localLibrary, type Library } from '../wasm/library.js';
import type { InputType, JsonObject, ProgramRecording } from '../trace/recording.js';
import { siteOf, within, type Site } from '../trace/site.js';
import { TracedModel } from '../nn/model.js';
import type { Module } from '../nn/module.js';
import { Captures } from './captures.js';
import { guarded, located, ModelHandle, progressOf } from './handle.js';
import { declared, feedOf, isFixed, resolve, shapeKey, type Declared } from './inputs.js';
import { inspect, type CompiledIR } from './ir.js';
import { openChannel } from './open.js';
import { checkPrecision, checkSpec } from './options.js';
import { traceProgram, type Traced } from './tracing.js';
import type {
  CallOptions,
  DtypeArray,
  ForwardExecutorSpec,
  ForwardFn,
  ForwardSpec,
  InputDecls,
  Outputs,
  OutputArray,
  ProfileOptions,
  RunResult,
  TypedInputs,
} from './specs.js';

const defaultCachedShapes = 8;

/** A forward program. With `null` sizes it is one for each size, compiled when it first occurs. */
export interface CompiledForward<
  M extends Module = Module,
  I extends InputDecls = InputDecls,
  O extends 'f32' | 'i32' = 'f32',
> {
  readonly paramNames: readonly string[];
  run(inputs: TypedInputs<I>, options?: CallOptions): Promise<RunResult<O>>;
  /** What the compiler makes of the program for the sizes of these inputs. */
  graphFor(inputs: TypedInputs<I>): Promise<CompiledIR>;
  /** Measures each kernel of a run on these inputs, alone. */
  profile(options: { steps?: number; inputs: TypedInputs<I> }): Promise<KernelTime[]>;
  uploadParams(
    params: Readonly<Record<string, Float32Array>>,
    options?: { partial?: boolean },
  ): Promise<void>;
  downloadParams(): Promise<Record<string, Float32Array>>;
  destroy(): void;
}

/** The model that programs are attached to. */
export interface Owner {
  readonly channel: Channel;
  readonly lib: Library;
  readonly traced: TracedModel;
  readonly module: Module;
  nextId(): ProgramId;
}

/** A forward program with parameters, files and a device of its own. */
export interface ForwardModel<
  M extends Module = Module,
  I extends InputDecls = InputDecls,
  O extends 'f32' | 'i32' = 'f32',
>
  extends ModelHandle, CompiledForward<M, I, O> {
  uploadParams(
    params: Readonly<Record<string, Float32Array>>,
    options?: { partial?: boolean },
  ): Promise<void>;
  downloadParams(): Promise<Record<string, Float32Array>>;
  readonly paramNames: readonly string[];
}

interface Program {
  readonly id: ProgramId;
  readonly inputs: readonly InputType[];
  readonly traced: Traced;
  readonly info: Promise<ProgramInfo>;
}

/** The programs of one forward function, by shape. */
export class Forwards {
  private readonly programs = new Map<string, Program>(); // the least recently used comes first
  readonly inputs: readonly Declared[];
  private readonly most: number;
  private ended = false;

  constructor(
    readonly what: 'attach' | 'compileForward',
    private readonly owner: Owner,
    private readonly spec: ForwardSpec<never, InputDecls, 'f32' | 'i32'>,
    private readonly site: Site,
    private readonly anyOutput = false,
  ) {
    this.inputs = declared(spec.inputs);
    this.most = Math.max(1, spec.maxCachedShapes ?? defaultCachedShapes);
  }

  /** The inputs, if all sizes are known. */
  get fixedInputs(): readonly InputType[] | undefined {
    return isFixed(this.inputs) ? (this.inputs as InputType[]) : undefined;
  }

  /** Traces the function for these inputs, without compiling it. */
  trace(inputs: readonly InputType[], kind: 'attached' | 'forward', options: JsonObject): Traced {
    const { forward, output = 'f32' } = this.spec;
    const { lib, traced: model, module } = this.owner;
    const traced = traceProgram(lib, model, {
      what: this.what,
      kind,
      options,
      inputs,
      site: this.site,
      body: (tensors): Outputs => (forward as ForwardFn<Module>)(module, tensors),
    });
    const { dtype } = traced.outputs[0]!;
    if (dtype !== output && !this.anyOutput)
      throw new TensorgradError(
        `${this.what}: the output is ${dtype}, and the spec says '${output}'\n` +
          `  hint: output: '${dtype}'`,
      );
    return traced;
  }

  /** A program that exists already. */
  keep(inputs: readonly InputType[], program: Program): void {
    this.programs.set(shapeKey(inputs), program);
  }

  /** The program for these inputs. What the engine is asked for is asked at once. */
  find(inputs: readonly InputType[]): Program {
    if (this.ended) throw new AbortError();
    const key = shapeKey(inputs);
    const known = this.programs.get(key);
    if (known) {
      this.programs.delete(key);
      this.programs.set(key, known);
      return known;
    }
    const options: JsonObject = this.spec.training ? { training: true } : {};
    const traced = this.trace(inputs, 'attached', options);
    const id = this.owner.nextId();
    const info = this.owner.channel.request({ kind: 'attach', id, program: traced.recording });
    const program = { id, inputs, traced, info: info as Promise<ProgramInfo> };
    info.catch(() => {
      if (this.programs.get(key) === program) this.programs.delete(key);
    });
    this.programs.set(key, program);
    if (this.programs.size > this.most) this.drop(this.programs.keys().next().value!);
    return program;
  }

  private drop(key: string): void {
    const program = this.programs.get(key)!;
    this.programs.delete(key);
    this.owner.channel.request({ kind: 'free', id: program.id }).catch(() => undefined);
  }

  /** Frees all programs: they are of another model now, or nobody needs them. */
  clear(): void {
    for (const key of [...this.programs.keys()]) this.drop(key);
  }
  /** Nothing runs any more. */
  end(): void {
    this.ended = true;
    this.programs.clear();
  }
  /** The engine has no programs any more. */
  forget(): void {
    this.programs.clear();
  }

  async run<O extends 'f32' | 'i32'>(
    given: Record<string, unknown>,
    { captures = true }: CallOptions,
  ): Promise<RunResult<O>> {
    const inputs = resolve(this.inputs, given);
    const feed = feedOf('run', inputs, given);
    const { id, traced, info } = this.find(inputs);
    const value = this.owner.channel.request(
      { kind: 'run', id, feed, captures: captures && traced.captures, read: true },
      buffersOf(feed),
    );
    await Promise.all([info, value]); // an error of `attach` comes first
    return runResult<O>((await value) as RunValue, traced);
  }

  async profile({ steps = 10, inputs: given = {} }: ProfileOptions): Promise<KernelTime[]> {
    const inputs = resolve(this.inputs, given, 'profile');
    const feed = feedOf('profile', inputs, given);
    const { id, info } = this.find(inputs);
    const command = { kind: 'profile' as const, id, steps, feed };
    const times = this.owner.channel.request(command, buffersOf(feed));
    await Promise.all([info, times]); // an error of `attach` comes first
    return (await times) as KernelTime[];
  }

  async inspect(given: Record<string, unknown>): Promise<CompiledIR> {
    const { traced, info } = this.find(resolve(this.inputs, given));
    const ir = inspect(this.owner.lib, this.owner.traced.entries, traced.recording);
    return { ...ir, kernels: (await info).kernels };
  }
}

function runResult<O extends 'f32' | 'i32'>(value: RunValue, traced: Traced): RunResult<O> {
  const first = value.outputs[traced.outputs[0]!.name]!;
  return {
    kind: 'completed',
    output: first.values as OutputArray as DtypeArray<O>,
    shape: first.shape,
    outputs: valuesByName(value.outputs),
    captures: new Captures(value.captures),
    ...(value.deviceLost !== undefined && { deviceLost: value.deviceLost }),
  };
}

export function valuesByName(arrays: HostArrays): Record<string, OutputArray> {
  return Object.fromEntries(Object.entries(arrays).map(([name, { values }]) => [name, values]));
}

/** An attached program: its parameters are those of a model in training. */
export class AttachedForward<
  M extends Module,
  I extends InputDecls,
  O extends 'f32' | 'i32',
> implements CompiledForward<M, I, O> {
  constructor(
    private readonly parent: ModelHandle,
    readonly forwards: Forwards,
    private readonly gone: () => void,
  ) {}

  get paramNames(): readonly string[] {
    return this.parent.paramNames;
  }
  run(inputs: TypedInputs<I>, options: CallOptions = {}): Promise<RunResult<O>> {
    return guarded(siteOf(this.run), () => this.forwards.run<O>(inputs, options));
  }
  graphFor(inputs: TypedInputs<I>): Promise<CompiledIR> {
    return located(siteOf(this.graphFor), () => this.forwards.inspect(inputs));
  }
  profile(options: { steps?: number; inputs: TypedInputs<I> }): Promise<KernelTime[]> {
    return located(siteOf(this.profile), () => this.forwards.profile(options ?? {}));
  }
  uploadParams(
    params: Readonly<Record<string, Float32Array>>,
    options?: { partial?: boolean },
  ): Promise<void> {
    return within(siteOf(this.uploadParams), () => this.parent.uploadParams(params, options));
  }
  downloadParams(): Promise<Record<string, Float32Array>> {
    return within(siteOf(this.downloadParams), () => this.parent.downloadParams());
  }
  destroy(): void {
    this.forwards.clear();
    this.forwards.end();
    this.gone();
  }
}

/** A forward program with parameters of its own. */
export class ForwardHandle<M extends Module, I extends InputDecls, O extends 'f32' | 'i32'>
  extends ModelHandle
  implements ForwardModel<M, I, O>
{
  private destroyed = false;

  constructor(
    protected override readonly channel: Channel,
    protected override info: ProgramInfo,
    private readonly model: TracedModel,
    private readonly forwards: Forwards,
  ) {
    super();
  }

  run(inputs: TypedInputs<I>, options: CallOptions = {}): Promise<RunResult<O>> {
    return guarded(siteOf(this.run), () => this.forwards.run<O>(inputs, options));
  }
  graphFor(inputs: TypedInputs<I>): Promise<CompiledIR> {
    return located(siteOf(this.graphFor), () => this.forwards.inspect(inputs));
  }
  profile(options: { steps?: number; inputs: TypedInputs<I> }): Promise<KernelTime[]> {
    return located(siteOf(this.profile), () => this.forwards.profile(options ?? {}));
  }
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.forwards.end();
    this.channel.close();
    this.model.free();
  }
}

// A program that has the parameters and computes nothing. Programs with `null` sizes are attached to
// it.
const ownerOnly: ProgramRecording = {
  kind: 'forward',
  options: { inputs: [] },
  calls: [{ op: 'zeros', args: '{"shape":[]}', site: { file: '', line: 0 } }],
  outputs: [['out', 0]],
};

/**
 * Compiles a forward program with parameters of its own. `anyOutput`: the dtype of the output need
 * not be declared.
 */
export async function compileForwardSpec<
  M extends Module,
  I extends InputDecls,
  O extends 'f32' | 'i32' = 'f32',
>(
  spec: ForwardExecutorSpec<M, I, O>,
  site: Site,
  anyOutput = false,
): Promise<ForwardHandle<M, I, O>> {
  checkSpec('compileForward', spec, 'forward');
  checkPrecision(spec);
  const lib = await localLibrary(spec.device);
  const model = TracedModel.of(lib, spec.model);
  let opened: Channel | undefined;
  let last = 0;
  const owner: Owner = {
    lib,
    traced: model,
    module: spec.model,
    nextId: () => ++last,
    get channel() {
      return opened!;
    },
  };
  try {
    const { seed = randomSeed(), without, training } = spec;
    const options = { seed, ...(without && { without: [...without] }) };
    const forwards = new Forwards('compileForward', owner, spec as never, site, anyOutput);
    const inputs = training ? undefined : forwards.fixedInputs;
    // What is wrong with the function is known before a worker is started.
    const traced = inputs && forwards.trace(inputs, 'forward', options);
    const program = traced?.recording ?? { ...ownerOnly, options: { ...options, inputs: [] } };
    let handle: ForwardHandle<M, I, O> | undefined;
    opened = await openChannel(spec, (event) =>
      handle ? handle.receive(event, spec.onProgress) : progressOf(event, spec.onProgress),
    );
    const created = opened.request({ kind: 'create', model: model.entries, program });
    const info = (await created) as ProgramInfo;
    if (inputs && traced)
      forwards.keep(inputs, { id: 0, inputs, traced, info: Promise.resolve(info) });
    handle = new ForwardHandle<M, I, O>(opened, info, model, forwards);
    return handle;
  } catch (error) {
    opened?.close();
    model.free();
    throw error;
  }
}

export function randomSeed(): number {
  return Math.floor(Math.random() * 2 ** 32);
}
