// How fast a page trains, and how many steps it makes before it looks up.

const roundMs = 50; // that a round takes
const mostSteps = 1000; // of a round
const window = 2000; // ms, over which the speed is a mean

export class Tempo {
  count = 1; // steps of the next round
  speed; // steps per second
  rounds = []; // the last ones: [when it ended, steps]

  /** A round of `steps` has taken `ms`. */
  add(steps, ms) {
    // The count grows slowly, so that the beginning can be seen.
    const most = Math.min(mostSteps, Math.max(steps + 1, 1.05 * steps));
    this.count = Math.ceil(Math.min((steps * roundMs) / ms, most));
    const now = performance.now();
    this.rounds = [...this.rounds.filter(([time]) => now - time < window), [now, steps]];
    const [[first, before]] = this.rounds;
    const made = this.rounds.reduce((sum, [, steps]) => sum + steps, 0) - before;
    this.speed = now > first ? (1000 * made) / (now - first) : undefined;
  }
}
