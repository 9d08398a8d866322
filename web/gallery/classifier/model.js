// A perceptron with two hidden layers that assigns points of the plane to one of four classes.
import { crossEntropy, div, Linear, max, Module, mul, softmax, sum, tanh } from 'tensorgrad';

export class Classifier extends Module {
  constructor(width) {
    super();
    this.first = new Linear(2, width);
    this.second = new Linear(width, width);
    this.head = new Linear(width, 4);
  }
}

function logits(model, x) {
  const h = tanh(model.second.fwd(tanh(model.first.fwd(x))));
  return model.head.fwd(h); // [B, 4]
}

// The mean cross-entropy of the points whose weight is 1. Rows without a point have weight 0.
export function loss(model, { x, y, weight }) {
  const each = crossEntropy(logits(model, x), y, { reduction: 'none' }); // [B]
  return div(sum(mul(each, weight)), max(sum(weight), 1));
}

// The probability of each class, [B, 4].
export const probabilities = (model, { x }) => softmax(logits(model, x));
