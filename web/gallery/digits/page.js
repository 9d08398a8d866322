// A convolutional network learns to read digits, also those that the visitor draws.
import { compile, singleFlight } from 'tensorgrad';
import { bars } from 'kit/bars.js';
import { digits, drawDigit } from 'kit/digits.js';
import { canvas2d, colour } from 'kit/draw.js';
import { Pad } from 'kit/pad.js';
import { page, value } from 'kit/page.js';
import { Reader, loss, pixels, probabilities, side } from './model.js';

const first = 9000; // it trains on the digits before this one; the others are for tests
const element = (id) => document.getElementById(id);
let data, read = () => {};
const digit = (i) => data.images.subarray(i * pixels, (i + 1) * pixels);

// The visitor draws on the pad, or takes a digit of the test.
const pad = new Pad(element('pad'), () => read());
element('clear').onclick = () => pad.show();
element('take').onclick = () => data && pad.show(digit(first + Math.floor(1000 * Math.random())));

// The likeliest digit of image i, from the probabilities p [images, 10].
function likeliest(p, i = 0) {
  const some = p.subarray(10 * i, 10 * (i + 1));
  return some.indexOf(Math.max(...some));
}

// ---- drawing

function drawOpinion(image, p) {
  pad.draw();
  const { g, width } = canvas2d(element('seen')), best = likeliest(p);
  if (image) drawDigit(g, image, { size: width });
  bars(element('bars'), image ? p : p.map(() => 0), best);
  const chance = Math.round(100 * p[best]);
  element('opinion').textContent = image ? `It reads ${best}: ${chance} %` : 'Draw a digit.';
}

function drawMistakes(p) {
  const tests = p.length / 10;
  const wrong = [...Array(tests).keys()].filter((i) => likeliest(p, i) !== data.labels[first + i]);
  element('wrong').textContent = `${wrong.length} of ${tests} test digits are read wrongly.`;
  const { g, width } = canvas2d(element('mistakes')), size = width / 8;
  g.textAlign = 'center';
  g.fillStyle = colour('--problem');
  wrong.slice(0, 40).forEach((i, n) => {
    const x = (n % 8) * size, y = Math.floor(n / 8) * (size + 22);
    drawDigit(g, digit(first + i), { x, y, size });
    g.fillText(`${data.labels[first + i]} → ${likeliest(p, i)}`, x + size / 2, y + size + 12);
  });
  return 1 - wrong.length / tests;
}

// ---- the page

page({
  name: 'digits',
  rate: 0.005,
  loss: 'cross-entropy',
  score: 'accuracy',

  async open({ run, rate, small }) {
    data ??= await digits();
    if (!pad.image()) pad.show(digit(first));
    // Software drivers of a GPU take minutes to compile a convolution whose windows overlap.
    const size = small ? { channels: [2, 4], kernels: [4, 1], stride: 4, pool: 1 }
      : { channels: [8, 16], kernels: [5, 3], stride: 2, pool: 2 };
    const [count, tests] = small ? [4, 4] : [32, 1000];
    const train = await compile({
      model: new Reader(size), loss, ...run,
      inputs: { images: [count, pixels], labels: { shape: [count], dtype: 'i32' } },
      optimizer: { kind: 'adam', lr: rate },
    });
    const reader = (count) =>
      train.attach({ forward: probabilities, inputs: { images: [count, pixels] } });
    const infer = await reader(1), test = await reader(tests);
    const exam = new Float32Array(data.images.subarray(first * pixels).subarray(0, tests * pixels));

    // Reads the visitor's digit, also while it is drawn: of many calls the newest counts.
    read = singleFlight(async () => {
      const image = pad.image();
      const result = await infer.run({ images: new Float32Array(image ?? pixels) });
      if (result.kind === 'completed') drawOpinion(image, result.output);
    });

    return {
      train,

      // Each digit is moved by up to 2 pixels, which gives more different ones.
      batch(random) {
        const images = new Float32Array(count * pixels), labels = new Int32Array(count);
        for (let n = 0; n < count; ++n) {
          const i = random.integer(first);
          const move = random.integer(5) - 2 + side * (random.integer(5) - 2);
          images.set(digit(i), Math.min(Math.max(n * pixels + move, 0), images.length - pixels));
          labels[n] = data.labels[i];
        }
        return { images, labels };
      },

      async draw() {
        await read();
        return drawMistakes(value(await test.run({ images: exam })).output);
      },
    };
  },
});
