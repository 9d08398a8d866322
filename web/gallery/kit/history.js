// The losses and scores of a run. A long run is kept as means of neighbours, so that its size is
// bounded.

const most = 2000;

export class History {
  constructor({ steps = [], values = [] } = {}) {
    this.steps = [...steps];
    this.values = [...values];
  }

  add(step, value) {
    this.steps.push(step);
    this.values.push(value);
    if (this.steps.length > most) this.halve();
  }

  /** Replaces each pair by its mean. */
  halve() {
    const { steps, values } = this;
    const half = Math.floor(steps.length / 2);
    for (let i = 0; i < half; ++i) {
      steps[i] = steps[2 * i + 1];
      values[i] = (values[2 * i] + values[2 * i + 1]) / 2;
    }
    steps.length = values.length = half;
  }

  toJSON() {
    return { steps: this.steps, values: this.values };
  }
}
