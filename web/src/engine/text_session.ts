// Language models on text in an engine: training and generation.
import { TensorgradError } from '../wasm/errors.js';
import { jsonText, type Json, type JsonObject } from '../trace/recording.js';
import type { Handle, Library } from '../wasm/library.js';
import { valueNow } from '../trace/replay.js';
import type {
  Command,
  Create,
  CreateGenerator,
  CreateTrainer,
  KernelTime,
  TextCommand,
} from './protocol.js';
import type { Place, Session } from './session.js';

export function makeTextSession(create: Create): Session | undefined {
  if (create.kind === 'createTrainer') return new TrainerSession(create);
  if (create.kind === 'createGenerator') return new GeneratorSession(create);
  return undefined;
}

type Generate = TextCommand & { kind: 'generate' };

abstract class TextSession implements Session {
  protected place!: Place;
  protected handle: Handle = 0;
  private stopped = false;
  private readonly ends = new WeakMap<Generate, number>(); // of texts that were stopped

  /** What the library calls it. */
  protected abstract readonly kind: 'trainer' | 'generator';

  abstract build(place: Place): Promise<unknown>;
  protected abstract begin(command: TextCommand): unknown;
  abstract changes(command: Command): boolean;
  abstract snapshot(): Promise<unknown> | undefined;
  abstract restore(snapshot: unknown): Promise<void>;
  abstract steps(): number;
  abstract free(): void;

  async issue(command: Command): Promise<unknown> {
    return this.begin(command as TextCommand);
  }
  slow(_command: Command): boolean {
    return true;
  }
  define(_command: Command): void {}

  /** The JSON text of a future. */
  protected value<T>(name: string, ...args: (number | string | bigint)[]): Promise<T> {
    const { lib, pump } = this.place;
    return pump.watch(lib.need(name, this.handle, ...args), (future) =>
      lib.json<T>('future_text', future),
    );
  }
  /** Text that a model writes, piece by piece. A repetition ends where the first time was stopped. */
  protected async write(command: Generate): Promise<string> {
    const { lib, pump } = this.place;
    const end = this.ends.get(command) ?? Infinity;
    let offset = 0;
    this.stopped = false;
    const pieces = (): void => {
      const piece = lib.json<string>(`${this.kind}_pieces`, this.handle);
      if (piece !== '') this.place.emit({ type: 'text', piece, offset });
      offset += piece.length;
      if (offset >= end) this.stop();
    };
    const options = jsonText(command.options);
    const future = lib.need(`${this.kind}_generate`, this.handle, command.prompt, options);
    pump.afterPoll = pieces;
    try {
      const text = await pump.watch(future, (value) => {
        pieces();
        return lib.json<string>('future_text', value);
      });
      if (this.stopped) this.ends.set(command, text.length);
      return text;
    } finally {
      pump.afterPoll = undefined;
    }
  }

  stop(): void {
    if (this.stopped) return;
    this.stopped = true;
    this.place.lib.need(`${this.kind}_stop`, this.handle);
  }

  protected progress(): (text: string) => void {
    let before = '';
    return (text) => {
      if (text === before || text === '') return;
      before = text;
      const { work, done, total } = JSON.parse(text) as {
        work: string;
        done: number;
        total: number;
      };
      this.place.emit({ type: 'progress', work, done, total });
    };
  }

  protected refuse(command: TextCommand): never {
    throw new TensorgradError(`a text model does not know '${command.kind}'`, 'internal');
  }
}

interface TrainerSnapshot {
  readonly checkpoint: Uint8Array<ArrayBuffer>;
  readonly lr: Json | undefined;
}

class TrainerSession extends TextSession {
  protected readonly kind = 'trainer';
  private lr: Json | undefined; // if it was changed

  constructor(private readonly create: CreateTrainer) {
    super();
  }

  async build(place: Place): Promise<unknown> {
    this.place = place;
    const { lib, pump, device } = place;
    this.handle = await pump.watch(
      this.begun(lib, device),
      (made) => lib.need('future_trainer', made),
      this.progress(),
    );
    return lib.json('trainer_info', this.handle);
  }

  // The future of a trainer.
  private begun(lib: Library, device: string, other: JsonObject = {}): Handle {
    const { tokenizer, text, options } = this.create;
    const { threads } = this.place;
    const training = { ...(options['training'] as object), device, threads };
    const json = jsonText({ ...options, ...other, training });
    const own = lib.need('tokenizer_from_json', tokenizer);
    try {
      return lib.withBytes(text, (pointer, size) =>
        lib.need('trainer_new', own, pointer, size, json),
      );
    } finally {
      lib.call('tokenizer_free', own);
    }
  }

  changes(command: Command): boolean {
    return ['trainStep', 'setLr', 'restoreCheckpoint'].includes(command.kind);
  }
  override slow(command: Command): boolean {
    return !['trainStep', 'setLr'].includes(command.kind); // these keep their order by themselves
  }

  protected begin(command: TextCommand): unknown {
    switch (command.kind) {
      case 'trainStep':
        return this.value('trainer_step');
      case 'setLr':
        return this.setLr(command.lr);
      case 'validate':
        return this.value('trainer_validate', BigInt(command.tokens));
      case 'checkpoint':
        return this.save();
      case 'restoreCheckpoint':
        return this.load(command.bytes);
      case 'generate':
        return this.write(command);
      case 'show':
        return this.place.lib.text('trainer_show', this.handle, command.stage);
      case 'plan':
        return this.place.lib.json('trainer_plan', this.handle);
      case 'shaders':
        return this.shaders();
      case 'profile':
        return this.profile(command.steps);
      default:
        return this.refuse(command);
    }
  }

  // The steps of a profile train: what they change is put back.
  private async profile(steps: number): Promise<KernelTime[]> {
    const { lib } = this.place;
    const taken = this.take();
    const times = this.value<KernelTime[]>('trainer_profile', steps);
    taken.catch(() => undefined); // the profile has the same error
    try {
      return await times;
    } finally {
      const checkpoint = await taken;
      try {
        await this.putBack(checkpoint);
      } finally {
        lib.call('checkpoint_free', checkpoint);
      }
    }
  }

  private async shaders(): Promise<string> {
    const lib = await this.place.shaderLibrary();
    const trainer = valueNow(lib, this.begun(lib, 'wgsl', { validation: 0 }), (future) =>
      lib.need('future_trainer', future),
    );
    try {
      return lib.text('trainer_show', trainer, 'emit');
    } finally {
      lib.call('trainer_free', trainer);
    }
  }

  private setLr(lr: Json): void {
    this.place.lib.need('trainer_set_lr', this.handle, jsonText(lr));
    this.lr = lr;
  }

  /** A checkpoint, which the caller frees. */
  private take(): Promise<Handle> {
    const { lib, pump } = this.place;
    return pump.watch(lib.need('trainer_checkpoint', this.handle), (future) =>
      lib.need('future_checkpoint', future),
    );
  }

  private async putBack(checkpoint: Handle): Promise<void> {
    const { lib, pump } = this.place;
    await pump.watch(lib.need('trainer_restore', this.handle, checkpoint), () => undefined);
  }

  private async save(): Promise<Uint8Array<ArrayBuffer>> {
    const { lib } = this.place;
    const checkpoint = await this.take();
    try {
      return lib.takeBytes(lib.need('checkpoint_save', checkpoint));
    } finally {
      lib.call('checkpoint_free', checkpoint);
    }
  }

  private async load(bytes: Uint8Array): Promise<void> {
    const { lib } = this.place;
    const checkpoint = lib.withBytes(bytes, (pointer, size) =>
      lib.need('checkpoint_load', pointer, size, 'checkpoint'),
    );
    try {
      await this.putBack(checkpoint);
    } finally {
      lib.call('checkpoint_free', checkpoint);
    }
  }

  async snapshot(): Promise<TrainerSnapshot> {
    const { lr } = this;
    return { checkpoint: await this.save(), lr };
  }

  async restore(snapshot: unknown): Promise<void> {
    const { checkpoint, lr } = (snapshot ?? {}) as Partial<TrainerSnapshot>;
    this.lr = undefined;
    if (lr !== undefined) this.setLr(lr); // before load(), which restores where a schedule started
    if (checkpoint) await this.load(checkpoint);
  }

  steps(): number {
    return this.place.lib.json<{ steps: number }>('trainer_info', this.handle).steps;
  }

  free(): void {
    if (this.handle !== 0) this.place.lib.call('trainer_free', this.handle);
    this.handle = 0;
  }
}

class GeneratorSession extends TextSession {
  protected readonly kind = 'generator';

  constructor(private readonly create: CreateGenerator) {
    super();
  }

  async build(place: Place): Promise<unknown> {
    this.place = place;
    const { lib, pump, device, threads } = place;
    const { checkpoint: bytes, options } = this.create;
    const checkpoint = lib.withBytes(bytes, (pointer, size) =>
      lib.need('checkpoint_load', pointer, size, 'checkpoint'),
    );
    try {
      const json = jsonText({ ...options, device, threads });
      this.handle = await pump.watch(
        lib.need('generator_new', checkpoint, json),
        (made) => lib.need('future_generator', made),
        this.progress(),
      );
    } finally {
      lib.call('checkpoint_free', checkpoint);
    }
    return lib.json('generator_info', this.handle);
  }

  forgets(command: Command): boolean {
    return command.kind === 'forget';
  }
  // What was read and written is the state: recovery reads and writes it again.
  changes(command: Command): boolean {
    return command.kind === 'generate' || command.kind === 'forget';
  }

  protected begin(command: TextCommand): unknown {
    const { lib } = this.place;
    if (command.kind === 'forget') return void lib.need('generator_forget', this.handle);
    if (command.kind !== 'generate') return this.refuse(command);
    return this.write(command);
  }

  snapshot(): undefined {
    return undefined;
  }
  async restore(): Promise<void> {}
  steps(): number {
    return 0;
  }

  free(): void {
    if (this.handle !== 0) this.place.lib.call('generator_free', this.handle);
    this.handle = 0;
  }
}
