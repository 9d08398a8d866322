// The options of programs as the library reads them.
import { Module } from '../nn/module.js';
import { TensorgradError } from '../wasm/errors.js';
import type { Json, JsonObject } from '../trace/recording.js';
import { rateOf, type Rate } from './rates.js';
import type { OptimizerConfig, RunOptions, TrainingSpec } from './specs.js';

/** Throws if an object has a name that is not known. */
export function onlyKnown(what: string, given: object, names: readonly string[]): void {
  for (const [name, value] of Object.entries(given))
    if (value !== undefined && !names.includes(name))
      throw new TensorgradError(`${what}: unknown name '${name}'\n  hint: ${names.join(', ')}`);
}

const ofAll = ['kind', 'lr', 'weightDecay', 'decayFilter', 'clipGradNorm', 'normalizeGrads'];
const ofAdam = [...ofAll, 'beta1', 'b1', 'beta2', 'b2', 'eps'];
const ofKind = {
  none: ['kind'],
  sgd: [...ofAll, 'momentum', 'nesterov'],
  adam: ofAdam,
  adamw: ofAdam,
};

/** What every spec with a model needs. */
export function checkSpec(
  what: 'compile' | 'compileForward' | 'attach',
  spec: object,
  call: 'loss' | 'forward',
): void {
  const fail = (rule: string, hint: string): never => {
    throw new TensorgradError(`${what}: ${rule}\n  hint: ${hint}`);
  };
  if (typeof spec !== 'object' || spec === null) fail('needs a spec', `${what}({ model, ... })`);
  const given = spec as Record<string, unknown>;
  if (what !== 'attach' && !(given['model'] instanceof Module))
    fail('the model is missing, or it is no module', 'model: new Net()');
  if (typeof given[call] !== 'function')
    fail(`${call} must be a function`, `${call}: (m, { x }) => ...`);
  if (typeof given['inputs'] !== 'object' || given['inputs'] === null)
    fail('inputs are missing', 'inputs: { x: [32, 4] }, or {} if there are none');
}

export interface OptimizerJson {
  readonly options: JsonObject;
  readonly rate: Rate;
}

/** `names`: of all parameters, for filters. */
export function optimizerJson(config: OptimizerConfig, names: readonly string[]): OptimizerJson {
  const { kind } = (config ?? {}) as { kind?: unknown };
  if (typeof kind !== 'string' || !Object.hasOwn(ofKind, kind))
    throw new TensorgradError(
      `optimizer: unknown kind '${String(kind)}'\n  hint: { kind: 'adam', lr: 0.001 }; ` +
        'the kinds are adam, adamw, sgd and none',
    );
  onlyKnown(`optimizer '${kind}'`, config, ofKind[config.kind]);
  if (config.kind === 'none')
    return { options: { optimizer: { kind: 'none' } }, rate: { json: 0 } };
  const rate = rateOf(config.lr);
  const { weightDecay, decayFilter, clipGradNorm, normalizeGrads } = config;
  return {
    rate,
    options: defined({
      optimizer: defined({ ...kindOf(config), lr: 'json' in rate ? rate.json : 0 }),
      clip_grad_norm: clipGradNorm,
      normalize_grads: filtered('normalizeGrads', normalizeGrads, names),
      decay: weightDecay && decayFilter ? filtered('decayFilter', decayFilter, names) : undefined,
    }),
  };
}

function kindOf(config: Exclude<OptimizerConfig, { kind: 'none' }>): Loose {
  if (config.kind === 'sgd') {
    const { momentum, nesterov, weightDecay } = config;
    if (nesterov && !momentum)
      throw new TensorgradError('optimizer: nesterov requires momentum\n  hint: momentum: 0.9');
    return { kind: 'sgd', momentum, nesterov, weight_decay: weightDecay };
  }
  const { kind, beta1, b1, beta2, b2, eps, weightDecay } = config;
  const adam = { beta1: beta1 ?? b1, beta2: beta2 ?? b2, eps };
  // Version 0.0.12 has weight decay in its only optimizer.
  if (kind === 'adam' && !weightDecay) return { kind: 'adam', ...adam };
  return { kind: 'adamw', ...adam, weight_decay: weightDecay };
}

function filtered(
  what: string,
  filter: boolean | ((name: string) => boolean) | undefined,
  names: readonly string[],
): string[] | undefined {
  if (filter === undefined || filter === false) return undefined;
  if (filter === true) return ['*'];
  const chosen = names.filter(filter);
  if (chosen.length === 0)
    throw new TensorgradError(
      `${what}: no parameter matches\n  hint: the names are ${names.join(', ')}`,
    );
  return chosen;
}

type Loose = Record<string, Json | undefined>;

function defined(options: Loose): JsonObject {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as JsonObject;
}

/** The options of a training program but its inputs, device and optimizer. */
export function trainingJson(
  spec: Pick<TrainingSpec<never>, 'accumulate' | 'freeze' | 'nonFinite' | 'without' | 'precision'>,
  names: readonly string[],
): JsonObject {
  checkPrecision(spec);
  const { accumulate, freeze, nonFinite, without } = spec;
  return defined({
    accumulate,
    freeze: freeze && names.filter(freeze),
    non_finite: nonFinite,
    without: without && [...without],
  });
}

export function checkPrecision({ precision }: Pick<RunOptions, 'precision'>): void {
  if (precision !== undefined && precision !== 'full')
    throw new TensorgradError(
      `precision: '${String(precision)}' is not available\n  hint: 'full' is all there is`,
    );
}
