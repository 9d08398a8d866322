// A perceptron: numbers in, numbers out.
import { Linear, Module, mean, relu, square, sub } from 'tensorgrad';

export class Mlp extends Module {
  constructor(width) {
    super();
    this.l1 = new Linear(1, width);
    this.l2 = new Linear(width, width);
    this.l3 = new Linear(width, 1);
  }
}

export function predict(m, x) {
  return m.l3.fwd(relu(m.l2.fwd(relu(m.l1.fwd(x))))); // [points, 1]
}

export function loss(m, { x, y }) {
  return mean(square(sub(predict(m, x), y)));
}
