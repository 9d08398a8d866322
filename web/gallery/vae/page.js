// An autoencoder learns a plane of digits; visitors choose places of it.
import { compile } from 'tensorgrad';
import { page, value } from 'kit/page.js';
import { digits } from 'kit/digits.js';
import { canvas2d } from 'kit/draw.js';
import { drawImages } from 'kit/images.js';
import { pick } from 'kit/pick.js';
import { Autoencoder, decode, encode, loss } from './model.js';

// The planes show latent places from -span to span; `chosen` is the one that is decoded large.
const span = 3, chosen = [0, 0];
const get = (id) => document.getElementById(id);
const atlas = get('atlas'), codes = get('codes');

// ---- drawing

function drawCodes(centres, labels) {
  const { g, width, height } = canvas2d(codes);
  g.textAlign = 'center';
  g.textBaseline = 'middle';
  g.font = '600 11px system-ui, sans-serif';
  const lightness = matchMedia('(prefers-color-scheme: dark)').matches ? 0.75 : 0.55;
  labels.forEach((label, i) => {
    g.fillStyle = `oklch(${lightness} 0.17 ${36 * label})`;
    const [x, y] = [centres[2 * i] / span, centres[2 * i + 1] / span];
    g.fillText(label, ((1 + x) / 2) * width, ((1 - y) / 2) * height);
  });
}

// ---- choosing a place, in either of two planes

let decodeChosen = () => {};
const moves = [[atlas, 'Decode a place'], [codes, 'Decode a place between the digits']].map(
  ([canvas, label]) => pick(canvas, label, (right, down) => {
    for (const move of moves) move(right, down);
    [chosen[0], chosen[1]] = [(2 * right - 1) * span, (1 - 2 * down) * span];
    decodeChosen();
  }, { drag: true }));

// ---- the page

page({
  name: 'vae',
  rate: 0.003,
  loss: 'reconstruction + divergence (nats)',
  async open({ run, rate, small }) {
    const { images, labels, count } = await digits(); // pixels from 0 to 255
    const rows = small ? 16 : 64, across = small ? 5 : 15, some = small ? 50 : 500;
    const train = await compile({
      model: new Autoencoder(small ? 32 : 128), loss, inputs: { x: [rows, 784] },
      optimizer: { kind: 'adam', lr: rate }, ...run,
    });
    const encoder = await train.attach({ forward: encode, inputs: { x: [some, 784] } });
    const decoder = await train.attach({ forward: decode, inputs: { z: [across ** 2, 2] } });
    const single = await train.attach({ forward: decode, inputs: { z: [1, 2] } });

    // Images as rows of numbers from 0 to 1.
    function rowsOf(ids) {
      const x = new Float32Array(784 * ids.length);
      ids.forEach((id, row) => {
        for (let i = 0; i < 784; ++i) x[784 * row + i] = images[784 * id + i] / 255;
      });
      return x;
    }
    const shown = Array.from({ length: some }, (_, i) => Math.floor((i * count) / some));
    const x = rowsOf(shown), shownLabels = shown.map((id) => labels[id]);
    const z = Float32Array.from({ length: 2 * across ** 2 }, (_, i) => {
      const cell = Math.floor(i / 2), column = cell % across, row = Math.floor(cell / across);
      return (i % 2 ? 1 - (2 * row + 1) / across : (2 * column + 1) / across - 1) * span;
    });

    decodeChosen = async () => {
      const { kind, output } = await single.run({ z: new Float32Array(chosen) });
      if (kind !== 'completed') return; // draw() reports errors
      drawImages(get('decoded'), output);
      const [right, up] = chosen.map((each) => each.toFixed(2).replace('-', '−'));
      get('place').textContent = `The image at the place (${right}, ${up})`;
    };
    return {
      train,
      batch: (random) => ({ x: rowsOf(Array.from({ length: rows }, () => random.integer(count))) }),
      async draw() {
        drawImages(atlas, value(await decoder.run({ z })).output, { across });
        const { centre, reconstruction, divergence } = value(await encoder.run({ x })).outputs;
        drawCodes(centre, shownLabels);
        get('parts').textContent = `Of the loss, ${reconstruction[0].toFixed(1)} nats are for ` +
          `the reconstruction and ${divergence[0].toFixed(1)} for the divergence from N(0, 1).`;
        await decodeChosen();
      },
    };
  },
});
