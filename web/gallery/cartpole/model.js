// A policy: for a state of the cart and the pole, the logits of the actions "left" and "right". And
// the policy gradient (REINFORCE) with a baseline.
import {
  crossEntropy, div, greater, Linear, linspace, max, Module, mul, pow, reshape, softmax, sqrt,
  square, sub, sum, tanh, where,
} from 'tensorgrad';

export class Policy extends Module {
  constructor(width) {
    super();
    this.first = new Linear(4, width);
    this.second = new Linear(width, width);
    this.head = new Linear(width, 2);
  }
}

// state: [N, 4]. The result: [N, 2].
function logits(m, state) {
  return m.head.fwd(tanh(m.second.fwd(tanh(m.first.fwd(state)))));
}

// The probabilities of "left" and "right".
export const probabilities = (m, { state }) => softmax(logits(m, state));

// T time steps of E episodes. Episode e ends after length[e] steps; rows after it have weight 0.
//
// The return of a row is the discounted sum of the rewards from there on; each reward is 1. The
// baseline is the mean return at the same time. The advantage is their difference, scaled to a
// variance of 1. The gradient of this loss makes actions with a positive advantage more likely, and
// others less likely.
export function loss(m, { state, action, length }) {
  const E = length.shape[1], T = state.shape[0] / E;
  const left = sub(length, reshape(linspace(0, T - 1, T), [T, 1])); // [T, E]
  const weight = where(greater(left, 0), 1, 0); // [T, E]
  const returns = sub(1, pow(0.99, left)); // times 1 - 0.99
  const alive = sum(weight, -1, { keepDims: true }); // [T, 1]
  const baseline = div(sum(mul(returns, weight), -1, { keepDims: true }), max(alive, 1));
  const difference = mul(sub(returns, baseline), weight);
  const rows = sum(weight);
  const deviation = sqrt(div(sum(square(difference)), rows));
  const advantage = div(difference, max(deviation, 1e-3)); // [T, E]
  const surprise = crossEntropy(logits(m, state), action, { reduction: 'none' }); // -log p(action)
  return div(sum(mul(surprise, reshape(advantage, [-1]))), rows);
}
