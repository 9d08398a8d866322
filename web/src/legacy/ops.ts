// Ops under their names of version 0.0.12.
import type { Shape } from '../wasm/arrays.js';
import { siteOf, within } from '../trace/site.js';
import type { Operand, Tensor } from '../trace/tensor.js';
import type { Captures } from '../compile/captures.js';
import {
  add,
  layerNorm,
  logSoftmax,
  matmul,
  mean,
  mul,
  narrow,
  permute,
  reshape,
  sum,
} from '../generated/ops.js';
import { crossEntropy, softmaxCausal } from '../ops/ops.js';

/** x + scalar. */
export function addScalar(x: Tensor, scalar: number): Tensor {
  return within(siteOf(addScalar), () => add(x, scalar));
}
/** x * scalar. */
export function mulScalar(x: Tensor, scalar: number): Tensor {
  return within(siteOf(mulScalar), () => mul(x, scalar));
}
/** The mean over the last axis, which stays with size 1. */
export function meanLast(x: Operand): Tensor {
  return within(siteOf(meanLast), () => mean(x, -1, { keepDims: true }));
}
/** The sum over the last axis. */
export function sumLast(x: Operand): Tensor {
  return within(siteOf(sumLast), () => sum(x, -1));
}
/** The sum of all elements. */
export function sumAll(x: Operand): Tensor {
  return within(siteOf(sumAll), () => sum(x));
}
/** Elements start .. end - 1 of the last axis. */
export function sliceLastRange(x: Operand, start: number, end: number): Tensor {
  return within(siteOf(sliceLastRange), () => narrow(x, -1, start, end - start));
}
/** The axes in another order: permute. */
export function transpose(x: Operand, order: readonly number[]): Tensor {
  return within(siteOf(transpose), () => permute(x, order));
}
/** matmul. */
export function matmulBatched(a: Operand, b: Operand): Tensor {
  return within(siteOf(matmulBatched), () => matmul(a, b));
}
/** softmaxCausal. */
export function softmaxCausalLast(x: Tensor): Tensor {
  return within(siteOf(softmaxCausalLast), () => softmaxCausal(x));
}
/** logSoftmax. */
export function logSoftmaxLast(x: Operand): Tensor {
  return within(siteOf(logSoftmaxLast), () => logSoftmax(x));
}
/** The cross-entropy of each position. */
export function crossEntropyLast(logits: Tensor, targets: Tensor): Tensor {
  return within(siteOf(crossEntropyLast), () =>
    crossEntropy(logits, targets, { reduction: 'none' }),
  );
}
/** x W + b. */
export function linearFwd(p: { W: Tensor; b?: Tensor | null }, x: Tensor): Tensor {
  return within(siteOf(linearFwd), () => {
    const product = matmul(x, p.W);
    return p.b ? add(product, p.b) : product;
  });
}
/** Layer norm over the last axis. */
export function layerNormFwd(p: { g: Tensor; b?: Tensor | null; eps?: number }, x: Tensor): Tensor {
  const { g, b, eps = 1e-5 } = p;
  return within(siteOf(layerNormFwd), () => layerNorm(x, g, { ...(b && { bias: b }), eps }));
}
/** The sum over the axes that broadcasting to x added. */
export function sumToShape(x: Tensor, shape: Shape): Tensor {
  return within(siteOf(sumToShape), () => {
    const extra = x.shape.length - shape.length;
    const axes = [...x.shape.keys()].filter(
      (axis) => axis < extra || (shape[axis - extra] === 1 && x.shape[axis] !== 1),
    );
    if (axes.length === 0) return x;
    return reshape(sum(x, axes, { keepDims: true }), shape);
  });
}
/** The parts of a captured tensor along its heads. */
export function unsplitHeads(captures: Captures, name: string): Float32Array[] {
  return captures.perHead(name);
}
