// A page of somebody who uses the package: vite.test.mjs builds it, with the types checked.
import {
  compile,
  crossEntropy,
  Linear,
  Module,
  relu,
  type CompiledTraining,
  type Tensor,
} from 'tensorgrad';

class Classifier extends Module {
  hidden = new Linear(2, 16);
  out = new Linear(16, 2);
}
const logits = (m: Classifier, x: Tensor): Tensor => m.out.fwd(relu(m.hidden.fwd(x)));

// Is a point inside of the circle?
function batch(): { x: Float32Array; y: Int32Array } {
  const x = Float32Array.from({ length: 128 }, () => 2 * Math.random() - 1);
  const y = Int32Array.from({ length: 64 }, (_, i) => (Math.hypot(x[2 * i]!, x[2 * i + 1]!) < 0.7 ? 1 : 0));
  return { x, y };
}

async function train(): Promise<string> {
  const inputs = { x: [64, 2], y: { shape: [64], dtype: 'i32' } } as const;
  const training: CompiledTraining<Classifier, typeof inputs> = await compile({
    model: new Classifier(),
    loss: (m, { x, y }) => crossEntropy(logits(m, x), y),
    inputs,
    optimizer: { kind: 'adam', lr: 0.02 },
    seed: 1,
  });
  const losses: number[] = [];
  for (let i = 0; i < 300; ++i) {
    const result = await training.step(batch());
    if (result.kind === 'failed') throw result.error;
    if (result.kind === 'completed') losses.push(result.loss);
  }
  // @ts-expect-error y is an Int32Array
  const wrong = await training.step({ x: new Float32Array(128), y: new Float32Array(64) });
  training.destroy();
  return `${wrong.kind}, ${losses.at(-1)! < 0.3 ? 'learned' : `not learned: ${losses.at(-1)}`}`;
}

train().then(
  (text) => (document.querySelector('output')!.textContent = text),
  (error: Error) => (document.querySelector('output')!.textContent = error.message),
);
