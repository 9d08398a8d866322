// A small network learns XOR, and shows what each of its neurons does.
import { compile } from 'tensorgrad';
import { page, value } from 'kit/page.js';
import { canvas2d, colour, heatmap, ramp } from 'kit/draw.js';
import { network } from 'kit/network.js';
import { look, loss, Xor } from './model.js';

// The plane is a square of side x side pixels, from -0.5 to 1.5 in both inputs. The four points of
// the task come after its pixels in what is fed.
const side = 41, pixels = side * side;
const points = [[0, 0], [0, 1], [1, 0], [1, 1]], answers = [0, 1, 1, 0];
const places = Array.from({ length: pixels }, (_, i) =>
  [i % side, side - 1 - Math.floor(i / side)].map((each) => (2 * each) / (side - 1) - 0.5));
const plane = new Float32Array([...places, ...points].flat());

// The nodes of the drawing are the inputs, the hidden neurons and the output. What was seen last:
// the value of each node at each place, from -1 to 1, and the weights.
const hidden = [2, 3, 4, 5, 6, 7, 8, 9], output = 10;
let seen, chosen = output;

const get = (id) => document.getElementById(id);
const drawn = network(get('network'), {
  nodes: [
    { at: [4, 30], text: 'x₁' },
    { at: [4, 70], text: 'x₂' },
    ...hidden.map((_, j) => ({ at: [50, 6.5 + 12.4 * j], name: `Hidden neuron ${j + 1}` })),
    { at: [92, 50], name: 'Output' },
  ],
  // In the order of the weights: hidden.W is [2, 8], output.W is [8, 1].
  edges: [0, 1].flatMap((i) => hidden.map((node) => [i, node]))
    .concat(hidden.map((node) => [node, output])),
  describedBy: 'values',
  choose(node) {
    chosen = node;
    if (seen) show();
  },
});

// ---- drawing

function picture(canvas, node) {
  const { g, width, height } = canvas2d(canvas);
  const box = { x: 0, y: 0, width, height };
  const colours = ramp('--low', '--paper', '--high');
  heatmap(g, seen.nodes[node], { rows: side, columns: side, box, from: -1, smooth: true, colours });
  return { g, width, height };
}

function show() {
  drawn.show([...seen.weights['hidden.W'], ...seen.weights['output.W']], chosen);
  drawn.canvases.forEach(picture);
  const { g, width, height } = picture(get('plane'), chosen);
  g.textAlign = 'center';
  points.forEach(([a, b], i) => {
    const x = ((a + 0.5) / 2) * width, y = ((1.5 - b) / 2) * height;
    g.beginPath();
    g.arc(x, y, 12, 0, 2 * Math.PI);
    g.fillStyle = colour('--paper');
    g.strokeStyle = colour(answers[i] ? '--high' : '--low');
    g.lineWidth = 3;
    g.fill();
    g.stroke();
    g.fillStyle = colour('--ink');
    g.fillText(answers[i], x, y + 4);
  });
  get('values').textContent = describe();
}

const number = (x) => x.toFixed(2).replace('-', '−');
const term = (x) => `${x < 0 ? '−' : '+'} ${Math.abs(x).toFixed(2)}`;
function describe() {
  const { 'hidden.W': w, 'hidden.b': b, 'output.W': v } = seen.weights, j = chosen - 2;
  const values = [...seen.nodes[chosen].slice(pixels)];
  const at = (list) => list.map((x, i) => `${number(x)} at (${points[i].join(', ')})`).join(', ');
  if (chosen === output)
    return `The output is the probability of 1: ${at(values.map((x) => (x + 1) / 2))}.`;
  return `Hidden neuron ${j + 1} is tanh(${number(w[j])} x₁ ${term(w[8 + j])} x₂ ` +
    `${term(b[j])}): ${at(values)}. Its weight in the output is ${number(v[j])}.`;
}

page({
  name: 'xor',
  rate: 0.01,
  loss: 'cross-entropy',
  score: 'accuracy',
  async open({ run, rate }) {
    const train = await compile({
      model: new Xor(), loss, inputs: { x: [4, 2], y: [4, 1] },
      optimizer: { kind: 'sgd', lr: rate }, ...run,
    });
    const infer = await train.attach({ forward: look, inputs: { x: [pixels + 4, 2] } });
    const feed = { x: new Float32Array(points.flat()), y: new Float32Array(answers) };
    return {
      train,
      batch: () => feed, // the same four points in every step
      async draw() {
        const { output: answer, captures } = value(await infer.run({ x: plane }));
        const weights = await train.downloadParams();
        const all = captures.get('hidden'); // [pixels + 4, 8]
        const neurons = hidden.map((_, j) => answer.map((_, i) => all[8 * i + j]));
        seen = { nodes: [, , ...neurons, answer.map((p) => 2 * p - 1)], weights };
        show();
        return points.filter((_, i) => answer[pixels + i] > 0.5 === answers[i] > 0).length / 4;
      },
    };
  },
});
