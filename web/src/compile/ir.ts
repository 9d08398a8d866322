// What the compiler makes of a program, for looking at it: graphs as data, without a device. The
// kernels are those of the page's binary: for a GPU without special features, or for the CPU.
import { parseType, type Dtype, type Shape } from '../wasm/arrays.js';
import type { Library } from '../wasm/library.js';
import type { ModelEntries, ProgramRecording } from '../trace/recording.js';
import { withProgram } from '../trace/replay.js';
import type { KernelInfo, ProgramInfo } from '../engine/protocol.js';

/**
 * A node of a graph: an op, an input (`tensor_input`), a parameter (`param_input`) or a constant.
 */
export interface OpNode {
  readonly kind: string;
  /** Its result, in `tensors`. */
  readonly out: number;
  readonly inputs: readonly number[];
  /** Of inputs, parameters and state. */
  readonly name?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}
export interface GraphTensor {
  readonly id: number;
  readonly shape: Shape;
  readonly dtype: Dtype;
  /** The op that makes it, in `ops`. */
  readonly source: number;
  /** The line of the call: "main.ts:41 in layers.0". */
  readonly site: string | null;
}
export interface Graph {
  readonly ops: readonly OpNode[];
  readonly tensors: readonly GraphTensor[];
  readonly outputs: readonly number[];
  readonly captures: ReadonlyMap<string, number>;
  readonly gradients: ReadonlyMap<string, number>;
}

export interface CompiledIR {
  /** Training: with the gradients. Forward: as it was traced. */
  readonly graph: Graph;
  /** For a GPU in a page that uses one; otherwise for the CPU. */
  readonly kernels: readonly KernelInfo[];
  /** The loss or the first output. */
  readonly loss: GraphTensor;
  readonly paramGrads: Readonly<Record<string, GraphTensor>>;
  /** Kernels and memory, as text. */
  readonly plan: string;
}

/** The tensors that an op reads. */
export function getOpInputs(op: OpNode): readonly number[] {
  return op.inputs;
}

const kinds: Readonly<Record<string, string>> = {
  input: 'tensor_input',
  parameter: 'param_input',
  state: 'state_input',
  flat_state: 'state_input',
};

/** Reads the text of a graph. */
export function parseGraph(text: string): Graph {
  const ops: OpNode[] = [];
  const tensors: GraphTensor[] = [];
  const outputs: number[] = [];
  const captures = new Map<string, number>();
  const gradients = new Map<string, number>();
  for (const line of text.split('\n')) {
    const node =
      /^ {2}%(\d+) = (\w+)(?:\(([^)]*)\))?(?: \{(.*)\})? : (\w+\[[\d,]*\])(?: {2}@ (.*))?$/.exec(
        line,
      );
    if (node) {
      const [, id, op, inputs, attributes, type, site] = node;
      const read = attributesOf(attributes ?? '');
      const out = Number(id);
      const name = read['name'];
      ops.push({
        // Names with a dollar are the library's own: the learning rate, for example.
        kind: `${name}`.startsWith('$') ? 'state_input' : (kinds[op!] ?? op!),
        out,
        inputs: (inputs ?? '').match(/\d+/g)?.map(Number) ?? [],
        ...(typeof name === 'string' && { name }),
        attributes: read,
      });
      tensors.push({ id: out, ...parseType(type!), source: ops.length - 1, site: site ?? null });
      continue;
    }
    const result = /^ {2}(\w+) (".*") = %(\d+)$/.exec(line);
    if (!result) continue;
    const [, kind, name, id] = result;
    if (kind === 'output' && !name!.startsWith('"$')) outputs.push(Number(id));
    if (kind === 'capture') captures.set(unquote(name!), Number(id));
    if (kind === 'gradient') gradients.set(unquote(name!), Number(id));
  }
  return { ops, tensors, outputs, captures, gradients };
}

// name="x", dtype=f32, shape=[2,3]
function attributesOf(text: string): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [, name, value] of text.matchAll(/(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,]+)/g))
    found[name!] = valueOf(value!);
  return found;
}

function valueOf(text: string): unknown {
  if (text.startsWith('"')) return unquote(text);
  if (text.startsWith('[')) return text.match(/-?\d+/g)?.map(Number) ?? [];
  if (text === 'true' || text === 'false') return text === 'true';
  const number = Number(text);
  return Number.isNaN(number) && text !== 'nan' ? text : number;
}

function unquote(text: string): string {
  return JSON.parse(text.replace(/\\x([0-9a-f]{2})/g, '\\u00$1')) as string;
}

/** Compiles a program in this thread, looks at it, and frees it. Runs nothing. */
export function inspect(
  lib: Library,
  entries: ModelEntries,
  recording: ProgramRecording,
): CompiledIR {
  return withProgram(lib, entries, recording, lib.deviceToShow, (program) => {
    const stage = recording.kind === 'training' ? 'differentiate' : 'trace';
    const parsed = parseGraph(lib.text('program_show', program, stage));
    const info = lib.json<ProgramInfo>('program_info', program);
    const tensor = (id: number): GraphTensor => parsed.tensors.find((each) => each.id === id)!;
    return {
      graph: parsed,
      kernels: info.kernels,
      loss: tensor(parsed.outputs[0]!),
      paramGrads: Object.fromEntries([...parsed.gradients].map(([name, id]) => [name, tensor(id)])),
      plan: lib.text('program_show', program, 'plan'),
    };
  });
}
