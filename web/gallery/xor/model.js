// A network with one hidden layer: 2 inputs, 8 hidden neurons, 1 output.
import { bceWithLogits, capture, Linear, Module, sigmoid, tanh } from 'tensorgrad';

export class Xor extends Module {
  hidden = new Linear(2, 8);
  output = new Linear(8, 1);
}

const activations = (model, x) => tanh(model.hidden.fwd(x)); // [B, 8]

// The loss: x is [B, 2], y is [B, 1] with 0 or 1.
export function loss(model, { x, y }) {
  return bceWithLogits(model.output.fwd(activations(model, x)), y);
}

// The probability of 1 for each x. Each run also returns the hidden neurons, because of capture().
export function look(model, { x }) {
  const hidden = capture('hidden', activations(model, x));
  return sigmoid(model.output.fwd(hidden));
}
