// A run: what is known of a training from its first step on, beside the weights.
import { History } from './history.js';

export class Run {
  score; // of the last drawing

  constructor({ seed, rate, step = 0, loss, losses, scores }) {
    Object.assign(this, { seed, rate, step, loss });
    this.losses = new History(losses);
    this.scores = new History(scores);
  }

  addLoss(step, loss) {
    Object.assign(this, { step, loss });
    this.losses.add(step, loss);
  }
  addScore(score) {
    this.score = score;
    if (this.scores.steps.at(-1) !== this.step) this.scores.add(this.step, score);
  }

  /** What the browser stores of it. The constructor takes this. */
  stored(checkpoint) {
    const { seed, rate, step, loss } = this;
    const [losses, scores] = [this.losses.toJSON(), this.scores.toJSON()];
    return { checkpoint, seed, rate, step, loss, losses, scores };
  }
}

/** The step that a checkpoint was written after, from the text at its start. */
export function stepOf(bytes) {
  const size = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  return Number(header.__metadata__?.step ?? 0);
}
