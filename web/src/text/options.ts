// Options of text models, with the names of JavaScript.
import type { Json, JsonObject } from '../trace/recording.js';

/** The kind and the sizes of a language model. Defaults are in the reference of the library. */
export interface TextModelConfig {
  kind?: 'gpt' | 'mamba' | 'mamba2' | 'hybrid';
  dim?: number;
  /** How many tokens the model sees. */
  context?: number;
  layers?: number;
  heads?: number;
  groups?: number;
  biases?: boolean;
  activation?: 'gelu' | 'gelu_tanh' | 'relu' | 'silu' | 'tanh';
  state?: number;
  dtRank?: number;
  conv?: number;
  expand?: number;
  headSize?: number;
  chunk?: number;
  stateGroups?: number;
  discretisation?: 'euler' | 'zoh';
  /** hybrid: a word per layer, 'mamba mamba attention'. */
  schedule?: string;
  eps?: number;
  positions?: 'learned' | 'rotary';
  ropeBase?: number;
  norm?: 'layer' | 'rms';
  embeddingStd?: number;
}

export interface TextTrainingOptions {
  /** Sequences per step. Default: 8. */
  batch?: number;
  /** The learning rate is planned for this many steps. Default: 1000. */
  steps?: number;
  /** The peak of the learning rate. Default: 0.003. */
  lr?: number;
  warmup?: number;
  lrSchedule?: 'cosine' | 'linear' | 'constant';
  lastLrShare?: number;
  weightDecay?: number;
  clipGradNorm?: number;
  accumulate?: number;
  seed?: number;
}

export interface GenerateOptions {
  /** How many tokens at most. Default: 200. */
  tokens?: number;
  /** 0: always the most likely token. Default: 0.8. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  seed?: number;
  /** Stops before any of these texts. */
  stop?: readonly string[];
}

/** { topK: 5 } -> { top_k: 5 } */
export function snake(options: object): JsonObject {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value as Json,
    ]),
  );
}

/** { dt_rank: 8 } -> { dtRank: 8 } */
export function camelKeys(options: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );
}
