// A model as the library knows it: the parameters and layers in the fields of a module, with their
// names.
import { ShapeError } from '../wasm/errors.js';
import type { Shape } from '../wasm/arrays.js';
import type { Handle, Library } from '../wasm/library.js';
import type {
  JsonObject,
  LayerEntry,
  ModelEntries,
  ModelParameter,
  ParamEntry,
} from '../trace/recording.js';
import { jsonText } from '../trace/recording.js';
import { buildModel } from '../trace/replay.js';
import { atSite, type Site } from '../trace/site.js';
import type { Names } from '../trace/trace.js';
import { ParamTensor } from '../trace/tensor.js';
import { initJson, type InitSpec } from './init.js';
import { Layer, LayerTensor } from './layer.js';
import { Module, Param, walk } from './module.js';

type Entries = (ParamEntry | LayerEntry)[];

/** The entry of a parameter, or of other options for a parameter of a layer. */
export function paramEntry(
  name: string,
  init: InitSpec | undefined,
  options: { shape?: Shape; decay?: boolean | undefined; frozen?: boolean | undefined },
): ParamEntry {
  const given = Object.entries({ ...options, ...(init && { init: initJson(init) }) });
  const entry = {
    kind: 'param' as const,
    name,
    options: Object.fromEntries(given.filter(([, value]) => value !== undefined)) as JsonObject,
  };
  if (init?.kind !== 'literal') return entry;
  return { ...entry, values: new Float32Array(init.data) };
}

/** A model in an instance of the library, for tracing. */
export class TracedModel implements Names {
  private readonly paramNames = new Map<Param, string>();
  private readonly layers = new Map<Layer, { number: number; path: string }>();
  private readonly shapes = new Map<string, Shape>();

  private constructor(
    private readonly lib: Library,
    readonly entries: ModelEntries,
    readonly handle: Handle,
    readonly parameters: readonly ModelParameter[],
  ) {
    for (const { name, shape } of parameters) this.shapes.set(name, shape);
  }

  /** A module that occurs twice has its parameters once, under the first name. */
  static of(lib: Library, root: Module): TracedModel {
    const entries: Entries = [];
    const params = new Map<Param, string>();
    const layers = new Map<Layer, { number: number; path: string }>();
    const visited = new Set<Module>([root]);
    const enter = (path: string, part: Module | Param, fields: () => void): void => {
      if (part instanceof Param) {
        if (params.has(part)) return;
        params.set(part, path);
        const { shape, decay, frozen } = part;
        entries.push(paramEntry(path, part.init, { shape, decay, frozen }));
        return;
      }
      if (visited.has(part)) return;
      visited.add(part);
      if (part instanceof Layer) {
        layers.set(part, { number: layers.size, path });
        entries.push(...layerEntries(path, part));
      }
      fields();
    };
    if (root instanceof Layer) {
      layers.set(root, { number: 0, path: '' });
      entries.push(...layerEntries('', root));
    }
    walk(root, enter);
    const handle = lib.traced(() => buildModel(lib, entries, false));
    const model = new TracedModel(lib, entries, handle, lib.json('model_params', handle));
    for (const [param, name] of params) model.paramNames.set(param, name);
    for (const [layer, place] of layers) model.layers.set(layer, place);
    return model;
  }

  /** A model of parameters that a function declares, as in version 0.0.12. */
  static declared(lib: Library, entries: Entries): TracedModel {
    const handle = lib.traced(() => buildModel(lib, entries, false));
    return new TracedModel(lib, entries, handle, lib.json('model_params', handle));
  }

  get names(): string[] {
    return this.parameters.map(({ name }) => name);
  }

  nameOf(param: ParamTensor): string | undefined {
    if (param instanceof Param) return this.paramNames.get(param);
    if (param instanceof NamedParam) return param.name;
    if (!(param instanceof LayerTensor)) return undefined;
    const place = this.layers.get(param.layer);
    if (!place) return undefined;
    const name = place.path ? `${place.path}.${param.path}` : param.path;
    return this.shapes.has(name) ? name : undefined;
  }

  shapeOf(name: string): Shape {
    return this.shapes.get(name) ?? [];
  }

  layerNumber(layer: object, type: string, site: Site): number {
    const place = this.layers.get(layer as Layer);
    if (place) return place.number;
    throw new ShapeError(
      `${type}: the layer does not belong to the model${atSite(site)}\n` +
        '  hint: layers are fields of the model, or of modules in its fields',
    );
  }

  /** Runs what may fail, and frees the model then. */
  orFree<T>(body: () => T): T {
    try {
      return body();
    } catch (error) {
      this.free();
      throw error;
    }
  }

  /** Its programs keep what they need. */
  free(): void {
    this.lib.call('model_free', this.handle);
  }
}

/** A parameter that a traced function declared by name. */
export class NamedParam extends ParamTensor {
  constructor(
    readonly name: string,
    readonly shape: Shape,
  ) {
    super();
  }
}

function layerEntries(name: string, layer: Layer): Entries {
  const { type, args, site, params } = Layer.parts(layer);
  const prefix = name ? `${name}.` : '';
  return [
    { kind: 'layer', name, layer: type, args: jsonText(args), site },
    ...params.map(({ path, init, decay, frozen }) =>
      paramEntry(prefix + path, init, { decay, frozen }),
    ),
  ];
}
