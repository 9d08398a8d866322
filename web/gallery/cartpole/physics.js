// A pole on a cart, as in Barto, Sutton and Anderson (1983). A state is the place of the cart, its
// velocity, the angle of the pole and its angular velocity, in metres, seconds and radians.
const gravity = 9.8, mass = 1.1, poleMass = 0.1, half = 0.5; // kg; half the length of the pole
export const seconds = 0.02, edge = 2.4; // of a time step; half the track

// Moves state `i` by a time step. An action is true for right; forces are in newtons.
export function advance(states, i, action, push = 0) {
  const [, velocity, angle, turning] = states.subarray(4 * i, 4 * i + 4);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const pull = ((action ? 10 : -10) + push + poleMass * half * turning ** 2 * sin) / mass;
  const swing = (gravity * sin - cos * pull) / (half * (4 / 3 - (poleMass * cos ** 2) / mass));
  const slope = [velocity, pull - (poleMass * half * swing * cos) / mass, turning, swing];
  slope.forEach((each, k) => (states[4 * i + k] += seconds * each));
}
export const fallen = (states, i) =>
  Math.abs(states[4 * i]) > edge || Math.abs(states[4 * i + 2]) > Math.PI / 15;
// Puts the cart near the middle, with the pole almost upright.
export function start(states, i, random) {
  for (let k = 0; k < 4; ++k) states[4 * i + k] = 0.1 * (random() - 0.5);
}
