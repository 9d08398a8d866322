// How arguments in JavaScript become the named arguments of the registry: in order, and from the
// first optional one on in an object of options.
import { currentTrace, type Argument, type Arguments } from '../trace/trace.js';
import { siteOf } from '../trace/site.js';
import { isTensor, type Tensor } from '../trace/tensor.js';

/** The name of an op or layer, the names of its parameters, and how many are required. */
export interface Signature {
  readonly name: string;
  readonly params: readonly string[];
  readonly required: number;
}

/** keep_dims -> keepDims */
export function camel(name: string): string {
  const words = name === 'keepdims' ? 'keep_dims' : name;
  return words.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Arguments by the names of the registry. Names that the registry does not have stay as they are.
 */
export function bind(signature: Signature, given: readonly unknown[]): Record<string, unknown> {
  const { name, params, required } = signature;
  const args: Record<string, unknown> = {};
  given.forEach((value, i) => {
    if (value === undefined) return;
    if (i >= required && isOptions(value)) {
      for (const [key, option] of Object.entries(value)) {
        const known = params.slice(required).find((param) => camel(param) === key);
        args[known ?? key] = option;
      }
      return;
    }
    // An extra argument is an error of the library, which shows the signature.
    args[params[i] ?? `argument ${i + 1} of ${name}`] = value;
  });
  return args;
}

function isOptions(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isTensor(value);
}

type Given = Argument | object;

/** A function that calls an op which returns one tensor. `params` are names with spaces between. */
export function op(name: string, params: string, required: number): (...given: Given[]) => Tensor {
  const all = ops(name, params, required);
  const call = (...given: Given[]): Tensor => all(given, call)[0]!;
  return call;
}

/** The same for an op that returns several tensors. */
export function severalOp(
  name: string,
  params: string,
  required: number,
): (...given: Given[]) => Tensor[] {
  const all = ops(name, params, required);
  const call = (...given: Given[]): Tensor[] => all(given, call);
  return call;
}

function ops(name: string, params: string, required: number) {
  const signature = { name, params: params.split(' '), required };
  return (given: readonly Given[], entry: Function): Tensor[] => {
    const site = siteOf(entry);
    const args = bind(signature, given) as Arguments;
    return currentTrace(name, site).call(name, name, args, site);
  };
}
