// Writes the ops and layers of the package from the library's registry: one typed function per op,
// one class per layer. A new op of the library appears in the package without another line.
//
// `probe(layer, args)` returns the names of the layer's parameters.

// Names that JavaScript or the package has for something else.
const op_names = {
  max: 'amax', // max(a, b) compares two operands, as in version 0.4.6
  min: 'amin',
  var: 'variance', // a keyword
};
// Written by hand in src/ops/ops.ts, because their signature differs.
const by_hand = new Set([
  ...['maximum', 'minimum', 'argmax', 'argmin', 'arange', 'gelu', 'split', 'rope'],
  ...['softmax_causal', 'categorical', 'cross_entropy', 'nll_loss', 'capture'],
  ...['masked_cross_entropy'], // crossEntropy with a mask
]);
// Types of options whose name would occur twice.
const options_names = { layer_norm: 'NormalizeOptions', Conv2d: 'Conv2dLayerOptions' };
// What the classes of version 0.4.6 call their arguments.
const field_names = {
  Linear: { in: 'inDim', out: 'outDim' },
  LayerNorm: { size: 'd' },
  RMSNorm: { size: 'd' },
  Embedding: { count: 'vocab', size: 'dim' },
  Conv2d: { in: 'inC', out: 'outC', kernel: 'kernelSize' },
};
const keywords = new Set(['in', 'default', 'var', 'with', 'new', 'delete', 'function', 'class']);

const kinds = {
  tensor: 'Operand',
  tensors: 'readonly Operand[]',
  number: 'number',
  integer: 'number',
  bool: 'boolean',
  text: 'string',
  shape: 'Shape',
  integers: 'readonly number[]',
  axes: 'number | readonly number[]',
  pair: 'number | readonly [number, number]',
};

function camel(name) {
  const words = name === 'keepdims' ? 'keep_dims' : name;
  return words.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}
function pascal(name) {
  const word = camel(name);
  return word[0].toUpperCase() + word.slice(1);
}
function type_of({ kind, words }) {
  if (words) return words.map((word) => `'${word}'`).join(' | ');
  if (!kinds[kind])
    throw new Error(`the registry has a kind that generate.mjs does not know: ${kind}`);
  return kinds[kind];
}
function parameter_name(name) {
  const word = camel(name);
  return keywords.has(word) ? `${word}_` : word;
}
function comment(sentence, indent = '') {
  return `${indent}/** ${sentence.replaceAll('*/', '* /')} */\n`;
}
function default_text({ default: value }) {
  return value === null || value === undefined ? '' : `Default: ${JSON.stringify(value)}.`;
}
function options_fields(optional) {
  return optional
    .map((parameter) => {
      const text = default_text(parameter);
      const field = `  ${camel(parameter.name)}?: ${type_of(parameter)};\n`;
      return (text ? comment(text, '  ') : '') + field;
    })
    .join('');
}

function op_text(op) {
  const name = op_names[op.name] ?? camel(op.name);
  const required = op.parameters.filter((parameter) => !('default' in parameter));
  const optional = op.parameters.filter((parameter) => 'default' in parameter);
  const options = options_names[op.name] ?? `${pascal(name)}Options`;
  const typed = [
    ...required.map((parameter) => `${parameter_name(parameter.name)}: ${type_of(parameter)}`),
    ...optional.map(
      (parameter) => `${parameter_name(parameter.name)}?: ${type_of(parameter)} | ${options}`,
    ),
    ...(optional.length > 0 ? [`options?: ${options}`] : []),
  ];
  const result = op.several ? 'Tensor[]' : 'Tensor';
  const names = op.parameters.map((parameter) => parameter.name).join(' ');
  const maker = op.several ? 'severalOp' : 'op';
  const made = `/* @__PURE__ */ ${maker}('${op.name}', '${names}', ${required.length})`;
  return (
    (optional.length > 0 ? `export interface ${options} {\n${options_fields(optional)}}\n` : '') +
    comment(op.sentence) +
    `export const ${name}: (${typed.join(', ')}) => ${result} =\n  ${made};\n`
  );
}

/** The text of generated/ops.ts. */
export function ops_module({ ops }) {
  const generated = ops.filter((op) => !by_hand.has(op.name));
  return (
    '// Generated from the registry by generate.mjs.\n' +
    "import { op, severalOp } from '../ops/call.js';\n" +
    "import type { Shape } from '../wasm/arrays.js';\n" +
    "import type { Operand, Tensor } from '../trace/tensor.js';\n\n" +
    generated.map(op_text).join('\n')
  );
}

// The parameters of the layer itself, not of layers in it. `absent`: the boolean argument, switched
// from its default, without which the parameter does not exist.
function layer_params(layer, probe) {
  const required = layer.parameters.filter((parameter) => !('default' in parameter));
  const args = Object.fromEntries(required.map(({ name }) => [name, 64]));
  const names = probe(layer.name, args);
  const params = names.filter((name) => !name.includes('.')).map((name) => ({ name }));
  for (const flag of layer.parameters.filter(({ kind }) => kind === 'bool')) {
    const others = probe(layer.name, { ...args, [flag.name]: !flag.default });
    for (const param of params)
      if (!others.includes(param.name))
        param.absent = `this.argument('${flag.name}') === ${!flag.default}`;
  }
  return { params, weights: weights_of(params, params.length === names.length) };
}

// The parameters that the options `init` and `decay` mean. `whole`: there are no layers in it.
function weights_of(params, whole) {
  if (!whole) return [];
  return params.some(({ name }) => name === 'W') ? ['W'] : params.map(({ name }) => name);
}

function base_of(weights) {
  if (weights.length === 0) return 'LayerOptions';
  return weights[0] === 'W' ? 'WeightOptions' : 'DecayOptions';
}

function getter_text({ name, absent }) {
  const parameter = `this.parameter('${name}')`;
  const [type, value] = absent
    ? ['Tensor | null', `${absent} ? null : ${parameter}`]
    : ['Tensor', parameter];
  return `  get ${name}(): ${type} {\n    return ${value};\n  }\n`;
}

function layer_text(layer, probe) {
  const { name, sentence, parameters } = layer;
  const required = parameters.filter((parameter) => !('default' in parameter));
  const optional = parameters.filter((parameter) => 'default' in parameter);
  const { params, weights } = layer_params(layer, probe);
  const fields = required.map((parameter) => ({
    field: field_names[name]?.[parameter.name] ?? parameter_name(parameter.name),
    type: type_of(parameter),
  }));
  const options = options_names[name] ?? `${name}Options`;
  const type = `type_of_${name}`;
  const all = (list) => list.map((each) => each.name).join(' ');
  const inputs = layer.inputs.map((input) => parameter_name(input.name));
  const given = [...fields.map(({ field }) => field), 'options'].join(', ');
  const typed = [
    ...fields.map(({ field, type: each }) => `${field}: ${each}`),
    `options: ${options} = {}`,
  ];
  return [
    `export interface ${options} extends ${base_of(weights)} {\n${options_fields(optional)}}\n`,
    `const ${type} = /* @__PURE__ */ layerType('${name}', '${all(parameters)}', `,
    `${required.length}, '${weights.join(' ')}', '${all(layer.inputs)}');\n`,
    comment(sentence),
    `export class ${name} extends Layer {\n`,
    ...fields.map(({ field, type: each }) => `  readonly ${field}: ${each};\n`),
    `  constructor(${typed.join(', ')}) {\n    super(${type}, [${given}], ${name});\n`,
    ...fields.map(({ field }) => `    this.${field} = ${field};\n`),
    '  }\n',
    ...params.map(getter_text),
    `  fwd(${inputs.map((input) => `${input}: Tensor`).join(', ')}): Tensor {\n`,
    `    return this.apply([${inputs.join(', ')}], this.fwd);\n  }\n}\n`,
  ].join('');
}

/** The text of generated/layers.ts. */
export function layers_module({ layers }, probe) {
  return (
    '// Generated from the registry by generate.mjs.\n' +
    "import { Layer, layerType } from '../nn/layer.js';\n" +
    "import type { DecayOptions, LayerOptions, WeightOptions } from '../nn/layer.js';\n" +
    "import type { Tensor } from '../trace/tensor.js';\n\n" +
    layers.map((layer) => layer_text(layer, probe)).join('\n')
  );
}
