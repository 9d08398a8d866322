// tensorgrad in WebAssembly beside TensorFlow.js, under Node, on one thread. Both compute the same
// numbers from the same weights, which is checked first. Rounds alternate; a ratio is that of one
// round, and above 1 where tensorgrad is faster.
//
//   ./tg web --sizes && cd bench/web && npm ci --ignore-scripts && node compare.mjs [--rounds 7] [--json]
import { parseArgs } from 'node:util';
import { pathToFileURL } from 'node:url';
import { cpus } from 'node:os';

import * as ours from './ours.mjs';
import * as theirs from './tfjs.mjs';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '0.5' }, // for each side of a round
    package: { type: 'string', default: new URL('../../build/web/package', import.meta.url).pathname },
    json: { type: 'boolean', default: false },
  },
});
const tg = await import(pathToFileURL(`${options.package}/dist/index.js`));

// ---- the same numbers for both

let state = 1;
function draw() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 31 - 1; // -1 to 1
}
function array(shape, reach) {
  const size = shape.reduce((product, n) => product * n, 1);
  return { shape, values: Float32Array.from({ length: size }, () => reach * draw()) };
}
function layers(shapes) {
  return Object.fromEntries(
    Object.entries(shapes).flatMap(([name, [weight, bias]]) => {
      const inputs = name.startsWith('c') ? weight.slice(1).reduce((a, b) => a * b) : weight[0];
      return [
        [`${name}.W`, array(weight, Math.sqrt(3 / inputs))],
        [`${name}.b`, array([bias], 0.1)],
      ];
    }),
  );
}

const x = array([256, 1], 3).values;
const mlp = {
  weights: layers({ l1: [[1, 64], 64], l2: [[64, 64], 64], l3: [[64, 1], 1] }),
  x,
  y: x.map(Math.sin),
};
const shape = [32, 1, 28, 28];
const cnn = {
  weights: layers({ c1: [[8, 1, 3, 3], 8], c2: [[16, 8, 3, 3], 16], fc: [[784, 10], 10] }),
  shape,
  x: array(shape, 1).values,
  y: Int32Array.from({ length: 32 }, (_, i) => i % 10),
};

const tasks = [
  { name: 'train mlp_sin', backend: 'wasm', work: 'train_mlp', data: mlp, wanted: 5 },
  { name: 'run a small CNN', backend: 'wasm', work: 'run_cnn', data: cnn, wanted: 1 },
  { name: 'train a small CNN', backend: 'cpu', work: 'train_cnn', data: cnn, wanted: 10 },
];

// ---- measuring

async function ms_of(work, count) {
  const start = performance.now();
  await work(count);
  return (performance.now() - start) / count;
}

// How often the work fits into a side of a round, by its second call.
async function count_of(work) {
  await work(1);
  return Math.max(1, Math.round((1000 * Number(options.seconds)) / (await ms_of(work, 1))));
}

function check_same(name, own, other) {
  const most = Math.max(...other.map(Math.abs));
  own.forEach((value, i) => {
    if (!(Math.abs(value - other[i]) <= 1e-4 * most))
      throw new Error(`${name}: the results differ: ${value} and ${other[i]}`);
  });
}

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
const median = (numbers) => sorted(numbers)[numbers.length >> 1];
const text = (ms) => `${ms.toFixed(3)} ms`;

if (!options.json)
  console.log(`${cpus()[0].model}, Node ${process.versions.node}, ${options.rounds} rounds`);
let missed = 0;
for (const { name, backend, work, data, wanted } of tasks) {
  await theirs.use(backend);
  const own = await ours[work](tg, data);
  const other = theirs[work](data);
  check_same(name, Array.from(await own(1)), Array.from(await other(1)));
  const counts = [await count_of(own), await count_of(other)];
  const rounds = [];
  for (let i = 0; i < Number(options.rounds); ++i) {
    const ms = i % 2 ? [0, await ms_of(other, counts[1])] : [await ms_of(own, counts[0]), 0];
    if (i % 2) ms[0] = await ms_of(own, counts[0]);
    else ms[1] = await ms_of(other, counts[1]);
    rounds.push({ own: ms[0], other: ms[1], ratio: ms[1] / ms[0] });
  }
  const ratios = sorted(rounds.map(({ ratio }) => ratio));
  const line = {
    task: name,
    backend: `tfjs ${backend}`,
    ms: median(rounds.map(({ own: ms }) => ms)),
    tfjs_ms: median(rounds.map(({ other: ms }) => ms)),
    ratio: median(ratios),
    lowest: ratios[0],
    highest: ratios.at(-1),
    wanted,
  };
  if (line.ratio < wanted) ++missed;
  if (options.json) console.log(JSON.stringify(line));
  else
    console.log(
      `${name}: ${text(line.ms)}, ${line.backend} ${text(line.tfjs_ms)}: ${line.ratio.toFixed(2)} times ` +
        `as fast (${line.lowest.toFixed(2)} to ${line.highest.toFixed(2)}; at least ${wanted} is wanted)`,
    );
}
process.exitCode = missed > 0 ? 1 : 0;
