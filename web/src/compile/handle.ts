// What all handles of compiled models have.
import {
  AbortError,
  type Counts,
  type EngineEvent,
  type GpuReport,
  type LookCommand,
  type PlannedKernel,
  type ProgramInfo,
} from '../engine/protocol.js';
import type { Channel } from '../engine/channel.js';
import { TensorgradError } from '../wasm/errors.js';
import { buffersOf, type HostArrays } from '../wasm/arrays.js';
import { isDetached } from './inputs.js';
import type { ModelParameter } from '../trace/recording.js';
import { atSite, siteOf, type Site } from '../trace/site.js';
import type { NotCompleted, Progress } from './specs.js';

/** The device was lost. The model recovers by itself, unless it takes no snapshots. */
export class DeviceLostEvent extends Event {
  constructor(
    readonly message: string,
    readonly reason: string,
  ) {
    super('devicelost');
  }
}
/** The model goes on: a snapshot was restored, and the steps since were repeated. */
export class RecoveredEvent extends Event {
  constructor(
    readonly device: string,
    readonly snapshotStep: number,
    readonly repeatedSteps: number,
  ) {
    super('recovered');
  }
}

export interface HandleEvents {
  devicelost: DeviceLostEvent;
  recovered: RecoveredEvent;
}

/** The events of an engine, dispatched on a handle. */
export class Events extends EventTarget {
  override addEventListener<K extends keyof HandleEvents>(
    type: K,
    listener: (event: HandleEvents[K]) => void,
    options?: AddEventListenerOptions | boolean,
  ): void;
  override addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: AddEventListenerOptions | boolean,
  ): void;
  override addEventListener(
    type: string,
    listener: unknown,
    options?: AddEventListenerOptions | boolean,
  ): void {
    super.addEventListener(type, listener as EventListener, options);
  }

  /** @internal */
  receive(event: EngineEvent, onProgress?: (progress: Progress) => void): void {
    if (event.type === 'devicelost')
      this.dispatchEvent(new DeviceLostEvent(event.message, event.reason));
    else if (event.type === 'recovered')
      this.dispatchEvent(new RecoveredEvent(event.device, event.snapshotStep, event.repeatedSteps));
    else progressOf(event, onProgress);
  }
}

/** Reports the progress of compilation, if the event is that. */
export function progressOf(event: EngineEvent, onProgress?: (progress: Progress) => void): void {
  if (event.type !== 'progress') return;
  const { work, done, total } = event;
  callUser(() => onProgress?.({ work, done, total }));
}

export interface SaveOptions {
  /** False: parameters alone, for running the model. Default: true. */
  optimizer?: boolean;
  /** Texts to keep in the file. */
  more?: Record<string, string>;
}
/** What a checkpoint says about itself. */
export interface CheckpointInfo {
  step: number;
  seed: number;
  position: number;
  config: string;
  tokenizer: string;
  more: Record<string, string>;
}

/** Runs a call whose errors belong to its result. Aborted calls are no errors. */
export async function guarded<T>(site: Site, body: () => Promise<T>): Promise<T | NotCompleted> {
  try {
    return await body();
  } catch (thrown) {
    if (thrown instanceof AbortError || (thrown as Error | null)?.name === 'AbortError')
      return { kind: 'aborted' };
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    return { kind: 'failed', error: withSite(error, site) };
  }
}

/** Runs a call whose errors reject it. */
export async function located<T>(site: Site, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (thrown) {
    throw thrown instanceof Error ? withSite(thrown, site) : thrown;
  }
}

// The library names the line of the op; the line of the call is known here. The stack of a worker
// helps nobody.
function withSite(error: Error, site: Site): Error {
  const place = atSite(site).slice(2);
  if (!(error instanceof TensorgradError) || error.kind === 'internal' || !place) return error;
  // Several calls may share the error: each gets one of its own.
  const own = error.message.includes(place)
    ? error
    : error.withMessage(`${error.message}\n  called ${place}`);
  own.stack = `${own.name}: ${own.message}\n    at ${site.file}:${site.line}`;
  return own;
}

/** Calls a function of the user. Its error is the page's, not the library's. */
export function callUser(body: () => void): void {
  try {
    body();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** A handle with an engine of its own: where it computes. */
export abstract class EngineHandle extends Events {
  protected abstract readonly channel: Channel;
  private recovered: { device: string; gpu: GpuReport } | undefined;

  /** @internal */
  override receive(event: EngineEvent, onProgress?: (progress: Progress) => void): void {
    if (event.type === 'recovered') this.recovered = event;
    super.receive(event, onProgress);
  }

  /** 'cpu' or the name of the GPU's device. */
  get device(): string {
    return (this.recovered ?? this.channel.opened).device;
  }
  /** Whether the GPU is used, and why not. */
  get gpu(): GpuReport {
    return (this.recovered ?? this.channel.opened).gpu;
  }
  /** What was asked for and could not be had: a worker, threads. Texts for developers. */
  get notes(): readonly string[] {
    return this.channel.notes;
  }
  /** Loses the device, as a crash would: to see that a program recovers. */
  loseDevice(): void {
    this.channel.loseDevice();
  }
}

/** Asks for a view of a program. */
export async function look<T>(
  channel: Channel,
  command: LookCommand,
  transfer?: ArrayBuffer[],
): Promise<T> {
  return (await channel.request(command, transfer)) as T;
}

/** The common part of training and forward handles: parameters and files. */
export abstract class ModelHandle extends EngineHandle {
  protected abstract info: ProgramInfo;

  get threads(): number {
    return this.info.threads;
  }
  get parameters(): readonly ModelParameter[] {
    return this.info.parameters;
  }
  get paramNames(): readonly string[] {
    return this.info.parameters.map(({ name }) => name);
  }
  /** The work and the memory of a step or run. */
  get counts(): Counts {
    return this.info.counts;
  }

  /** The values of all parameters by name. */
  downloadParams(): Promise<Record<string, Float32Array>> {
    return located(siteOf(this.downloadParams), () => this.download('parameters'));
  }

  /** Sets all parameters, or with `partial` some of them. Names what is missing or unknown. */
  uploadParams(
    params: Readonly<Record<string, Float32Array>>,
    { partial = false }: { partial?: boolean } = {},
  ): Promise<void> {
    return located(siteOf(this.uploadParams), async () => {
      const arrays: HostArrays = {};
      for (const [name, values] of Object.entries(params ?? {})) {
        if (!(values instanceof Float32Array))
          throw new TensorgradError(`uploadParams: '${name}' must be a Float32Array`);
        if (values.length === 0 && isDetached(values.buffer))
          throw new TensorgradError(`uploadParams: the buffer of '${name}' is detached`);
        arrays[name] = { dtype: 'f32', shape: [values.length], values: new Float32Array(values) };
      }
      await this.channel.request({ kind: 'upload', params: arrays, partial }, buffersOf(arrays));
    });
  }

  /** A checkpoint as bytes: a safetensors file that the command line tool reads, too. */
  save({ optimizer = true, more }: SaveOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const command = { kind: 'save' as const, info: more ? { more } : {}, optimizer };
    return located(siteOf(this.save), async () => {
      return (await this.channel.request(command)) as Uint8Array<ArrayBuffer>;
    });
  }

  /** Continues from a checkpoint, or takes the parameters of a safetensors file. */
  load(bytes: ArrayBuffer | Uint8Array, name = 'checkpoint'): Promise<CheckpointInfo> {
    return located(siteOf(this.load), async () => {
      const copy = new Uint8Array(bytes instanceof Uint8Array ? bytes : bytes.slice(0));
      const command = { kind: 'load' as const, bytes: copy, name };
      return (await this.channel.request(command, [copy.buffer])) as CheckpointInfo;
    });
  }

  /** What a stage of the compiler made of the program: 'plan', 'emit', ... */
  show(stage: string): Promise<string> {
    return located(siteOf(this.show), () => look(this.channel, { kind: 'show', id: 0, stage }));
  }
  /** The kernels of a step or run, in order, with the memory that they write. */
  plan(): Promise<PlannedKernel[]> {
    return located(siteOf(this.plan), () => look(this.channel, { kind: 'plan', id: 0 }));
  }
  /** The shaders for a GPU without special features: also where there is no GPU. */
  shaders(): Promise<string> {
    return located(siteOf(this.shaders), () => look(this.channel, { kind: 'shaders', id: 0 }));
  }

  protected async download(
    what: 'parameters' | 'gradients',
  ): Promise<Record<string, Float32Array>> {
    const arrays = (await this.channel.request({ kind: 'download', what })) as HostArrays;
    return Object.fromEntries(
      Object.entries(arrays).map(([name, array]) => [name, array.values as Float32Array]),
    );
  }
}
