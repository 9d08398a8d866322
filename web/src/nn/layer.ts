// Layers of the library: the registry knows their parameters and how to call them. The classes with
// their names and options are generated from it.
import type { Shape } from '../wasm/arrays.js';
import { bind, type Signature } from '../ops/call.js';
import type { Json } from '../trace/recording.js';
import { siteOf, type Site } from '../trace/site.js';
import { ParamTensor, type Tensor } from '../trace/tensor.js';
import { currentTrace } from '../trace/trace.js';
import { initSpec, type InitSpec } from './init.js';
import { Module, type ParamOptions } from './module.js';

/** Options that every layer has. */
export interface LayerOptions {
  /** Options of parameters by their path in the layer, such as `attn.q.W`. */
  params?: { readonly [path: string]: Pick<ParamOptions, 'init' | 'decay' | 'frozen' | 'scale'> };
}
/** Options of norms. */
export interface DecayOptions extends LayerOptions {
  /** Whether all its parameters have weight decay. Default: false. */
  decay?: boolean;
}
/** Options of layers with a weight `W`. */
export interface WeightOptions extends LayerOptions {
  /** How the weight starts. Default: as in PyTorch. */
  init?: InitSpec;
  /** Whether the weight has weight decay. Default: true. */
  decay?: boolean;
}

/** Other options for a parameter of a layer. */
export interface LayerParam {
  readonly path: string;
  readonly init: InitSpec | undefined;
  readonly decay: boolean | undefined;
  readonly frozen: boolean | undefined;
}

/** What the registry says about a layer. `weights`: the parameters that `init` and `decay` mean. */
export interface LayerType extends Signature {
  readonly weights: readonly string[];
  readonly inputs: readonly string[];
}

/** Names are separated by spaces. */
export function layerType(
  name: string,
  params: string,
  required: number,
  weights: string,
  inputs: string,
): LayerType {
  const list = (words: string): string[] => words.split(' ').filter(Boolean);
  return {
    name,
    params: list(params),
    required,
    weights: list(weights),
    inputs: list(inputs),
  };
}

/** A layer of the registry. */
export abstract class Layer extends Module {
  readonly #type: LayerType;
  readonly #args: Readonly<Record<string, Json>>;
  readonly #site: Site;
  readonly #params: readonly LayerParam[];
  readonly #tensors = new Map<string, LayerTensor>();

  constructor(type: LayerType, given: readonly unknown[], made: Function) {
    super();
    this.#type = type;
    this.#site = siteOf(made);
    const { init, decay, params, ...args } = bind(type, given) as WeightOptions &
      Record<string, Json>;
    this.#args = args;
    const weights = type.weights.map((path) => ({ path, init, decay, frozen: undefined }));
    const named = Object.entries(params ?? {}).map(([path, options]) => ({
      path,
      init: layerInit(options),
      decay: options.decay,
      frozen: options.frozen,
    }));
    this.#params = init === undefined && decay === undefined ? named : [...weights, ...named];
  }

  /** The arguments by the names of the registry. */
  protected argument(name: string): Json | undefined {
    return this.#args[name];
  }

  /** Its parameter of that path, such as 'attn.q.W'. */
  parameter(path: string): Tensor {
    const known = this.#tensors.get(path);
    if (known) return known;
    const tensor = new LayerTensor(this, path);
    this.#tensors.set(path, tensor);
    return tensor;
  }

  /** Calls the layer: the same as its `fwd`. */
  protected apply(inputs: readonly Tensor[], entry: Function): Tensor {
    const site = siteOf(entry);
    const { name, inputs: names } = this.#type;
    const trace = currentTrace(name, site);
    const layer = trace.names.layerNumber(this, name, site);
    const args = Object.fromEntries(names.map((input, i) => [input, inputs[i]]));
    return trace.call(layer, name, args, site)[0]!;
  }

  /** For the model that contains it. */
  static parts(layer: Layer): {
    type: string;
    args: Readonly<Record<string, Json>>;
    site: Site;
    params: readonly LayerParam[];
  } {
    return {
      type: layer.#type.name,
      args: layer.#args,
      site: layer.#site,
      params: layer.#params,
    };
  }
}

function layerInit({ init, scale }: Pick<ParamOptions, 'init' | 'scale'>): InitSpec | undefined {
  if (typeof init === 'function')
    throw new TypeError('a layer takes no function as init: use init.literal(values)');
  if (init === undefined && scale === undefined) return undefined;
  const spec = initSpec(init);
  return spec.kind === 'randn' && scale !== undefined ? { ...spec, scale } : spec;
}

/** A parameter of a layer. Its shape is known while the model is traced. */
export class LayerTensor extends ParamTensor {
  constructor(
    readonly layer: Layer,
    readonly path: string,
  ) {
    super();
  }
  get shape(): Shape {
    const { names } = currentTrace('shape', siteOf(LayerTensor));
    return names.shapeOf(names.nameOf(this) ?? '');
  }
}
