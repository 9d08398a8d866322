// The initial values of parameters, as data.
import type { JsonObject } from '../trace/recording.js';

/** How a parameter starts. Random values depend on the seed and on the name of the parameter. */
export type InitSpec =
  | { readonly kind: 'zeros' }
  | { readonly kind: 'ones' }
  | { readonly kind: 'constant'; readonly value: number }
  | { readonly kind: 'randn'; readonly scale: number }
  | { readonly kind: 'uniform'; readonly low: number; readonly high: number }
  | { readonly kind: 'kaiming'; readonly gain?: number }
  | { readonly kind: 'kaimingUniform'; readonly gain?: number }
  | { readonly kind: 'xavier'; readonly gain?: number }
  | { readonly kind: 'literal'; readonly data: Float32Array };

export const init = {
  /** Normal with this standard deviation. */
  randn: ({ scale = 0.02 }: { scale?: number } = {}): InitSpec => ({ kind: 'randn', scale }),
  zeros: (): InitSpec => ({ kind: 'zeros' }),
  ones: (): InitSpec => ({ kind: 'ones' }),
  /** One value everywhere. */
  constant: (value: number): InitSpec => ({ kind: 'constant', value }),
  /** Uniform from low to high. */
  uniform: (low: number, high: number): InitSpec => ({ kind: 'uniform', low, high }),
  /** Normal with standard deviation gain / sqrt(inputs). The default gain suits relu. */
  kaiming: (options: { gain?: number } = {}): InitSpec => ({ kind: 'kaiming', ...options }),
  /** Uniform in +-gain / sqrt(inputs). */
  kaimingUniform: (options: { gain?: number } = {}): InitSpec => ({
    kind: 'kaimingUniform',
    ...options,
  }),
  /** Uniform in +-gain * sqrt(6 / (inputs + outputs)). */
  xavier: (options: { gain?: number } = {}): InitSpec => ({ kind: 'xavier', ...options }),
  /** These values, row by row. */
  literal: (data: Float32Array): InitSpec => ({ kind: 'literal', data }),
};

/** The names of version 0.0.12. */
export type InitWord = 'zeros' | 'ones' | 'randn';

export function initSpec(init: InitSpec | InitWord | undefined): InitSpec {
  if (init === undefined || init === 'randn') return { kind: 'randn', scale: 0.02 };
  return typeof init === 'string' ? { kind: init } : init;
}

/** The specification as the library reads it. */
export function initJson(spec: InitSpec): JsonObject {
  switch (spec.kind) {
    case 'randn':
      return { kind: 'normal', deviation: spec.scale };
    case 'kaimingUniform':
      return { ...spec, kind: 'kaiming_uniform' };
    case 'literal':
      return { kind: 'literal' };
    default:
      return spec;
  }
}
