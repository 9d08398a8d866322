// Handwritten digits. web/digits.mjs writes their file when the site is assembled.
import { heatmap, ramp } from './draw.js';

const side = 28, pixels = side * side;

/**
 * 10,000 digits of the MNIST database, in random order: `images` is [count, 28, 28], from 0 (paper)
 * to 255 (ink), and `labels` is [count].
 */
export async function digits() {
  const answer = await fetch(new URL('../vendor/digits.bin', import.meta.url));
  if (!answer.ok)
    throw new Error(`The digits could not be loaded: vendor/digits.bin: ${answer.status}`);
  const plain = answer.body.pipeThrough(new DecompressionStream('gzip'));
  const bytes = await new Response(plain).arrayBuffer();
  const count = new DataView(bytes).getUint32(0, true);
  const labels = new Uint8Array(bytes, 4, count);
  const packed = new Uint8Array(bytes, 4 + count);
  const images = new Uint8Array(count * pixels);
  for (let i = 0; i < packed.length; ++i) {
    images[2 * i] = 17 * (packed[i] & 15);
    images[2 * i + 1] = 17 * (packed[i] >> 4);
  }
  return { images, labels, count };
}

/** Draws one image, [28, 28] from 0 to 255, as a square of `size` CSS pixels. */
export function drawDigit(g, image, { size, x = 0, y = 0 }) {
  const box = { x, y, width: size, height: size }, colours = ramp('--paper', '--ink');
  heatmap(g, image, { rows: side, columns: side, box, to: 255, smooth: true, colours });
}
