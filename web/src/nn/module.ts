// Modules: classes whose fields are parameters and other modules. The name of a parameter is its
// path, such as layers.0.attn.q.W.
import { ShapeError } from '../wasm/errors.js';
import { elements, typeText, type Dtype, type Shape } from '../wasm/arrays.js';
import { atSite, siteOf, type Site } from '../trace/site.js';
import { ParamTensor, type Tensor } from '../trace/tensor.js';
import { initSpec, type InitSpec, type InitWord } from './init.js';

export interface ParamOptions {
  /** Parameters are f32. */
  dtype?: Dtype;
  /** Default: init.randn(), which has standard deviation 0.02. */
  init?: InitSpec | InitWord | ((size: number, shape: Shape) => Float32Array);
  /** The standard deviation for `init: 'randn'`, as in version 0.0.12. */
  scale?: number;
  /** Whether weight decay applies. Default: not for parameters that start at zeros or ones. */
  decay?: boolean;
  /** Frozen parameters are not trained and cost no backward pass. */
  frozen?: boolean;
}

/** A parameter that a module declared. */
export class Param extends ParamTensor {
  readonly init: InitSpec;
  readonly decay: boolean;
  readonly frozen: boolean;

  constructor(
    readonly shape: Shape,
    options: ParamOptions,
    readonly declared: Site,
  ) {
    super();
    const bad = shape.find((size) => !Number.isInteger(size) || size < 0);
    if (bad !== undefined)
      throw new ShapeError(
        `param: a size must be an integer that is not negative: ${bad}${this.at}`,
      );
    if (options.dtype !== undefined && options.dtype !== 'f32')
      throw new ShapeError(`param: parameters are f32, not ${options.dtype}${this.at}`);
    this.init = this.resolve(options);
    this.decay = options.decay ?? !['zeros', 'ones'].includes(this.init.kind);
    this.frozen = options.frozen ?? false;
    if (this.init.kind === 'literal' && this.init.data.length !== elements(shape))
      throw new ShapeError(
        `param: ${typeText('f32', shape)} needs ${elements(shape)} values: ` +
          `init.literal has ${this.init.data.length}${this.at}`,
      );
  }

  private get at(): string {
    return atSite(this.declared);
  }

  private resolve({ init, scale }: ParamOptions): InitSpec {
    if (typeof init === 'function')
      return { kind: 'literal', data: init(elements(this.shape), this.shape) };
    const spec = initSpec(init);
    return spec.kind === 'randn' && scale !== undefined ? { ...spec, scale } : spec;
  }
}

/**
 * The base of models and their parts. Declare parameters and modules as fields:
 * ```ts
 * class Net extends Module {
 *   l1 = new Linear(784, 128);
 *   scale = this.param([128], { init: init.ones() });
 * }
 * ```
 */
export abstract class Module {
  /** Declares a parameter. Its name is the path of the field. */
  protected param(shape: Shape, options: ParamOptions = {}): Tensor {
    const site = siteOf(this.param);
    if (!Array.isArray(shape))
      throw new ShapeError(
        `param: a shape must be a list of sizes: ${String(shape)}${atSite(site)}\n` +
          '  hint: this.param([3, 4])',
      );
    return new Param([...shape], options, site);
  }
}

/** Calls `visit` for each module and parameter in the fields of a module, and those below. */
export function walk(
  root: Module,
  visit: (path: string, part: Module | Param, fields: () => void) => void,
): void {
  const inside = (value: unknown, path: string): void => {
    if (value instanceof Param) visit(path, value, () => {});
    else if (value instanceof Module) visit(path, value, () => fieldsOf(value, path));
    else if (Array.isArray(value)) value.forEach((item, i) => inside(item, join(path, `${i}`)));
  };
  const fieldsOf = (module: Module, path: string): void => {
    for (const [field, value] of Object.entries(module)) inside(value, join(path, field));
  };
  fieldsOf(root, '');
}

function join(path: string, field: string): string {
  return path ? `${path}.${field}` : field;
}
