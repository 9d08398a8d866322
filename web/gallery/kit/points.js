// Sets of points in the plane, in classes, between -1 and 1 on both axes.
import { generator } from './random.js';

const turn = 2 * Math.PI;

// at(c, u) is the angle and the radius of a point of class c, where u is random in [0, 1).
const sets = {
  'two spirals': {
    classes: 2, noise: 0.02, at: (c, u) => [9 * u + turn * (c / 2), 0.1 + 0.85 * u],
  },
  'three spirals': {
    classes: 3, noise: 0.02, at: (c, u) => [5 * u + turn * (c / 3), 0.1 + 0.85 * u],
  },
  circles: { classes: 3, noise: 0.05, at: (c, u) => [turn * u, 0.1 + 0.38 * c] },
  moons: {
    classes: 2, noise: 0.06, at: (c, u) => [(turn / 2) * (u + c), 0.6],
    centre: (c) => (c ? [0.3, 0.15] : [-0.3, -0.15]),
  },
  'three blobs': { classes: 3, noise: 0.16, at: (c) => [turn * (c / 3 + 0.25), 0.55] },
  'four blobs': { classes: 4, noise: 0.16, at: (c) => [turn * (c / 4 + 0.125), 0.65] },
};

export const pointSets = Object.keys(sets);

/** Points of a set as [x, y, class]; the same ones for the same seed. */
export function pointsOf(name, count, seed = 1) {
  const { classes, noise, at, centre = () => [0, 0] } = sets[name];
  const random = generator(seed);
  return Array.from({ length: count }, (_, i) => {
    const c = i % classes, [angle, radius] = at(c, random()), [x, y] = centre(c);
    return [
      x + radius * Math.cos(angle) + noise * random.normal(),
      y + radius * Math.sin(angle) + noise * random.normal(),
      c,
    ];
  });
}
