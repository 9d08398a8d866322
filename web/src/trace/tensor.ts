// Tensors: handles without values. They exist while a model is traced.
import type { Dtype, Shape } from '../wasm/arrays.js';
import type { Site } from './site.js';
import type { Trace } from './trace.js';

/**
 * A tensor of a traced function: its type, not its values. Ops take tensors and return new ones.
 */
export interface Tensor {
  /** The number of the tensor in its trace; -1 for a parameter. */
  readonly id: number;
  readonly shape: Shape;
  readonly dtype: Dtype;
  /** The line of the call that made it. */
  readonly site: Site | null;
}

/** What an op takes: a tensor, or a number that is broadcast. */
export type Operand = Tensor | number;

export class TracedTensor implements Tensor {
  constructor(
    readonly trace: Trace,
    readonly id: number,
    readonly shape: Shape,
    readonly dtype: Dtype,
    readonly site: Site | null,
  ) {}
}

/** A parameter of a model. The trace knows its name. */
export abstract class ParamTensor implements Tensor {
  readonly id = -1;
  readonly dtype = 'f32' as const;
  readonly site = null;
  abstract readonly shape: Shape;
}

export function isTensor(value: unknown): value is Tensor {
  return value instanceof TracedTensor || value instanceof ParamTensor;
}
