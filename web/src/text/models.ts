// Language models on text: training, and writing with a trained one.
import type { Channel } from '../engine/channel.js';
import type { Counts, EngineEvent, KernelTime, PlannedKernel } from '../engine/protocol.js';
import { siteOf } from '../trace/site.js';
import { TensorgradError } from '../wasm/errors.js';
import { callUser, EngineHandle, guarded, located, look, progressOf } from '../compile/handle.js';
import { openChannel } from '../compile/open.js';
import { rateOf, type Schedule } from '../compile/rates.js';
import type { NotCompleted, RunOptions } from '../compile/specs.js';
import {
  camelKeys,
  snake,
  type GenerateOptions,
  type TextModelConfig,
  type TextTrainingOptions,
} from './options.js';
import { Tokenizer } from './tokenizer.js';

export interface TextTrainerSpec extends RunOptions {
  text: string;
  tokenizer: Tokenizer;
  model?: TextModelConfig;
  training?: TextTrainingOptions;
  /** The part of the text that is kept for validation. Default: 0.1. */
  validation?: number;
}

export type TextStepResult =
  | {
      kind: 'completed';
      step: number;
      loss: number;
      gradNorm: number;
      lr: number;
      deviceLost?: string;
    }
  | NotCompleted;

export interface Validation {
  /** The mean loss per token. */
  loss: number;
  perplexity: number;
  bitsPerByte: number;
}

/** Receives each piece of text as it is written. */
export type OnText = (piece: string) => void;

// Hands the pieces of texts to those who asked, in the order of their calls.
class Writers {
  private readonly open: { onText: OnText | undefined; seen: number }[] = [];

  piece(event: EngineEvent): void {
    const writer = this.open[0];
    if (event.type !== 'text' || !writer) return;
    // After a lost device, the text comes again from its start.
    const fresh = event.piece.slice(Math.max(0, writer.seen - event.offset));
    if (fresh === '') return;
    writer.seen = event.offset + event.piece.length;
    callUser(() => writer.onText?.(fresh));
  }

  async write(onText: OnText | undefined, body: () => Promise<unknown>): Promise<string> {
    const writer = { onText, seen: 0 };
    this.open.push(writer);
    try {
      return (await body()) as string;
    } finally {
      this.open.splice(this.open.indexOf(writer), 1);
    }
  }
}

interface Opening<T> {
  readonly options: RunOptions;
  readonly make: (channel: Channel, info: unknown) => T;
}

abstract class TextHandle extends EngineHandle {
  protected readonly writers = new Writers();

  constructor(
    protected readonly channel: Channel,
    protected readonly info: Record<string, unknown>,
  ) {
    super();
  }

  /** Opens an engine and makes a handle of what it created. */
  protected static async open<T extends TextHandle>(
    { options, make }: Opening<T>,
    create: Parameters<Channel['request']>[0],
  ): Promise<T> {
    let handle: T | undefined;
    const channel = await openChannel(options, (event) => {
      if (handle) {
        handle.receive(event, options.onProgress);
        handle.writers.piece(event);
      } else progressOf(event, options.onProgress);
    });
    try {
      handle = make(channel, await channel.request(create));
      return handle;
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  /** The sizes of the model. */
  get config(): TextModelConfig & { vocab: number } {
    return camelKeys(this.info['config'] as object) as unknown as TextModelConfig & {
      vocab: number;
    };
  }

  /** Text that the model writes after the prompt. */
  generate(prompt: string, options: GenerateOptions = {}, onText?: OnText): Promise<string> {
    return located(siteOf(this.generate), () =>
      this.writers.write(onText, () =>
        this.channel.request({ kind: 'generate', prompt, options: snake(options) }),
      ),
    );
  }
  /** Ends a text that is being written: its promise has what was written so far. */
  stop(): void {
    this.channel.stop();
  }
  destroy(): void {
    this.channel.close();
  }
}

/** A language model in training. */
export class TextTrainer extends TextHandle {
  static create(spec: TextTrainerSpec): Promise<TextTrainer> {
    return located(siteOf(TextTrainer.create), () => TextTrainer.begin(spec));
  }
  private static async begin(spec: TextTrainerSpec): Promise<TextTrainer> {
    const { text, tokenizer, model = {}, training = {}, validation, without } = spec;
    const options = snake({
      model: snake(model),
      training: { ...snake(training), ...(without && { without: [...without] }) },
      validation,
    });
    return TextHandle.open(
      {
        options: spec,
        make: (channel, info) => new TextTrainer(channel, info as Record<string, unknown>),
      },
      {
        kind: 'createTrainer',
        tokenizer: tokenizer.toJSON(),
        text: new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>,
        options,
      },
    );
  }

  /** The number of parameters. */
  get parameterCount(): number {
    return this.info['parameters'] as number;
  }

  /** The work and the memory of a step. */
  get counts(): Counts {
    return this.info['counts'] as Counts;
  }

  /** One step. It never rejects. */
  step(): Promise<TextStepResult> {
    return guarded(siteOf(this.step), async () => {
      const report = (await this.channel.request({ kind: 'trainStep' })) as {
        step: number;
        loss: number | null;
        grad_norm: number | null;
        lr: number;
        deviceLost?: string;
      };
      const { grad_norm, loss, ...rest } = report;
      return {
        kind: 'completed' as const,
        ...rest,
        loss: loss ?? NaN,
        gradNorm: grad_norm ?? NaN,
      };
    });
  }

  /**
   * Sets the learning rate of all later steps. A schedule starts with the next step. Checkpoints do
   * not contain it: call setLR() and then load() to continue such a run.
   */
  setLR(lr: number | Schedule): Promise<void> {
    return located(siteOf(this.setLR), async () => {
      const rate = rateOf(lr);
      if (!('json' in rate))
        throw new TensorgradError(
          'setLR: a text model takes a number, or a schedule that the library computes\n' +
            '  hint: no function and no startStep, and a warmup whose peak is that of `after`',
        );
      await this.channel.request({ kind: 'setLr', lr: rate.json });
    });
  }

  /** The loss over the validation part, or over its first `tokens`. */
  validate(tokens = 0): Promise<Validation> {
    return located(siteOf(this.validate), async () => {
      type Found = Record<'loss' | 'perplexity' | 'bits_per_byte', number | null>;
      const found = (await this.channel.request({ kind: 'validate', tokens })) as Found;
      return {
        loss: found.loss ?? NaN,
        perplexity: found.perplexity ?? NaN,
        bitsPerByte: found.bits_per_byte ?? NaN,
      };
    });
  }

  /** What a stage of the compiler made of a step: 'plan', 'emit', ... */
  show(stage: string): Promise<string> {
    return located(siteOf(this.show), () => look(this.channel, { kind: 'show', id: 0, stage }));
  }
  /** The kernels of a step, in order, with the memory that they write. */
  plan(): Promise<PlannedKernel[]> {
    return located(siteOf(this.plan), () => look(this.channel, { kind: 'plan', id: 0 }));
  }
  /** The shaders for a GPU without special features: also where there is no GPU. */
  shaders(): Promise<string> {
    return located(siteOf(this.shaders), () => look(this.channel, { kind: 'shaders', id: 0 }));
  }
  /** Measures each kernel of a step, alone. The steps that it makes are undone. */
  profile({ steps = 10 }: { steps?: number } = {}): Promise<KernelTime[]> {
    return located(siteOf(this.profile), () =>
      look(this.channel, { kind: 'profile', id: 0, steps, feed: {} }),
    );
  }

  /** A checkpoint as bytes: the command line tool reads it, and a TextGenerator. */
  save(): Promise<Uint8Array<ArrayBuffer>> {
    return located(siteOf(this.save), async () => {
      return (await this.channel.request({ kind: 'checkpoint' })) as Uint8Array<ArrayBuffer>;
    });
  }
  /** Continues exactly like the trainer that wrote the checkpoint. */
  load(checkpoint: ArrayBuffer | Uint8Array): Promise<void> {
    return located(siteOf(this.load), async () => {
      const bytes = copyOf(checkpoint);
      await this.channel.request({ kind: 'restoreCheckpoint', bytes }, [bytes.buffer]);
    });
  }
}

export interface TextGeneratorOptions extends Omit<RunOptions, 'precision'> {
  /** How many tokens attention remembers. Default: the context of the model. */
  capacity?: number;
}

/** A trained language model that writes. It continues after what it has read and written before. */
export class TextGenerator extends TextHandle {
  static create(
    checkpoint: ArrayBuffer | Uint8Array,
    options: TextGeneratorOptions = {},
  ): Promise<TextGenerator> {
    const { capacity, without } = options;
    return located(siteOf(TextGenerator.create), () =>
      TextHandle.open(
        {
          options,
          make: (channel, info) => new TextGenerator(channel, info as Record<string, unknown>),
        },
        {
          kind: 'createGenerator',
          checkpoint: copyOf(checkpoint),
          options: snake({ capacity, without: without && [...without] }),
        },
      ),
    );
  }

  /** Clears what the model has read: the next token is the first one. */
  forget(): Promise<void> {
    return located(siteOf(this.forget), async () => {
      await this.channel.request({ kind: 'forget' });
    });
  }
}

function copyOf(file: ArrayBuffer | Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(file instanceof Uint8Array ? file : file.slice(0));
}
