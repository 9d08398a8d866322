// A pad to draw a digit on, with a mouse, a pen or a finger. Its image is like those of MNIST.
import { drawDigit } from './digits.js';
import { canvas2d, colour } from './draw.js';

const side = 28;

/** The centre of mass: its column (axis 0) or its row (axis 1). */
function centre(pixels, axis) {
  let sum = 0, mass = 0;
  pixels.forEach((pixel, i) => {
    sum += pixel * (axis === 0 ? i % side : Math.floor(i / side));
    mass += pixel;
  });
  return sum / mass;
}

export class Pad {
  strokes = []; // lists of points [x, y], from 0 to 1
  shown; // an image instead of strokes

  /** Calls changed() after each change. */
  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed });
    const point = ({ clientX, clientY }) => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      return [(clientX - left) / width, (clientY - top) / height];
    };
    canvas.style.cssText += 'touch-action: none; cursor: crosshair'; // a finger does not scroll
    canvas.onpointerdown = (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.shown = undefined;
      this.strokes.push([point(event)]);
      changed();
    };
    canvas.onpointermove = (event) => {
      if (!canvas.hasPointerCapture(event.pointerId) || this.strokes.length === 0) return;
      const events = event.getCoalescedEvents?.() ?? []; // all places since the last event
      this.strokes.at(-1).push(...(events.length ? events : [event]).map(point));
      changed();
    };
  }

  /** Shows an image [28, 28] from 0 to 255 instead of a drawing; without one, the pad is empty. */
  show(image) {
    this.shown = image;
    this.strokes = [];
    this.changed();
  }

  draw() {
    const { g, width } = canvas2d(this.canvas);
    if (this.shown) drawDigit(g, this.shown, { size: width });
    g.strokeStyle = colour('--ink');
    this.trace(g, width / 12, ([x, y]) => [x * width, y * width]);
  }

  /** Draws lines; `place` maps a point of the pad to one of g. */
  trace(g, thickness, place) {
    g.lineWidth = thickness;
    g.lineCap = g.lineJoin = 'round';
    for (const stroke of this.strokes) {
      g.beginPath();
      for (const point of [stroke[0], ...stroke]) g.lineTo(...place(point)); // also of one point
      g.stroke();
    }
  }

  /**
   * The digit as [28, 28], from 0 (paper) to 255 (ink); undefined if there is none. As in MNIST, a
   * drawing is scaled to 20 pixels, and its centre of mass is in the middle.
   */
  image() {
    if (this.shown) return this.shown;
    const points = this.strokes.flat();
    if (points.length === 0) return undefined;
    const ends = (axis) => {
      const all = points.map((point) => point[axis]);
      return [Math.min(...all), Math.max(...all)];
    };
    const [[left, right], [top, bottom]] = [ends(0), ends(1)];
    const line = 2.5;
    const scale = (20 - line) / Math.max(right - left, bottom - top, 0.05);
    let x = side / 2 - (scale * (left + right)) / 2, y = side / 2 - (scale * (top + bottom)) / 2;
    const canvas = new OffscreenCanvas(side, side);
    const g = canvas.getContext('2d', { willReadFrequently: true });
    const pixels = () => {
      g.clearRect(0, 0, side, side);
      this.trace(g, line, (point) => [scale * point[0] + x, scale * point[1] + y]);
      const { data } = g.getImageData(0, 0, side, side);
      return Float32Array.from({ length: side * side }, (_, i) => data[4 * i + 3]); // the alpha
    };
    const first = pixels(), middle = (side - 1) / 2;
    x += middle - centre(first, 0);
    y += middle - centre(first, 1);
    return pixels();
  }
}
