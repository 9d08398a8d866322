// Language models on text in an engine: training and generation.
import { TensorgradError } from '../wasm/errors.js';
import type { Handle } from '../wasm/library.js';
import type { Command, Create, CreateGenerator, CreateTrainer, TextCommand } from './protocol.js';
import type { Place, Session } from './session.js';

export function makeTextSession(create: Create): Session | undefined {
  if (create.kind === 'createTrainer') return new TrainerSession(create);
  if (create.kind === 'createGenerator') return new GeneratorSession(create);
  return undefined;
}

abstract class TextSession implements Session {
  protected place!: Place;
  protected handle: Handle = 0;

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
  /** Text that a model writes, piece by piece. `of`: "trainer" or "generator". */
  protected async write(of: string, prompt: string, options: unknown): Promise<string> {
    const { lib, pump } = this.place;
    let offset = 0;
    const pieces = (): void => {
      const piece = lib.text(`${of}_pieces`, this.handle);
      if (piece === '') return;
      this.place.emit({ type: 'text', piece, offset });
      offset += piece.length;
    };
    const future = lib.need(`${of}_generate`, this.handle, prompt, JSON.stringify(options));
    pump.afterPoll = pieces;
    try {
      return await pump.watch(future, (value) => {
        pieces();
        return lib.text('future_text', value);
      });
    } finally {
      pump.afterPoll = undefined;
    }
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
    throw new TensorgradError(`this session does not know '${command.kind}'`, 'internal');
  }
}

class TrainerSession extends TextSession {
  constructor(private readonly create: CreateTrainer) {
    super();
  }

  async build(place: Place): Promise<unknown> {
    this.place = place;
    const { lib, pump, device, threads } = place;
    const { tokenizer, text, options } = this.create;
    const training = { ...(options['training'] as object), device, threads };
    const json = JSON.stringify({ ...options, training });
    const own = lib.need('tokenizer_from_json', tokenizer);
    try {
      const future = lib.withBytes(text, (pointer, size) =>
        lib.need('trainer_new', own, pointer, size, json),
      );
      this.handle = await pump.watch(
        future,
        (made) => lib.need('future_trainer', made),
        this.progress(),
      );
    } finally {
      lib.call('tokenizer_free', own);
    }
    return lib.json('trainer_info', this.handle);
  }

  changes(command: Command): boolean {
    return command.kind === 'trainStep' || command.kind === 'restoreCheckpoint';
  }
  override slow(command: Command): boolean {
    return command.kind !== 'trainStep'; // steps keep their order by themselves
  }

  protected begin(command: TextCommand): unknown {
    switch (command.kind) {
      case 'trainStep':
        return this.value('trainer_step');
      case 'validate':
        return this.value('trainer_validate', BigInt(command.tokens));
      case 'checkpoint':
        return this.snapshot();
      case 'restoreCheckpoint':
        return this.restore(command.bytes);
      case 'generate':
        return this.write('trainer', command.prompt, command.options);
      default:
        return this.refuse(command);
    }
  }

  snapshot(): Promise<Uint8Array<ArrayBuffer>> {
    const { lib, pump } = this.place;
    return pump.watch(lib.need('trainer_checkpoint', this.handle), (future) => {
      const checkpoint = lib.need('future_checkpoint', future);
      try {
        return lib.takeBytes(lib.need('checkpoint_save', checkpoint));
      } finally {
        lib.call('checkpoint_free', checkpoint);
      }
    });
  }

  async restore(snapshot: unknown): Promise<void> {
    if (snapshot === undefined) return;
    const { lib, pump } = this.place;
    const checkpoint = lib.withBytes(snapshot as Uint8Array, (pointer, size) =>
      lib.need('checkpoint_load', pointer, size, 'checkpoint'),
    );
    try {
      const future = lib.need('trainer_restore', this.handle, checkpoint);
      await pump.watch(future, () => undefined);
    } finally {
      lib.call('checkpoint_free', checkpoint);
    }
  }

  steps(): number {
    return this.place.lib.json<{ steps: number }>('trainer_info', this.handle).steps;
  }

  stop(): void {
    this.place.lib.need('trainer_stop', this.handle);
  }

  free(): void {
    if (this.handle !== 0) this.place.lib.call('trainer_free', this.handle);
    this.handle = 0;
  }
}

class GeneratorSession extends TextSession {
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
      const json = JSON.stringify({ ...options, device, threads });
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

  // What was read and written is the state: recovery reads and writes it again.
  changes(command: Command): boolean {
    return command.kind === 'generate' || command.kind === 'forget';
  }

  protected begin(command: TextCommand): unknown {
    const { lib } = this.place;
    if (command.kind === 'forget') return void lib.need('generator_forget', this.handle);
    if (command.kind !== 'generate') return this.refuse(command);
    return this.write('generator', command.prompt, command.options);
  }

  snapshot(): undefined {
    return undefined;
  }
  async restore(): Promise<void> {}
  steps(): number {
    return 0;
  }
  stop(): void {
    this.place.lib.need('generator_stop', this.handle);
  }

  free(): void {
    if (this.handle !== 0) this.place.lib.call('generator_free', this.handle);
    this.handle = 0;
  }
}
