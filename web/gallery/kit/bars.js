// Bars for the probabilities of classes.
import { canvas2d, colour } from './draw.js';

/** Draws a bar for each share, from 0 to 1, with its number below. `best` is marked. */
export function bars(canvas, shares, best) {
  const { g, width, height } = canvas2d(canvas);
  const step = width / shares.length, base = height - 22;
  g.textAlign = 'center';
  shares.forEach((share, i) => {
    const size = Math.max(share * (base - 2), 1);
    g.fillStyle = colour(i === best ? '--accent' : '--second');
    g.fillRect((i + 0.2) * step, base - size, 0.6 * step, size);
    g.fillStyle = colour('--ink');
    g.fillText(i, (i + 0.5) * step, height - 6);
  });
}
