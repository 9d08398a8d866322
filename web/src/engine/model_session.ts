// A model with its programs.
import { readArrays, withArrays, type HostArrays, type Type } from '../wasm/arrays.js';
import { TensorgradError } from '../wasm/errors.js';
import type { Handle } from '../wasm/library.js';
import { jsonText, type Json, type ProgramRecording } from '../trace/recording.js';
import { buildGraph, buildModel, withProgram } from '../trace/replay.js';
import type {
  Command,
  CreateModel,
  KernelTime,
  ModelCommand,
  Position,
  ProgramId,
  ProgramInfo,
  RunValue,
  StepReport,
} from './protocol.js';
import type { Place, Session } from './session.js';

interface Snapshot {
  readonly parameters: HostArrays;
  readonly optimizer: HostArrays | undefined;
  readonly lr: Json | undefined;
  readonly seed: number | undefined;
  readonly fixed: Readonly<Record<ProgramId, HostArrays>>;
}

export class ModelSession implements Session {
  private place!: Place;
  private model: Handle = 0;
  private readonly programs = new Map<ProgramId, Handle>();
  private readonly attached = new Map<ProgramId, ProgramRecording>();
  private readonly running = new Map<ProgramId, number>(); // runs in flight
  private fixed: Readonly<Record<ProgramId, HostArrays>> = {}; // inputs
  private readonly released = new Set<ProgramId>(); // as soon as they do not run
  private types = new Map<string, Type>(); // of the parameters
  private lr: Json | undefined; // if it was changed
  private seed: number | undefined; // if it was changed

  constructor(private readonly create: CreateModel) {}

  /** Of random ops. */
  private get ownSeed(): number {
    return this.seed ?? (this.create.program.options['seed'] as number | undefined) ?? 0;
  }
  private get trains(): boolean {
    return this.create.program.kind === 'training';
  }

  async build(place: Place): Promise<ProgramInfo> {
    this.place = place;
    this.programs.clear();
    this.running.clear();
    this.model = buildModel(place.lib, this.create.model, true);
    await this.compile(0, this.create.program, this.model);
    const info = this.info(0);
    this.types = new Map(info.parameters.map(({ name, shape }) => [name, { dtype: 'f32', shape }]));
    for (const [id, program] of this.attached) await this.compile(id, program, this.program(0));
    return info;
  }

  private info(id: ProgramId): ProgramInfo {
    return this.place.lib.json('program_info', this.program(id));
  }

  private program(id: ProgramId): Handle {
    const program = this.programs.get(id);
    if (program === undefined) throw new TensorgradError('the program was freed', 'internal');
    return program;
  }

  private async compile(id: ProgramId, recording: ProgramRecording, of: Handle): Promise<void> {
    const { lib, pump, device, threads } = this.place;
    const main = recording.kind !== 'attached';
    const options = main ? { ...recording.options, device, threads } : recording.options;
    const graph = buildGraph(lib, { ...recording, options }, of);
    let before = '';
    const progress = (text: string): void => {
      if (text === before || text === '') return;
      before = text;
      this.place.emit({ type: 'progress', ...(JSON.parse(text) as ProgressJson) });
    };
    const program = await pump.watch(
      lib.need('compile', graph),
      (future) => lib.need('future_program', future),
      progress,
    );
    this.programs.set(id, program);
  }

  slow(command: Command): boolean {
    const { kind } = command;
    if (kind === 'reset') return command.params !== command.optimizer;
    return ['attach', 'load', 'save', 'profile'].includes(kind);
  }

  changes(command: Command): boolean {
    const { kind } = command;
    if (kind === 'run') return command.id === 0 && this.trains;
    return ['setInputs', 'upload', 'reset', 'setLr', 'load'].includes(kind);
  }

  define(command: Command): void {
    if (command.kind === 'attach') this.attached.set(command.id, command.program);
  }

  async issue(command: Command): Promise<unknown> {
    return this.begin(command as ModelCommand);
  }

  private begin(command: ModelCommand): unknown {
    const { lib } = this.place;
    switch (command.kind) {
      case 'attach':
        return this.compile(command.id, command.program, this.program(0)).then(() =>
          this.info(command.id),
        );
      case 'free':
        return this.release(command.id);
      case 'run':
        return this.run(command);
      case 'download':
        return this.download(command.what);
      case 'upload':
        return this.upload(command.params, command.partial);
      case 'reset':
        return this.reset(command);
      case 'setLr':
        this.setLr(command.lr);
        this.lr = command.lr;
        return;
      case 'save':
        return this.save(command);
      case 'load':
        return this.load(command.bytes, command.name);
      case 'show':
        return lib.text('program_show', this.program(command.id), command.stage);
      case 'plan':
        return lib.json('program_plan', this.program(command.id));
      case 'shaders':
        return this.shaders(command.id);
      case 'profile':
        return this.profile(command);
      case 'position':
        return this.position();
      case 'setInputs':
        return this.setInputs(command.id, command.feed);
    }
  }

  private run(command: ModelCommand & { kind: 'run' }): Promise<RunValue> {
    const { id, feed, captures, lr, read } = command;
    const { lib, pump } = this.place;
    const program = this.program(id);
    if (lr !== undefined && lr !== this.lr) {
      this.setLr(lr);
      this.lr = lr;
    }
    const mode = read ? (captures ? 1 : 0) : -1;
    const future = withArrays(lib, feed, (arrays) => lib.need('run', program, arrays, mode));
    this.running.set(id, (this.running.get(id) ?? 0) + 1);
    const done = pump.watch(future, (value): RunValue => {
      if (!read) return { outputs: {}, captures: {} };
      const steps = id === 0 && this.trains;
      const step = steps ? lib.json<StepReport>('future_text', value) : undefined;
      return {
        outputs: readArrays(lib, lib.need('future_arrays', value)),
        captures: captures ? readArrays(lib, lib.call('future_captures', value)) : {},
        ...(step && { step }),
      };
    });
    return done.finally(() => {
      this.running.set(id, this.running.get(id)! - 1);
      if (this.released.has(id)) this.release(id);
    });
  }

  private download(what: string): Promise<HostArrays> {
    const { lib, pump } = this.place;
    return pump.watch(lib.need('download', this.program(0), what), (future) =>
      readArrays(lib, lib.need('future_arrays', future)),
    );
  }

  private upload(params: HostArrays, partial: boolean): void {
    const { lib } = this.place;
    const typed: HostArrays = {};
    for (const [name, array] of Object.entries(params))
      typed[name] = { ...array, shape: this.types.get(name)?.shape ?? [array.values.length] };
    withArrays(lib, typed, (arrays) =>
      lib.need('upload', this.program(0), arrays, partial ? 1 : 0),
    );
  }

  private async reset({ params, optimizer, seed }: ModelCommand & { kind: 'reset' }) {
    const { lib } = this.place;
    const reset = (options: object): void => {
      lib.need('reset', this.program(0), jsonText(options));
    };
    if (seed !== undefined) this.seed = seed;
    const seeded = seed === undefined ? {} : { seed };
    if (params && optimizer) return reset(seeded);
    if (optimizer) return reset({ optimizer: true });
    if (!params) return;
    // The initial parameters with the optimizer's state of now.
    const state = await this.download('optimizer');
    reset(seeded);
    await this.restoreArrays(await this.download('parameters'), state);
  }

  private setInputs(id: ProgramId, feed: HostArrays): void {
    const { lib } = this.place;
    withArrays(lib, feed, (values) => lib.need('set_inputs', this.program(id), values));
    this.fixed = { ...this.fixed, [id]: { ...this.fixed[id], ...feed } };
  }

  private setLr(lr: Json): void {
    this.place.lib.need('set_lr', this.program(0), jsonText(lr));
  }

  private async restoreArrays(parameters: HostArrays, optimizer: HostArrays): Promise<void> {
    const { lib, pump } = this.place;
    const future = withArrays(lib, parameters, (params) =>
      withArrays(lib, optimizer, (state) => lib.need('restore', this.program(0), params, state)),
    );
    await pump.watch(future, () => undefined);
  }

  // The steps of a profile train: what they change is put back.
  private async profile({ id, steps, feed }: ModelCommand & { kind: 'profile' }) {
    const { lib, pump } = this.place;
    const known = { ...this.fixed[id], ...feed };
    const missing = this.info(id).inputs.find(({ name }) => !(name in known));
    if (missing)
      throw new TensorgradError(
        `profile: input '${missing.name}' is missing\n` +
          `  hint: profile({ inputs: { ${missing.name} } }), or setInputs() before`,
      );
    const updates = id === 0 && this.trains;
    const before =
      updates && Promise.all([this.download('parameters'), this.download('optimizer')]);
    const times = withArrays(lib, feed, (arrays) =>
      pump.watch(lib.need('profile', this.program(id), arrays, steps), (future) =>
        lib.json<KernelTime[]>('future_text', future),
      ),
    );
    try {
      return await times;
    } finally {
      if (before) await this.restoreArrays(...(await before));
    }
  }

  private async shaders(id: ProgramId): Promise<string> {
    const lib = await this.place.shaderLibrary();
    const recording = id === 0 ? this.create.program : this.attached.get(id)!;
    return withProgram(lib, this.create.model, recording, 'wgsl', (program) =>
      lib.text('program_show', program, 'emit'),
    );
  }

  private async save({ info, optimizer }: ModelCommand & { kind: 'save' }) {
    const { lib } = this.place;
    const parameters = this.download('parameters');
    const state = optimizer && this.trains ? this.download('optimizer') : Promise.resolve({});
    const steps = this.trains ? { step: this.steps() } : {};
    const text = jsonText({ ...steps, seed: this.ownSeed, ...info });
    const [values, arrays] = await Promise.all([parameters, state]);
    return withArrays(lib, values, (params) =>
      withArrays(lib, arrays, (optimizerState) => {
        const checkpoint = lib.need('checkpoint_new', params, optimizerState, text);
        try {
          return lib.takeBytes(lib.need('checkpoint_save', checkpoint));
        } finally {
          lib.call('checkpoint_free', checkpoint);
        }
      }),
    );
  }

  private async load(bytes: Uint8Array, name: string): Promise<unknown> {
    const { lib, pump } = this.place;
    const checkpoint = lib.withBytes(bytes, (pointer, size) =>
      lib.need('checkpoint_load', pointer, size, name),
    );
    try {
      const parameters = lib.need('checkpoint_parameters', checkpoint);
      const optimizer = lib.need('checkpoint_optimizer', checkpoint);
      const info = lib.json<{ seed: number }>('checkpoint_info', checkpoint);
      if (!this.trains || lib.call('arrays_count', optimizer) === 0) {
        lib.need('upload', this.program(0), parameters, 0);
        return info;
      }
      const restore = (): Promise<void> =>
        pump.watch(
          lib.need('restore', this.program(0), parameters, optimizer),
          () => undefined,
        );
      await restore(); // an error leaves everything as it was
      if (info.seed !== this.ownSeed) {
        lib.need('reset', this.program(0), jsonText({ seed: info.seed }));
        this.seed = info.seed;
        await restore();
      }
      return info;
    } finally {
      lib.call('checkpoint_free', checkpoint);
    }
  }

  private release(id: ProgramId): void {
    const program = this.programs.get(id);
    if (program === undefined) return;
    if ((this.running.get(id) ?? 0) > 0) {
      this.released.add(id);
      return;
    }
    this.freeProgram(id, program);
  }

  private freeProgram(id: ProgramId, program: Handle): void {
    this.released.delete(id);
    this.running.delete(id);
    this.attached.delete(id);
    this.programs.delete(id);
    this.place.lib.call('program_free', program);
  }

  private position(): Position {
    if (!this.trains) return { steps: 0, updates: 0 };
    const { lib } = this.place;
    return {
      steps: lib.index('steps', this.program(0)) + 1,
      updates: lib.index('updates', this.program(0)) + 1,
    };
  }

  steps(): number {
    return this.trains ? this.place.lib.index('steps', this.program(0)) : 0;
  }

  snapshot(): Promise<Snapshot> {
    const { lr, seed, fixed } = this;
    const optimizer = this.trains ? this.download('optimizer') : undefined;
    return Promise.all([this.download('parameters'), optimizer]).then(
      ([parameters, state]): Snapshot => ({ parameters, optimizer: state, lr, seed, fixed }),
    );
  }

  async restore(snapshot: unknown): Promise<void> {
    const { parameters, optimizer, lr, seed, fixed } = (snapshot ?? {}) as Partial<Snapshot>;
    this.lr = lr;
    this.seed = seed;
    this.fixed = {};
    for (const [id, feed] of Object.entries(fixed ?? {}))
      if (this.programs.has(Number(id))) this.setInputs(Number(id), feed);
    if (!parameters) return;
    if (seed !== undefined) this.place.lib.need('reset', this.program(0), jsonText({ seed }));
    if (lr !== undefined) this.setLr(lr);
    if (optimizer) await this.restoreArrays(parameters, optimizer);
    else this.upload(parameters, false);
  }

  free(): void {
    for (const [id, program] of [...this.programs].reverse()) this.freeProgram(id, program);
    if (this.model !== 0) this.place.lib.call('model_free', this.model);
    this.model = 0;
  }
}

interface ProgressJson {
  work: string;
  done: number;
  total: number;
}
