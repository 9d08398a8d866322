// A velocity field learns to carry noise into a shape: a word, or what the visitor draws.
import { compile } from 'tensorgrad';
import { canvas2d, colour } from 'kit/draw.js';
import { page } from 'kit/page.js';
import { generator } from 'kit/random.js';
import { Sketch } from 'kit/sketch.js';
import { Field, loss, move } from './model.js';

// ---- the shape: its pixels cover the plane from (-2.4, -1.6) to (2.4, 1.6)

const [plane, word, clear] = ['plane', 'word', 'clear'].map((id) => document.getElementById(id));
const columns = 150, rows = 100, unit = columns / 4.8; // pixels per unit
const shape = new Sketch(plane, { columns, rows, line: 9, name: 'flow' });
plane.addEventListener('pointerdown', () => (word.value = ''));
word.oninput = () => word.value.trim() && shape.write(word.value.trim());
clear.onclick = () => shape.clear();

// Noise, points of the shape, and times.
function batchOf(points, random) {
  const noise = Float32Array.from({ length: 2 * points }, random.normal);
  const data = new Float32Array(2 * points), t = Float32Array.from({ length: points }, random);
  for (let i = 0; i < points; ++i) {
    const pixel = shape.pixels[random.integer(shape.pixels.length)];
    data[2 * i] = ((pixel % columns) + random() - columns / 2) / unit;
    data[2 * i + 1] = (Math.floor(pixel / columns) + random() - rows / 2) / unit;
  }
  return { noise, data, t };
}

// ---- the particles: each flies for some ticks, rests on the shape, and begins again as noise

const still = matchMedia('(prefers-reduced-motion: reduce)').matches; // shows landed ones only
const count = 2000, flight = 30, rest = still ? 6 : 50, tickMs = 80, trail = 8;
const random = generator(1), clamp = (z) => Math.min(Math.max(z, 0), 1);
let x = Float32Array.from({ length: 2 * count }, random.normal); // [count, 2]
let before = Array(trail).fill(x); // where they were, the latest first
const age = Int16Array.from({ length: count }, () => (still ? 0 : -random.integer(flight + rest)));

function advance(next) {
  before = [x, ...before.slice(0, -1)];
  x = next;
  for (let p = 0; p < count; ++p) {
    if (++age[p] < flight + rest) continue;
    age[p] = 0;
    const place = [random.normal(), random.normal()];
    for (const each of [x, ...before]) each.set(place, 2 * p);
  }
}

// The share of the landed particles that are on the shape, or next to it.
function score() {
  const landed = [...age.keys()].filter((p) => age[p] >= flight);
  const pixel = (p) => [x[2 * p] * unit + columns / 2, x[2 * p + 1] * unit + rows / 2];
  return landed.filter((p) => shape.near(...pixel(p))).length / landed.length || undefined;
}

// Draws the particles between their last places (part 0) and those of now (part 1).
function paint(part) {
  const { g, width, height } = canvas2d(plane);
  const zoom = width / 4.8, size = Math.max(2, width / 300) / zoom;
  const now = x.map((to, i) => before[0][i] + part * (to - before[0][i]));
  g.globalAlpha = 0.2;
  g.drawImage(shape.canvas, 0, 0, width, height);
  g.translate(width / 2, height / 2);
  g.scale(zoom, zoom);
  [g.lineWidth, g.strokeStyle, g.fillStyle] = [1 / zoom, colour('--second'), colour('--accent')];
  [now, ...before].slice(0, still ? 0 : trail).forEach((line, k) => {
    g.globalAlpha = 0.45 * (1 - k / trail);
    g.beginPath();
    for (let p = 0; p < count; ++p) {
      if (age[p] < 0 || age[p] > flight + trail) continue;
      g.moveTo(line[2 * p], line[2 * p + 1]);
      g.lineTo(before[k][2 * p], before[k][2 * p + 1]);
    }
    g.stroke();
  });
  for (let p = 0; p < count; ++p) {
    g.globalAlpha = clamp(age[p] / flight) ** 2 * clamp((flight + rest - age[p]) / 6);
    g.fillRect(now[2 * p] - size / 2, now[2 * p + 1] - size / 2, size, size);
  }
}

// Draws until the next tick. A page in the background has no frames: nothing moves there.
async function tick() {
  const began = performance.now();
  for (let part = 0; part < 1; ) {
    part = clamp(((await new Promise(requestAnimationFrame)) - began) / tickMs);
    if (!still || age[0] === flight) paint(still ? 1 : part);
  }
}

// Each tick moves the particles in flight by one run of the model, until that is destroyed.
async function fly(infer) {
  for (;;) {
    const t = Float32Array.from(age, (ticks) => clamp(ticks / flight));
    const dt = t.map((time, p) => (time < 1 && age[p] >= 0 ? 1 / flight : 0));
    const [result] = await Promise.all([infer.run({ x, t, dt }), tick()]);
    if (result.kind !== 'completed') return;
    advance(result.output);
  }
}

page({
  name: 'flow',
  rate: 0.004,
  loss: 'mean squared error of the velocity',
  score: 'landed on the shape',
  async open({ run, rate, small }) {
    if (shape.pixels.length === 0) await shape.recall(word.value);
    const points = small ? 32 : 256;
    const inputs = { noise: [points, 2], data: [points, 2], t: [points, 1] };
    const model = new Field(small ? 8 : 64), optimizer = { kind: 'adam', lr: rate };
    const train = await compile({ model, loss, inputs, optimizer, ...run });
    const particles = { x: [count, 2], t: [count, 1], dt: [count, 1] };
    const infer = await train.attach({ forward: move, inputs: particles });
    fly(infer);
    return { train, batch: (random) => batchOf(points, random), draw: score };
  },
});
