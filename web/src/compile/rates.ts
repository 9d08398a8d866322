// Learning rates: numbers, schedules as data, and functions of the update number.
import { TensorgradError } from '../wasm/errors.js';
import type { Json } from '../trace/recording.js';

/** The learning rate of each update; updates count from 1. */
export type LR = number | Schedule | ((update: number) => number);

/**
 * A schedule. Without `startStep` it starts with the first update, or with the next one in setLR.
 */
export type Schedule =
  | {
      readonly kind: 'linear';
      readonly peak: number;
      readonly final: number;
      readonly steps: number;
      readonly startStep?: number;
    }
  | {
      readonly kind: 'cosineAnnealing';
      readonly peak: number;
      readonly final: number;
      readonly steps: number;
      readonly startStep?: number;
    }
  | {
      readonly kind: 'warmup';
      readonly peak: number;
      readonly steps: number;
      readonly after: LR;
      readonly startStep?: number;
    }
  | {
      readonly kind: 'staircase';
      readonly peak: number;
      readonly every: number;
      readonly gamma: number;
      readonly startStep?: number;
    }
  | {
      readonly kind: 'multiStep';
      readonly peak: number;
      readonly milestones: readonly number[];
      readonly gamma: number;
      readonly startStep?: number;
    };

interface Span {
  peak: number;
  final: number;
  steps: number;
  startStep?: number;
}

export const lr = {
  /** From peak at the first update to final after `steps` updates, in a straight line. */
  linear: (options: Span): Schedule => ({ kind: 'linear', ...options }),
  /** From peak to final along half a cosine. */
  cosineAnnealing: (options: Span): Schedule => ({ kind: 'cosineAnnealing', ...options }),
  /** Rises in a straight line to peak over `steps` updates, then goes on with `after`. */
  warmup: (options: { peak: number; steps: number; after: LR; startStep?: number }): Schedule => ({
    kind: 'warmup',
    ...options,
  }),
  /** Multiplies the rate by gamma every `every` updates. */
  staircase: (options: {
    peak: number;
    every: number;
    gamma: number;
    startStep?: number;
  }): Schedule => ({
    kind: 'staircase',
    ...options,
  }),
  /** Multiplies the rate by gamma after each of these updates. */
  multiStep: (options: {
    peak: number;
    milestones: readonly number[];
    gamma: number;
    startStep?: number;
  }): Schedule => ({ kind: 'multiStep', ...options }),
};

/** A rate that the library computes, or a function that is called before each step. */
export type Rate = { readonly json: Json } | { readonly at: (update: number) => number };

/** Throws if it is no rate. */
export function checkRate(rate: unknown, where = ''): number {
  if (typeof rate === 'number' && Number.isFinite(rate) && rate >= 0) return rate;
  throw new TensorgradError(
    `lr: a rate must be a finite number that is not negative: ${String(rate)}${where}`,
  );
}

/** A schedule that JavaScript computes, from the first update that asks for its rate. */
export function startingNow(lr: LR, rate: Rate): Rate {
  if (!('at' in rate) || typeof lr !== 'object' || lr.startStep !== undefined) return rate;
  let first: number | undefined;
  return { at: (update) => rate.at(update - (first ??= update) + 1) };
}

export function rateOf(rate: LR): Rate {
  if (typeof rate === 'number') checkRate(rate);
  if (!['number', 'object', 'function'].includes(typeof rate) || rate === null)
    throw new TensorgradError(
      `lr: ${String(rate)} is not a rate\n  hint: lr: 0.001, lr.linear({ ... }) or a function`,
    );
  const json = jsonOf(rate);
  return json === undefined ? { at: (update) => rateAt(rate, update) } : { json };
}

// What the library has for it; undefined if only JavaScript can compute it.
function jsonOf(rate: LR): Json | undefined {
  if (typeof rate === 'number') return rate;
  if (typeof rate === 'function' || rate.startStep !== undefined) return undefined;
  switch (rate.kind) {
    case 'linear':
    case 'cosineAnnealing':
      return {
        kind: rate.kind === 'linear' ? 'linear' : 'cosine',
        peak: rate.peak,
        last: rate.final,
        steps: rate.steps,
      };
    case 'warmup': {
      // The library's warmup rises to the first rate of what comes after.
      const after = jsonOf(rate.after);
      if (after === undefined || rateAt(rate.after, 1) !== rate.peak) return undefined;
      return { kind: 'warmup', steps: rate.steps, after };
    }
    case 'staircase':
      return { kind: 'staircase', rate: rate.peak, factor: rate.gamma, every: rate.every };
    case 'multiStep':
      return {
        kind: 'multi_step',
        rate: rate.peak,
        factor: rate.gamma,
        milestones: [...rate.milestones],
      };
    default:
      throw new TensorgradError(
        `lr: unknown kind '${(rate as { kind: string }).kind}'\n` +
          '  hint: linear, cosineAnnealing, warmup, staircase, multiStep',
      );
  }
}

/** The same formulas as the library's. */
export function rateAt(rate: LR, update: number): number {
  if (typeof rate === 'number') return rate;
  if (typeof rate === 'function') return rate(update);
  const t = Math.max(1, update - (rate.startStep ?? 0));
  const passed = (steps: number): number => Math.min(Math.max((t - 1) / steps, 0), 1);
  switch (rate.kind) {
    case 'linear':
      return rate.peak + (rate.final - rate.peak) * passed(rate.steps);
    case 'cosineAnnealing':
      return (
        rate.final + (rate.peak - rate.final) * 0.5 * (1 + Math.cos(Math.PI * passed(rate.steps)))
      );
    case 'warmup':
      if (t > rate.steps) return rateAt(rate.after, t - rate.steps);
      return (rate.peak * t) / rate.steps;
    case 'staircase':
      return rate.peak * rate.gamma ** Math.floor((t - 1) / rate.every);
    case 'multiStep':
      return rate.peak * rate.gamma ** rate.milestones.filter((m) => t > m).length;
  }
}
