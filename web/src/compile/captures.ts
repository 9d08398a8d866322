// What capture() named, in the result of a step or run.
import { TensorgradError } from '../wasm/errors.js';
import type { HostArray, HostArrays, Shape } from '../wasm/arrays.js';
import type { OutputArray } from './specs.js';

export class Captures {
  constructor(private readonly arrays: HostArrays = {}) {}

  has(name: string): boolean {
    return Object.hasOwn(this.arrays, name);
  }

  /** The names, sorted. */
  names(): string[] {
    return Object.keys(this.arrays).sort();
  }

  get(name: string): OutputArray {
    return this.find(name).values;
  }

  shapeOf(name: string): Shape {
    return this.find(name).shape;
  }
  /** The same as shapeOf. */
  shape(name: string): Shape {
    return this.shapeOf(name);
  }

  /**
   * The parts along the first axis, which holds the heads; a batch of one before it is left out.
   */
  perHead(name: string): Float32Array[] {
    const { values, shape, dtype } = this.find(name);
    const sizes = shape[0] === 1 ? shape.slice(1) : shape;
    const heads = sizes[0];
    if (!(values instanceof Float32Array) || shape.length < 2 || heads === undefined)
      throw new TensorgradError(
        `perHead: '${name}' is ${dtype}[${shape.join(',')}]: it needs f32 and at least two axes`,
      );
    const size = heads === 0 ? 0 : values.length / heads;
    return Array.from({ length: heads }, (_, h) => values.slice(h * size, (h + 1) * size));
  }

  private find(name: string): HostArray {
    const found = this.has(name) ? this.arrays[name] : undefined;
    if (found) return found;
    const known = this.names().join(', ') || 'none';
    throw new TensorgradError(`captures: there is no '${name}'\n  hint: there are: ${known}`);
  }
}
