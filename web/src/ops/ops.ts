// Ops whose signature in JavaScript differs from the registry's: names that are taken, several
// forms of one function, and what version 0.4.6 has.
import { ShapeError } from '../wasm/errors.js';
import type { Dtype, Shape } from '../wasm/arrays.js';
import { isTracing, currentTrace, type Argument, type Arguments } from '../trace/trace.js';
import { atSite, siteOf, within } from '../trace/site.js';
import { isTensor, type Operand, type Tensor } from '../trace/tensor.js';

function call(name: string, args: Arguments, entry: Function): Tensor {
  return calls(name, args, entry)[0]!;
}
function calls(name: string, args: Arguments, entry: Function): Tensor[] {
  const site = siteOf(entry);
  return currentTrace(name, site).call(name, name, args, site);
}

/** The larger of two operands, element by element. `amax` is the largest element along an axis. */
export function max(a: Operand, b: Operand): Tensor {
  return call('maximum', { a, b }, max);
}
/**
 * The smaller of two operands, element by element. `amin` is the smallest element along an axis.
 */
export function min(a: Operand, b: Operand): Tensor {
  return call('minimum', { a, b }, min);
}

export interface ArgOptions {
  /** Keeps the axis, with size 1. */
  keepDims?: boolean;
}
function arg(name: string, x: Tensor, axis: number | undefined, options: ArgOptions, of: Function) {
  const site = siteOf(of);
  return within(site, () => {
    const flat = axis === undefined ? call('reshape', { x, shape: [-1] }, of) : x;
    const found = call(name, { x: flat, axis: axis ?? 0, keepdims: options.keepDims }, of);
    if (axis !== undefined || !options.keepDims) return found;
    return call('reshape', { x: found, shape: x.shape.map(() => 1) }, of);
  });
}
/** The index of the first largest element along an axis, i32. Without an axis: of all elements. */
export function argmax(x: Tensor, axis?: number, options: ArgOptions = {}): Tensor {
  return arg('argmax', x, axis, options, argmax);
}
/** The index of the first smallest element along an axis, i32. Without an axis: of all elements. */
export function argmin(x: Tensor, axis?: number, options: ArgOptions = {}): Tensor {
  return arg('argmin', x, axis, options, argmin);
}

/** 0 .. n-1, or start, start + step, ... before stop. */
export function arange(n: number, dtype?: Dtype): Tensor;
export function arange(start: number, stop: number, step?: number, dtype?: Dtype): Tensor;
export function arange(
  first: number,
  second?: number | Dtype,
  step?: number,
  dtype?: Dtype,
): Tensor {
  if (typeof second !== 'number') return call('arange', { stop: first, dtype: second }, arange);
  return call('arange', { start: first, stop: second, step, dtype }, arange);
}

/** The Gaussian error linear unit, exact or by the approximation with tanh. */
export function gelu(x: Operand, options: { approximate?: 'none' | 'tanh' } = {}): Tensor {
  return call(options.approximate === 'tanh' ? 'gelu_tanh' : 'gelu', { x }, gelu);
}

/** Cuts one axis into parts of these sizes, or into that many equal parts. */
export function split(x: Tensor, sizes: readonly number[] | number, axis = -1): Tensor[] {
  const parts = typeof sizes === 'number' ? { sections: sizes } : { sizes };
  return calls('split', { x, ...parts, axis }, split);
}

export interface RopeOptions {
  /** Default: 10000. */
  base?: number;
  /** The position of the first row: a number or an i32 tensor. Default: 0. */
  offset?: Operand;
}
/** Rotary positions over the last two axes [..., T, D], of one tensor or of queries and keys. */
export function rope(q: Tensor, k: Tensor, options?: RopeOptions): [Tensor, Tensor];
export function rope(x: Tensor, options?: RopeOptions): Tensor;
export function rope(
  first: Tensor,
  second: Tensor | RopeOptions = {},
  options: RopeOptions = {},
): Tensor | [Tensor, Tensor] {
  const rotated = (x: Tensor, { base, offset }: RopeOptions): Tensor =>
    call('rope', { x, base, offset }, rope);
  if (!isTensor(second)) return rotated(first, second);
  return [rotated(first, options), rotated(second, options)];
}

// Runs an op of the last axis along another one.
function alongAxis(
  name: string,
  x: Tensor,
  axis: number,
  back: boolean,
  of: Function,
  body: (moved: Tensor) => Tensor,
): Tensor {
  const rank = x.shape.length;
  const at = axis < 0 ? rank + axis : axis;
  const site = siteOf(of);
  if (!Number.isInteger(axis) || at < 0 || at >= rank)
    throw new ShapeError(
      `${name}: axis ${axis} is out of range for ${x.dtype}[${x.shape.join(',')}]${atSite(site)}`,
    );
  return within(site, () => {
    if (at === rank - 1) return body(x);
    const axes = [...x.shape.keys()];
    const order = [...axes.filter((a) => a !== at), at];
    const result = body(call('permute', { x, order }, of));
    if (!back) return result;
    return call('permute', { x: result, order: axes.map((a) => order.indexOf(a)) }, of);
  });
}

/** Softmax of [..., T, T] along an axis. Row t sees elements 0 .. t. */
export function softmaxCausal(x: Tensor, axis = -1): Tensor {
  return alongAxis('softmax_causal', x, axis, true, softmaxCausal, (moved) =>
    call('softmax_causal', { x: moved }, softmaxCausal),
  );
}

/** Draws one class from logits along an axis: i32, without that axis. */
export function categorical(logits: Tensor, axis = -1): Tensor {
  return alongAxis('categorical', logits, axis, false, categorical, (moved) =>
    call('categorical', { logits: moved }, categorical),
  );
}

export interface LossOptions {
  /** Default: 'mean'. */
  reduction?: 'mean' | 'sum' | 'none';
  /** 1 where a target counts and 0 elsewhere; other weights are possible. */
  mask?: Tensor;
  /** Targets with this value do not count. */
  ignoreIndex?: number;
  labelSmoothing?: number;
}
function loss(name: string, given: Arguments, o: LossOptions, of: Function): Tensor {
  const options: Arguments = { ignore_index: o.ignoreIndex, label_smoothing: o.labelSmoothing };
  const mask = o.mask;
  if (!mask) return call(name, { ...given, ...options, reduction: o.reduction }, of);
  if (o.ignoreIndex !== undefined && (o.reduction ?? 'mean') === 'mean')
    throw new ShapeError(
      `${name}: a mean with both mask and ignoreIndex: targets would count twice${atSite(siteOf(of))}\n` +
        '  hint: a mask that is 0 where targets are ignored',
    );
  return within(siteOf(of), () => {
    const each = call(name, { ...given, ...options, reduction: 'none' }, of);
    const masked = call('mul', { a: each, b: mask }, of);
    if (o.reduction === 'none') return masked;
    const sum = call('sum', { x: masked }, of);
    if (o.reduction === 'sum') return sum;
    const whole = call('broadcast_to', { x: mask, shape: masked.shape }, of);
    const weights = call('cast', { x: whole, to: 'f32' }, of);
    return call('div', { a: sum, b: call('sum', { x: weights }, of) }, of);
  });
}
/** The cross-entropy of logits [..., V] and targets, i32 [...]. With a mask: where it is 1. */
export function crossEntropy(logits: Tensor, targets: Tensor, options: LossOptions = {}): Tensor {
  return loss('cross_entropy', { logits, targets }, options, crossEntropy);
}
/** The same as crossEntropy, from log-probabilities. */
export function nllLoss(logProbs: Tensor, targets: Tensor, options: LossOptions = {}): Tensor {
  return loss('nll_loss', { log_probs: logProbs, targets }, options, nllLoss);
}

/** Names a tensor, so that a step or run returns it. Returns the tensor. */
export function capture<T extends Tensor>(name: string, x: T): T {
  if (!isTracing()) return x;
  const site = siteOf(capture);
  const trace = currentTrace('capture', site);
  trace.takeCaptureName(name, site);
  return trace.call('capture', 'capture', { name, x }, site)[0] as Tensor as T;
}

/** Calls any op of the registry, with its own names: `callOp('add', { a: x, b: 1 })`. */
export function callOp(name: string, args: { readonly [name: string]: Argument }): Tensor[] {
  return calls(name, args, callOp);
}

/** The type of a tensor, such as `f32[32,784]`. */
export function typeOf(x: { readonly dtype: Dtype; readonly shape: Shape }): string {
  return `${x.dtype}[${x.shape.join(',')}]`;
}
