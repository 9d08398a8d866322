// What all handles of compiled models have.
import {
  AbortError,
  type Counts,
  type EngineEvent,
  type GpuReport,
  type ProgramInfo,
} from '../engine/protocol.js';
import type { Channel } from '../engine/channel.js';
import { TensorgradError } from '../wasm/errors.js';
import type { HostArrays } from '../wasm/arrays.js';
import type { ModelParameter } from '../trace/recording.js';
import { atSite, type Site } from '../trace/site.js';
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
  onProgress?.({ work, done, total });
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

// The library names the line of the op; the line of the call is known here.
function withSite(error: Error, site: Site): Error {
  const place = atSite(site).slice(2);
  const user = error instanceof TensorgradError && error.kind === 'user';
  if (user && place && !error.message.includes(place)) error.message += `\n  called ${place}`;
  return error;
}

/** The common part of training and forward handles: parameters, files, the device. */
export abstract class ModelHandle extends Events {
  /** The handle's own engine. */
  protected abstract channel: Channel;
  protected abstract info: ProgramInfo;

  /** 'cpu' or the name of the GPU's device. */
  get device(): string {
    return this.info.device;
  }
  /** Whether the GPU is used, and why not. */
  get gpu(): GpuReport {
    return this.channel.opened.gpu;
  }
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
  async downloadParams(): Promise<Record<string, Float32Array>> {
    return this.download('parameters');
  }

  /** Sets all parameters, or with `partial` some of them. Names what is missing or unknown. */
  async uploadParams(
    params: Readonly<Record<string, Float32Array>>,
    { partial = false }: { partial?: boolean } = {},
  ): Promise<void> {
    const arrays: HostArrays = {};
    for (const [name, values] of Object.entries(params)) {
      if (!(values instanceof Float32Array))
        throw new TensorgradError(`uploadParams: '${name}' must be a Float32Array`);
      arrays[name] = { dtype: 'f32', shape: [values.length], values: new Float32Array(values) };
    }
    await this.channel.request({ kind: 'upload', params: arrays, partial });
  }

  /** A checkpoint as bytes: a safetensors file that the command line tool reads, too. */
  async save({ optimizer = true, more }: SaveOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const info = more ? { more } : {};
    const saved = await this.channel.request({ kind: 'save', info, optimizer });
    return saved as Uint8Array<ArrayBuffer>;
  }

  /** Continues from a checkpoint, or takes the parameters of a safetensors file. */
  async load(bytes: ArrayBuffer | Uint8Array, name = 'checkpoint'): Promise<CheckpointInfo> {
    const copy = new Uint8Array(bytes instanceof Uint8Array ? bytes : bytes.slice(0));
    const transfer = [copy.buffer];
    const info = await this.channel.request({ kind: 'load', bytes: copy, name }, transfer);
    return info as CheckpointInfo;
  }

  /** What a stage of the compiler made of the program: 'plan', 'emit', ... */
  async show(stage: string): Promise<string> {
    return (await this.channel.request({ kind: 'show', id: 0, stage })) as string;
  }

  /** Loses the device, as a crash would: to see that a program recovers. */
  loseDevice(): void {
    this.channel.loseDevice();
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
