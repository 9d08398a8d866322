// A policy learns to balance a pole, and plays while it learns.
import { compile } from 'tensorgrad';
import { canvas2d, colour } from 'kit/draw.js';
import { page, value } from 'kit/page.js';
import { loss, Policy, probabilities } from './model.js';
import { advance, edge, fallen, seconds, start } from './physics.js';

// Plays episodes side by side, with one run of the policy per time step. Row t * count + e of the
// result is time t of episode e.
async function play(policy, { count, most, random }) {
  const now = new Float32Array(4 * count), lengths = new Int32Array(count).fill(most);
  const state = new Float32Array(4 * count * most), action = new Int32Array(count * most);
  for (let e = 0; e < count; ++e) start(now, e, random);
  for (let t = 0; t < most && lengths.includes(most); ++t) {
    const { output } = value(await policy.run({ state: now }));
    state.set(now, 4 * count * t);
    for (let e = 0; e < count; ++e) {
      if (lengths[e] < most) continue; // it is over
      action[count * t + e] = random() < output[2 * e + 1] ? 1 : 0;
      advance(now, e, action[count * t + e]);
      if (fallen(now, e)) lengths[e] = t + 1;
    }
  }
  const length = Float32Array.from(lengths, (n) => (n === most ? 2 * most : n)); // would go on
  mean = lengths.reduce((sum, each) => sum + each) / count;
  return { state, action, length };
}

// ---- the cart that is drawn

const canvas = document.querySelector('#scene'), upright = document.querySelector('#upright');
const cart = new Float32Array(4);
let mean, push = 0, steps = 0; // length of episodes; the visitor's force; steps since a fall

function paint(chance) {
  const { g, width, height } = canvas2d(canvas);
  const metre = width / (2 * edge + 1), x = width / 2 + cart[0] * metre, ground = 0.8 * height;
  const box = (name, left, top, across, down) => {
    g.fillStyle = colour(name);
    g.fillRect(left, top, across, down);
  };
  box('--faint', width / 2 - edge * metre, ground, 2 * edge * metre, 2);
  box('--ink', x - 0.25 * metre, ground - 0.25 * metre, 0.5 * metre, 0.25 * metre);
  box('--accent', x, ground + 10, 2 * (chance - 0.5) * metre, 6); // what the policy wants
  box('--second', x, ground + 20, 0.1 * push * metre, 6);
  g.strokeStyle = colour(fallen(cart, 0) ? '--problem' : '--second');
  [g.lineWidth, g.lineCap] = [7, 'round'];
  g.beginPath();
  g.moveTo(x, ground - 0.25 * metre);
  g.lineTo(x + 2 * metre * Math.sin(cart[2]), ground - (0.25 + 2 * Math.cos(cart[2])) * metre);
  g.stroke();
  upright.textContent = `Upright for ${(steps * seconds).toFixed(1)} s.`;
}

// Plays in real time until the model is destroyed, and not while the page is hidden.
async function playLive(policy) {
  for (let due = 0; ; await new Promise(requestAnimationFrame)) {
    if (performance.now() < due) continue;
    if (fallen(cart, 0)) {
      start(cart, 0, Math.random);
      steps = 0;
    }
    const result = await policy.run({ state: cart });
    if (result.kind !== 'completed') return;
    advance(cart, 0, result.output[1] > 0.5, push); // the likelier action
    ++steps;
    paint(result.output[1]);
    due = performance.now() + (fallen(cart, 0) ? 600 : 1000 * seconds - 8);
  }
}

const pushCart = (force) => {
  push = force;
  setTimeout(() => (push = 0), 250);
};
for (const button of document.querySelectorAll('[data-force]'))
  button.onclick = () => pushCart(Number(button.dataset.force));
addEventListener('keydown', ({ key, target }) => {
  if (target.matches('input, select, [tabindex]')) return; // these use the arrow keys themselves
  if (key === 'ArrowLeft' || key === 'ArrowRight') pushCart(key === 'ArrowLeft' ? -8 : 8);
});

page({
  name: 'cartpole',
  rate: 0.001,
  loss: 'policy gradient (it need not fall)',
  score: 'mean episode length',
  sources: ['model.js', 'page.js', 'physics.js'],
  async open({ run, rate, small }) {
    const count = small ? 4 : 16, most = small ? 25 : 200, rows = count * most;
    const action = { shape: [rows], dtype: 'i32' };
    const inputs = { state: [rows, 4], action, length: [1, count] };
    const model = new Policy(small ? 8 : 32), optimizer = { kind: 'adam', lr: rate };
    const train = await compile({ model, loss, inputs, optimizer, ...run });
    const attach = (n) => train.attach({ forward: probabilities, inputs: { state: [n, 4] } });
    const policy = await attach(count);
    playLive(await attach(1));
    const batch = (random) => play(policy, { count, most, random });
    const reset = () => (mean = undefined);
    return { train, batch, draw: () => mean, reset };
  },
});
