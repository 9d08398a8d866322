// A transformer learns to add two numbers below 100.
import { compile } from 'tensorgrad';
import { canvas2d, colour, heatmap, ramp } from 'kit/draw.js';
import { page, value } from 'kit/page.js';
import { generator } from 'kit/random.js';
import { Adder, answer, digits, examples, length, loss, observed, share, write } from './model.js';

// ---- data: sums [a, b]. If a + b is held out of training, so is b + a.

const heldOut = [], trained = [], random = generator(1);
for (let a = 0; a < 100; ++a)
  for (let b = a; b < 100; ++b)
    (random() < 0.1 ? heldOut : trained).push(...(a === b ? [[a, b]] : [[a, b], [b, a]]));
const listed = heldOut.filter((_, i) => i % 50 === 0);
const exam = examples(heldOut);

// ---- drawing

const element = (id) => document.getElementById(id);
const chosen = () => [element('a'), element('b')].map((input) =>
  Math.min(Math.max(Math.trunc(input.valueAsNumber || 0), 0), 99));

function drawAnswer([a, b], text, p) {
  const right = answer([a, b]);
  element('answer').innerHTML = Array.from(text, (digit, i) => {
    const chance = Math.round(100 * p[10 * i + Number(digit)]);
    const kind = digit === right[i] ? 'right' : 'wrong';
    return `<span class="digit ${kind}">${digit}<small>${chance} %</small></span>`;
  }).reverse().join('');
  const seen = trained.some((sum) => sum[0] === a && sum[1] === b);
  element('verdict').textContent = (text === right ? 'Right. ' : `Wrong: ${a}+${b} is ${a + b}. `) +
    (seen ? 'It trains on this sum.' : 'It never sees this sum in training.');
}

function drawList(texts) {
  element('list').innerHTML = listed.map(([a, b], i) => {
    const said = Number([...texts[i].slice(-digits)].reverse().join(''));
    const [kind, mark] = said === a + b ? ['right', '✓'] : ['wrong', '✗'];
    return `<li class="${kind}">${mark} ${a} + ${b} = ${said}</li>`;
  }).join('');
}

function drawMap(canvas, weights, text) { // weights [T, T]
  const { g, width } = canvas2d(canvas), cell = width / (length + 1);
  const box = { x: cell, y: cell, width: width - cell, height: width - cell };
  heatmap(g, weights, { rows: length, columns: length, box, colours: ramp('--panel', '--accent') });
  g.fillStyle = colour('--faint');
  [g.textAlign, g.textBaseline] = ['center', 'middle'];
  for (let i = 0; i < length; ++i) {
    g.fillText(text[i], 0.5 * cell, (i + 1.5) * cell);
    g.fillText(text[i], (i + 1.5) * cell, 0.5 * cell);
  }
}

// ---- the page

page({
  name: 'addition',
  rate: 0.004,
  loss: 'cross-entropy',
  score: 'right answers',

  async open({ run, rate, small, redraw }) {
    const [count, dim, layers, heads] = small ? [8, 16, 1, 2] : [64, 32, 2, 4];
    const ints = (...shape) => ({ shape, dtype: 'i32' });
    const inputs = (count) => ({ tokens: ints(count, length), answers: ints(count, digits) });
    const train = await compile({
      model: new Adder({ dim, layers, heads }), loss, inputs: inputs(count), ...run,
      optimizer: { kind: 'adamw', lr: rate, beta2: 0.98, weightDecay: 0.01, clipGradNorm: 1 },
    });
    const check = await train.attach({ forward: share, inputs: inputs(heldOut.length) });
    const infer = await train.attach({
      forward: observed, inputs: { tokens: ints(1 + listed.length, length) },
    });
    element('maps').innerHTML = Array.from({ length: layers * heads }, (_, i) => {
      const name = `Layer ${Math.floor(i / heads) + 1}, head ${(i % heads) + 1}`;
      return `<div><canvas role="img" aria-label="Attention: ${name}"></canvas>${name}</div>`;
    }).join('');
    element('sum').oninput = redraw;
    element('sum').onchange = () => chosen().forEach((n, i) => (element('ab'[i]).value = n));

    return {
      train,
      batch: (random) => examples(
        Array.from({ length: count }, () => trained[random.integer(trained.length)])),

      async draw() {
        const run = async (tokens) => value(await infer.run({ tokens }));
        const mine = chosen(), { texts, result } = await write(run, [mine, ...listed]);
        drawAnswer(mine, texts[0].slice(-digits), result.output);
        drawList(texts.slice(1));
        element('maps').querySelectorAll('canvas').forEach((canvas, i) => {
          const layer = result.captures.get(`layer${Math.floor(i / heads)}`); // [sums, H, T, T]
          const from = (i % heads) * length ** 2;
          drawMap(canvas, layer.subarray(from, from + length ** 2), texts[0]);
        });
        return value(await check.run(exam)).output[0];
      },
    };
  },
});
