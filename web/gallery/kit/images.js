// Draws grey images in the colours of the page: paper where they are 0, ink where they are 1.
import { canvas2d, ramp } from './draw.js';

/** Draws `across` x `across` square images, [count, size, size], as one picture. */
export function drawImages(canvas, images, { across = 1, size = 28, ink = '--accent' } = {}) {
  const colours = ramp('--paper', ink);
  const table = Uint32Array.from({ length: 256 }, (_, i) => {
    const [red, green, blue] = colours(i / 255);
    return 0xff000000 | (blue << 16) | (green << 8) | red;
  });
  const side = across * size, picture = new Uint32Array(side * side);
  for (let image = 0; image < across * across; ++image) {
    const left = size * (image % across), top = size * Math.floor(image / across);
    for (let y = 0; y < size; ++y) {
      const from = size * (size * image + y), to = side * (top + y) + left;
      for (let x = 0; x < size; ++x) picture[to + x] = table[(255 * images[from + x] + 0.5) | 0];
    }
  }
  const small = new OffscreenCanvas(side, side);
  const data = new ImageData(new Uint8ClampedArray(picture.buffer), side, side);
  small.getContext('2d').putImageData(data, 0, 0);
  const { g, width, height } = canvas2d(canvas);
  g.imageSmoothingEnabled = true;
  g.drawImage(small, 0, 0, width, height);
}
