// Runs the commands of one session in order, and survives the loss of its device:
//
//   open -> running -> (device lost) -> recovering -> running
//                                          | no other device, or no snapshots
//                                          v
//                                         dead
//
// Commands are issued one after the other, without waiting for their results. Every N steps a
// snapshot of the state is asked for, behind the steps that are in flight. After a loss the session
// is built again in a new instance, the snapshot is restored, and the commands since are repeated;
// those that were answered before are repeated silently.
import { TensorgradError } from '../wasm/errors.js';
import { Library } from '../wasm/library.js';
import { openDevice, reportOf, type Gpu } from './device.js';
import { bytesOf, CommandLog, type Entry } from './log.js';
import { ModelSession } from './model_session.js';
import {
  AbortError,
  type Command,
  type Create,
  type EngineEvent,
  type Opened,
  type OpenOptions,
} from './protocol.js';
import { Pump } from './pump.js';
import type { Place, Session } from './session.js';

/** How a session of another kind is made. */
export type MakeSession = (create: Create) => Session | undefined;

const defaultSteps = 100;
const mostBytes = 64 << 20; // of feeds that recovery would need
const mostLosses = 5; // without a command that was done in between

type State = 'running' | 'recovering' | 'dead';

// One instance of the library and its device. `gone` resolves when it is lost.
interface Instance {
  readonly place: Place;
  readonly gpu: Gpu;
  readonly gone: Promise<never>;
  readonly end: (why: string) => void;
}

class Lost extends Error {}

export class Engine {
  private state: State = 'running';
  private instance!: Instance;
  private session: Session | undefined;
  private log = new CommandLog(false);
  private queue: Entry[] = [];
  private draining = false;
  private snapshot: { value: unknown; step: number } | undefined;
  private snapshotting = false;
  private lossReport: string | undefined; // for the next result
  private losses = 0;
  private silent = false;
  private stopsLater = false; // stop() was called while the device was lost
  private deadBecause: Error | undefined;

  private constructor(
    private readonly options: OpenOptions,
    private readonly emit: (event: EngineEvent) => void,
    private readonly make: MakeSession,
  ) {}

  static async open(
    options: OpenOptions,
    emit: (event: EngineEvent) => void,
    make: MakeSession = () => undefined,
  ): Promise<{ engine: Engine; opened: Opened }> {
    const engine = new Engine(options, emit, make);
    const { place, gpu } = await engine.openInstance(options.device);
    return { engine, opened: { device: place.device, gpu: reportOf(gpu) } };
  }

  private get every(): number {
    const { snapshotEvery } = this.options;
    return snapshotEvery ?? (this.instance.gpu.ok ? defaultSteps : 0);
  }

  private async openInstance(wanted: string): Promise<Instance> {
    const gpu = await openDevice(wanted);
    let pump: Pump | undefined;
    let lib: Library;
    try {
      lib = await Library.open(this.options.binaries[gpu.ok ? 'webgpu' : 'cpu'], {
        ...(gpu.ok && { gpu }),
        threads: this.options.threads,
        onArrived: () => pump?.arrived(),
      });
      if (this.deadBecause) throw this.deadBecause; // it was closed meanwhile
    } catch (error) {
      gpu.device?.destroy();
      throw error;
    }
    pump = new Pump(lib, gpu.ok);
    let fail!: (error: Error) => void;
    const gone = new Promise<never>((_, reject) => (fail = reject));
    gone.catch(() => undefined); // it may be that nobody waits
    const place: Place = {
      lib,
      pump,
      device: gpu.ok ? 'webgpu:0' : 'cpu',
      threads: this.options.threads,
      shaderLibrary: async () => (gpu.ok ? lib : Library.open(this.options.binaries.webgpu)),
      // Text of a command that is repeated silently was emitted before.
      emit: (event) => {
        if (event.type !== 'text' || !this.silent) this.emit(event);
      },
    };
    const end = (why: string): void => {
      pump.stop();
      lib.end();
      fail(new Lost(why));
    };
    const instance: Instance = { place, gpu, gone, end };
    // From here on, a loss is noticed: also one that happened while the library was loaded.
    this.instance = instance;
    gpu.device?.lost.then(({ message, reason }) =>
      this.lost(instance, message || 'the GPU device was lost', reason ?? 'unknown'),
    );
    return instance;
  }

  private lost(instance: Instance, message: string, reason: string): void {
    if (this.instance !== instance || this.state === 'dead') return;
    instance.end(message);
    void this.recover(message, reason);
  }

  /** Does what a command says, after all that came before it. */
  request(command: Command): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.state === 'dead') return reject(this.deadBecause);
      this.queue.push({
        command,
        changes: false,
        bytes: bytesOf(command),
        resolve,
        reject,
        issued: 0,
        settled: 0,
        failure: undefined,
      });
      void this.drain();
    });
  }

  /** Loses the device, as a crash would. */
  loseDevice(): void {
    const { device } = this.instance.gpu;
    if (device) device.destroy();
    else this.lost(this.instance, 'the device was given up', 'destroyed');
  }

  /** Ends a text that is being written. */
  stop(): void {
    if (this.state === 'running') this.session?.stop?.();
    else this.stopsLater = true;
  }

  /** Ends all that is in flight. */
  close(): void {
    this.die(new AbortError());
    this.session = undefined;
    this.instance.gpu.device?.destroy();
  }

  private async drain(): Promise<void> {
    if (this.draining || this.state !== 'running') return;
    this.draining = true;
    const { instance } = this;
    try {
      for (;;) {
        const entry = this.queue.shift();
        if (!entry) break;
        await this.issue(entry, instance);
        if (this.instance !== instance || this.state !== 'running') break;
      }
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
    } finally {
      this.draining = false;
    }
    if (this.state === 'running' && this.queue.length > 0) void this.drain();
  }

  // Issues one command, and waits for it if nothing may pass it. Throws Lost.
  private async issue(entry: Entry, instance: Instance): Promise<void> {
    const { command } = entry;
    const { session } = this;
    if (isCreate(command)) return this.begin(entry, command, instance);
    if (!session) return entry.reject(new TensorgradError('there is no model', 'internal'));
    entry.changes = session.changes(command);
    this.log.issue(entry);
    const done = this.answer(entry, session, instance);
    if (session.slow(command)) await Promise.race([done, instance.gone]);
    this.takeSnapshot();
  }

  private async answer(entry: Entry, session: Session, instance: Instance): Promise<void> {
    const { log } = this;
    const again = entry.settled > 0; // it was answered before the device was lost
    try {
      const value = await session.issue(entry.command);
      if (this.instance !== instance) return;
      session.define(entry.command);
      if (again) return;
      this.losses = 0;
      const { command } = entry;
      // Nobody knows yet whether the step succeeds: the next one that is read does.
      if (command.kind === 'run' && !command.read) return entry.resolve(value);
      log.settle(entry, undefined);
      if (session.forgets?.(command)) log.forget(entry.issued);
      entry.resolve(this.withReport(value));
    } catch (thrown) {
      if (await this.isLoss(thrown, instance)) return;
      const error = thrown as Error;
      if (!again) log.settle(entry, error.message);
      entry.reject(error);
    }
  }

  // A call may fail a moment before the loss of its device is known.
  private async isLoss(error: unknown, instance: Instance): Promise<boolean> {
    if (this.instance !== instance || this.state === 'dead') return true;
    if (!(error instanceof TensorgradError) || error.kind !== 'device' || !instance.gpu.ok)
      return false;
    const pause = new Promise((resolve) => setTimeout(resolve, 500));
    try {
      await Promise.race([pause, instance.gone]);
    } catch {
      return true;
    }
    return false;
  }

  private withReport(value: unknown): unknown {
    const message = this.lossReport;
    if (message === undefined || typeof value !== 'object' || value === null) return value;
    if (!('outputs' in value) && !('loss' in value)) return value;
    this.lossReport = undefined;
    return { ...value, deviceLost: message };
  }

  // A new session replaces the one before, once it is built.
  private async begin(entry: Entry, create: Create, instance: Instance): Promise<void> {
    const session = create.kind === 'create' ? new ModelSession(create) : this.make(create);
    if (!session)
      return entry.reject(new TensorgradError('this build has no text models', 'internal'));
    try {
      const value = await Promise.race([this.build(session, instance), instance.gone]);
      for (const open of this.log.open()) open.reject(new AbortError());
      this.session?.free();
      this.session = session;
      this.snapshot = undefined;
      this.log = new CommandLog(this.every > 0);
      entry.resolve(value);
    } catch (error) {
      if (!(error instanceof Lost)) {
        session.free();
        return entry.reject(error);
      }
      if (this.deadBecause) return entry.reject(this.deadBecause);
      this.queue.unshift(entry); // recovery begins it again
      throw error;
    }
  }

  private async build(session: Session, instance: Instance): Promise<unknown> {
    try {
      return await session.build(instance.place);
    } catch (error) {
      if (await this.isLoss(error, instance)) return new Promise(() => undefined);
      throw error;
    }
  }

  private takeSnapshot(): void {
    const { every, session, log } = this;
    if (every === 0 || !session || this.snapshotting) return;
    if (log.runs < every && log.bytes < mostBytes) return;
    const { instance } = this;
    let asked: Promise<unknown> | undefined;
    let step = 0;
    try {
      step = session.steps();
      asked = session.snapshot();
    } catch {
      return; // the next call finds out what is wrong
    }
    if (!asked) return;
    this.snapshotting = true;
    const mark = log.mark();
    asked
      .then((value) => this.keepSnapshot({ value, step }, mark, log, instance))
      .catch(() => undefined) // the steps since the last one stay in the log
      .finally(() => (this.snapshotting = false));
  }

  private async keepSnapshot(
    snapshot: { value: unknown; step: number },
    mark: number,
    log: CommandLog,
    instance: Instance,
  ): Promise<void> {
    await log.settledBefore(mark);
    if (this.log !== log || this.instance !== instance || log.splits(mark)) return;
    this.snapshot = snapshot;
    log.forget(mark);
  }

  private async recover(message: string, reason: string): Promise<void> {
    if (this.state === 'dead') return;
    const first = this.state === 'running';
    const recovers = this.every > 0 || !this.session;
    this.state = 'recovering';
    this.snapshotting = false;
    this.lossReport = message;
    this.emit({ type: 'devicelost', message, reason });
    if (!recovers || ++this.losses > mostLosses) {
      const hint = recovers ? '' : '\n  hint: with snapshotEvery, the model is restored';
      return this.die(new TensorgradError(`the device was lost: ${message}${hint}`, 'device'));
    }
    if (first) await this.idle();
    try {
      await this.rebuild();
    } catch (error) {
      if (this.deadBecause) return; // it was closed meanwhile
      if (error instanceof Lost) return; // the next loss has its own recovery
      this.die(
        new TensorgradError(
          `the device was lost: ${message}; another one could not be used: ` +
            (error as Error).message,
          'device',
        ),
      );
    }
  }

  // The drain that was under way has noticed the loss.
  private async idle(): Promise<void> {
    while (this.draining) await new Promise((resolve) => setTimeout(resolve, 0));
  }

  private async rebuild(): Promise<void> {
    const instance = await this.openInstance(this.options.device);
    const { session, snapshot } = this;
    let repeated = 0;
    if (session) {
      // When the engine is closed, `gone` ends each of these.
      await Promise.race([this.build(session, instance), instance.gone]);
      await Promise.race([session.restore(snapshot?.value), instance.gone]);
      for (const entry of this.log.all()) {
        if (entry.command.kind === 'run' || entry.command.kind === 'trainStep') ++repeated;
        this.log.issue(entry);
        this.silent = entry.settled > 0;
        const answered = this.answer(entry, session, instance);
        if (this.stopsLater && entry.settled === 0) session.stop?.();
        await Promise.race([answered, instance.gone]);
        this.silent = false;
      }
    }
    this.emit({
      type: 'recovered',
      device: instance.place.device,
      gpu: reportOf(instance.gpu),
      snapshotStep: snapshot?.step ?? 0,
      repeatedSteps: repeated,
    });
    if (this.every === 0) this.log.keepNothing(); // on the CPU, which is not lost
    this.stopsLater = false;
    this.state = 'running';
    void this.drain();
  }

  private die(error: Error): void {
    this.state = 'dead';
    this.deadBecause = error;
    this.instance.end(error.message);
    for (const entry of [...this.log.open(), ...this.queue]) entry.reject(error);
    this.log.clear();
    this.queue = [];
  }
}

function isCreate(command: Command): command is Create {
  return command.kind.startsWith('create');
}
