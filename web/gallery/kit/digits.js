// Handwritten digits: web/digits.mjs writes the file when the site is assembled, and has its layout.

const pixels = 28 * 28;

/**
 * 10,000 digits of the MNIST database, in random order: `images` is [count, 28, 28], from 0 (paper)
 * to 255 (ink), and `labels` is [count].
 */
export async function digits() {
  const answer = await fetch(new URL('../vendor/digits.bin', import.meta.url));
  if (!answer.ok) throw new Error(`The digits could not be loaded: vendor/digits.bin is ${answer.status}.`);
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
