// A perceptron learns the sine from points.
import { compile } from 'tensorgrad';
import { plot } from 'kit/draw.js';
import { page, value } from 'kit/page.js';
import { Mlp, loss, predict } from './model.js';

const canvas = document.querySelector('#fit');
const places = Float32Array.from({ length: 256 }, (_, i) => Math.PI * (i / 127.5 - 1));

page({
  name: 'sine',
  rate: 0.005,
  loss: 'mean squared error',

  async open({ run, rate, small }) {
    const points = small ? 32 : 256;
    const train = await compile({
      model: new Mlp(small ? 8 : 64),
      loss,
      inputs: { x: [points, 1], y: [points, 1] },
      optimizer: { kind: 'adam', lr: rate },
      ...run,
    });
    const infer = await train.attach({
      forward: (m, { x }) => predict(m, x),
      inputs: { x: [places.length, 1] },
    });
    let seen = { x: [], y: [] };

    return {
      train,

      batch(random) {
        const x = Float32Array.from({ length: points }, () => Math.PI * (2 * random() - 1));
        seen = { x, y: x.map(Math.sin) };
        return seen;
      },

      async draw() {
        const { output } = value(await infer.run({ x: places }));
        plot(canvas, {
          x: [-Math.PI, Math.PI],
          y: [-1.25, 1.25],
          xMarks: [[-Math.PI, '−π'], [0, '0'], [Math.PI, 'π']],
          yMarks: [[-1, '−1'], [0, '0'], [1, '1']],
          curves: [
            { x: places, y: places.map(Math.sin), colour: '--second', dash: [2, 5] },
            { ...seen, colour: '--second', points: 1.5 },
            { x: places, y: output, colour: '--accent' },
          ],
        });
      },
    };
  },
});
