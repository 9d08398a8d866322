// A network divides the plane between classes of points; visitors add points.
import { compile } from 'tensorgrad';
import { page, value } from 'kit/page.js';
import { canvas2d, colour, heatmap, rgb } from 'kit/draw.js';
import { pick } from 'kit/pick.js';
import { pointSets, pointsOf } from 'kit/points.js';
import { recall, remember } from 'kit/remember.js';
import { Classifier, loss, probabilities } from './model.js';

// Shapes are fixed, so the batch always has `most` rows; those without a point have weight 0. The
// plane goes from -span to span, and has side x side pixels.
const most = 512, side = 96, pixels = side * side, span = 1.1;
const classes = { blue: '#3f83d8', orange: '#d9711c', green: '#2f9e6e', purple: '#a65cc4' };
const colours = Object.values(classes);

// What the visitor chose stays in the browser's storage, as the model does.
const data = recall('classifier', { set: 'two spirals', added: [] });
let points, feed;
function prepare() {
  remember('classifier', data);
  points = [...data.added, ...pointsOf(data.set, 300)].slice(0, most);
  feed = { x: new Float32Array(2 * most), y: new Int32Array(most), weight: new Float32Array(most) };
  points.forEach(([x, y, c], i) => {
    feed.x.set([x, y], 2 * i);
    feed.y[i] = c;
    feed.weight[i] = 1;
  });
}
prepare();

// ---- drawing

const canvas = document.getElementById('plane');
const across = (i) => ((i + 0.5) / side) * 2 * span - span;
const grid = Float32Array.from({ length: 2 * pixels }, (_, i) =>
  (i % 2 ? -across(Math.floor(i / 2 / side)) : across((i / 2) % side)));

const best = (p, i) => [0, 1, 2, 3].reduce((a, c) => (p[4 * i + c] > p[4 * i + a] ? c : a), 0);

// p: the probabilities, [pixels + most, 4]. Returns how many of the points are right.
function draw(p) {
  const { g, width, height } = canvas2d(canvas);
  const paper = rgb('--paper'), inks = colours.map(rgb);
  // Half of a pixel's colour is that of the likeliest class, so that the boundary shows.
  const mixed = (i) => {
    const likeliest = inks[best(p, i)];
    const mean = (k) => inks.reduce((sum, ink, c) => sum + p[4 * i + c] * ink[k], 0);
    return paper.map((each, k) => 0.4 * each + 0.3 * likeliest[k] + 0.3 * mean(k));
  };
  const box = { x: 0, y: 0, width, height }, places = [...Array(pixels).keys()];
  heatmap(g, places, { rows: side, columns: side, box, smooth: true, colours: mixed });
  const rings = [colour('--ink'), colour('--paper')];
  let right = 0;
  points.forEach(([x, y, c], i) => {
    const correct = Number(best(p, pixels + i) === c);
    right += correct;
    g.beginPath();
    g.arc(((x + span) / 2 / span) * width, ((span - y) / 2 / span) * height, 4, 0, 2 * Math.PI);
    g.fillStyle = colours[c];
    g.strokeStyle = rings[correct];
    g.lineWidth = 2 - correct;
    g.fill();
    g.stroke();
  });
  return points.length ? right / points.length : undefined;
}

// ---- choosing: a data set, and dots of a class

let redraw = () => {};
function change(choice) {
  Object.assign(data, choice);
  prepare();
  redraw();
}
const list = document.getElementById('sets');
list.append(...pointSets.map((name) => new Option(name)));
list.value = data.set;
list.onchange = () => change({ set: list.value });
document.getElementById('remove').onclick = () => change({ added: [] });
document.getElementById('classes').innerHTML = Object.keys(classes).map((name, c) =>
  `<label style="border-color: ${colours[c]}">
    <input type="radio" name="class" value="${c}" ${c ? '' : 'checked'}> ${name}</label>`).join('');
pick(canvas, 'Add a dot', (right, down) => {
  const c = Number(document.querySelector('[name="class"]:checked').value);
  change({ added: [[(2 * right - 1) * span, (1 - 2 * down) * span, c], ...data.added] });
});

page({
  name: 'classifier',
  rate: 0.005,
  loss: 'cross-entropy',
  score: 'accuracy',
  async open({ run, rate, small, redraw: draws }) {
    redraw = draws;
    const train = await compile({
      model: new Classifier(small ? 8 : 32), loss,
      inputs: { x: [most, 2], y: { shape: [most], dtype: 'i32' }, weight: [most] },
      optimizer: { kind: 'adamw', lr: rate, weightDecay: 0.3 }, ...run,
    });
    const infer = await train.attach({ forward: probabilities, inputs: { x: [pixels + most, 2] } });
    return {
      train,
      batch: () => feed,
      async draw() {
        return draw(value(await infer.run({ x: new Float32Array([...grid, ...feed.x]) })).output);
      },
    };
  },
});
