// A shape of ink on a small canvas: written as a word, or drawn by the visitor on another canvas
// that shows it. The browser keeps the shape.
import { recall, remember } from './remember.js';

const ink = '#888', enough = 99; // of 255: from there on a pixel has ink

export class Sketch {
  /**
   * The small canvas has `columns` x `rows` pixels, and the pen draws lines of `line` pixels. The
   * visitor draws on `board`; a drawing replaces a word.
   */
  constructor(board, { columns, rows, line, name }) {
    Object.assign(this, { columns, rows, name });
    this.canvas = Object.assign(document.createElement('canvas'), { width: columns, height: rows });
    this.pen = this.canvas.getContext('2d', { willReadFrequently: true });
    Object.assign(this.pen, {
      lineWidth: line, lineCap: 'round', textAlign: 'center', textBaseline: 'middle',
      strokeStyle: ink, fillStyle: ink,
    });
    this.word = true;
    this.alpha = new Uint8Array(columns * rows);
    this.pixels = []; // the numbers of those with ink, row by row
    this.listen(board);
  }

  /** Whether a place has ink, or a pixel next to it. */
  near(across, down) {
    const [column, row] = [Math.floor(across), Math.floor(down)];
    for (let i = Math.max(row - 1, 0); i <= Math.min(row + 1, this.rows - 1); ++i)
      for (let j = Math.max(column - 1, 0); j <= Math.min(column + 1, this.columns - 1); ++j)
        if (this.alpha[i * this.columns + j] > enough) return true;
    return false;
  }

  write(text) {
    const { pen, columns, rows } = this;
    const font = (size) => (pen.font = `700 ${size}px system-ui, sans-serif`);
    font(rows);
    font(Math.min(0.95 * rows, (0.92 * columns * rows) / pen.measureText(text).width));
    this.clear();
    this.word = true;
    pen.fillText(text, columns / 2, 0.53 * rows);
    this.keep();
  }
  clear() {
    this.pen.clearRect(0, 0, this.columns, this.rows);
  }

  /** Shows the shape that the browser kept, or the word. */
  async recall(word) {
    const { shape } = recall(this.name);
    if (!shape) return this.write(word);
    try {
      const image = new Image();
      image.src = shape;
      await image.decode();
      this.clear();
      this.pen.drawImage(image, 0, 0);
      this.keep();
    } catch {
      this.write(word);
    }
  }
  keep() {
    const { data } = this.pen.getImageData(0, 0, this.columns, this.rows);
    this.alpha = this.alpha.map((_, i) => data[4 * i + 3]);
    const found = [...this.alpha.keys()].filter((i) => this.alpha[i] > enough);
    if (found.length > 0) this.pixels = found; // a canvas without ink is no shape
    remember(this.name, { shape: this.canvas.toDataURL() });
  }

  listen(board) {
    let last;
    const draw = ({ offsetX, offsetY }) => {
      const at = [(offsetX * this.columns) / board.clientWidth,
                  (offsetY * this.rows) / board.clientHeight];
      this.pen.beginPath();
      this.pen.moveTo(...(last ?? at));
      this.pen.lineTo(...at);
      this.pen.stroke();
      last = at;
    };
    board.style.touchAction = 'none'; // a finger draws, and does not scroll
    board.onpointerdown = (event) => {
      if (this.word) this.clear();
      this.word = false;
      last = undefined;
      board.setPointerCapture(event.pointerId);
      draw(event);
    };
    board.onpointermove = (event) => event.buttons & 1 && last && draw(event);
    board.onpointerup = board.onpointercancel = () => {
      last = undefined;
      this.keep();
    };
  }
}
