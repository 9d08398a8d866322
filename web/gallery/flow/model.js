// A velocity field in the plane: where a particle at `x` moves at time `t`. It is learned by flow
// matching (rectified flow): on the straight way from a random point to a point of the shape,
//   x(t) = (1 - t) noise + t data,   the velocity is   data - noise.
// At one place many ways cross. The loss is the squared error, so the field learns their mean, and
// that field carries the noise into the shape.
import { add, concat, cos, Linear, mean, Module, mul, silu, sin, square, sub } from 'tensorgrad';

const octaves = 4; // sines and cosines of 1, 2, 4 and 8 times a coordinate

export class Field extends Module {
  constructor(width) {
    super();
    this.first = new Linear(3 * (1 + 2 * octaves), width);
    this.second = new Linear(width, width);
    this.third = new Linear(width, width);
    this.head = new Linear(width, 2);
  }
}

// Waves of several lengths, which make small details easy to learn.
function waves(z) {
  const parts = [z];
  for (let i = 0; i < octaves; ++i) parts.push(sin(mul(z, 2 ** i)), cos(mul(z, 2 ** i)));
  return concat(parts, -1);
}

// x: [N, 2], t: [N, 1]. The result: [N, 2].
export function velocity(m, x, t) {
  const h = silu(m.first.fwd(waves(concat([x, t], -1))));
  return m.head.fwd(silu(m.third.fwd(silu(m.second.fwd(h)))));
}

export function loss(m, { noise, data, t }) {
  const x = add(mul(noise, sub(1, t)), mul(data, t));
  return mean(square(sub(velocity(m, x, t), sub(data, noise))));
}

// Moves particles by one step of time `dt`, with the velocity of the middle of the step.
export function move(m, { x, t, dt }) {
  const half = mul(dt, 0.5);
  const middle = add(x, mul(velocity(m, x, t), half));
  return add(x, mul(velocity(m, middle, add(t, half)), dt));
}
