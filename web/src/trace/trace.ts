// A trace: the graph of a function while its ops are called. The library checks each call at once,
// so that an error comes at the line that made it.
import { ShapeError } from '../wasm/errors.js';
import { parseType, type Shape, type Type } from '../wasm/arrays.js';
import type { Handle, Library } from '../wasm/library.js';
import { jsonText, type Json, type OpCall } from './recording.js';
import { makeCall } from './replay.js';
import { atSite, type Site } from './site.js';
import { ParamTensor, TracedTensor, type Tensor } from './tensor.js';

/** The value of an argument; undefined: not given. */
export type Argument = Tensor | number | string | boolean | null | undefined | readonly Argument[];
export type Arguments = { readonly [name: string]: Argument };

/** The parameters and layers of the model that is traced. */
export interface Names {
  nameOf(param: ParamTensor): string | undefined;
  shapeOf(name: string): Shape;
  layerNumber(layer: object, type: string, site: Site): number;
}

let current: Trace | undefined;

export class Trace {
  readonly calls: OpCall[] = [];
  private readonly captured = new Set<string>();

  constructor(
    private readonly lib: Library,
    private readonly graph: Handle,
    readonly names: Names,
  ) {}

  /** Runs `body` as the function that is traced. */
  run<T>(body: () => T): T {
    if (current)
      throw new ShapeError('compile: a trace is under way: its function must not compile');
    current = this;
    try {
      return body();
    } finally {
      current = undefined;
    }
  }

  /** The tensor of that number, of a leaf or a call. */
  tensor(id: number, site: Site | null): TracedTensor {
    const { dtype, shape } = this.typeOf(id);
    return new TracedTensor(this, id, shape, dtype, site);
  }

  typeOf(id: number): Type {
    return parseType(this.lib.text('tensor_type', this.graph, id));
  }

  /** The number of a tensor. A parameter gets one: it is reshaped to its shape. */
  idOf(what: string, tensor: Tensor, site: Site): number {
    const operand = this.operand(what, tensor, site);
    if ('tensor' in operand) return operand.tensor;
    return this.call('reshape', what, { x: tensor, shape: tensor.shape }, site)[0]!.id;
  }

  /** Whether capture() named something. */
  get captures(): boolean {
    return this.captured.size > 0;
  }

  call(op: string | number, what: string, args: Arguments, site: Site): TracedTensor[] {
    const given: Record<string, Json> = {};
    for (const [name, value] of Object.entries(args))
      if (value !== undefined) given[name] = this.json(what, value, site);
    const call = { op, args: jsonText(given), site };
    const first = this.lib.traced(() => makeCall(this.lib, this.graph, call));
    this.calls.push(call);
    const results: TracedTensor[] = [];
    for (let id = first; id < this.lib.call('tensors', this.graph); ++id)
      results.push(this.tensor(id, site));
    return results;
  }

  /** Throws if the name is taken. */
  takeCaptureName(name: string, site: Site): void {
    if (this.captured.has(name))
      throw new ShapeError(
        `capture: the name '${name}' is already registered${atSite(site)}\n` +
          `  hint: a name for each call, such as \`attention.\${layer}\``,
      );
    this.captured.add(name);
  }

  private json(what: string, value: Exclude<Argument, undefined>, site: Site): Json {
    if (typeof value === 'number') return Number.isFinite(value) ? value : (`${value}` as Json);
    if (Array.isArray(value))
      return value.map((item: Argument) => this.json(what, item ?? null, site));
    if (value === null || typeof value !== 'object') return value as Json;
    return this.operand(what, value as Tensor, site);
  }

  private operand(
    what: string,
    tensor: Tensor,
    site: Site,
  ): { tensor: number } | { param: string } {
    if (tensor instanceof TracedTensor && tensor.trace === this) return { tensor: tensor.id };
    if (tensor instanceof ParamTensor) {
      const name = this.names.nameOf(tensor);
      if (name !== undefined) return { param: name };
      throw new ShapeError(
        `${what}: a parameter does not belong to the model${atSite(site)}\n` +
          '  hint: parameters are fields of the model, or of modules in its fields',
      );
    }
    const known = tensor instanceof TracedTensor;
    throw new ShapeError(
      known
        ? `${what}: a tensor belongs to another trace${atSite(site)}\n  hint: do not keep tensors`
        : `${what}: an operand is not a tensor${atSite(site)}`,
    );
  }
}

/** The trace under way. Throws if there is none. */
export function currentTrace(what: string, site: Site): Trace {
  if (current) return current;
  throw new ShapeError(
    `${what}: ops work only in the function given to compile() and the like${atSite(site)}`,
  );
}

/** True inside a traced function. */
export function isTracing(): boolean {
  return current !== undefined;
}
