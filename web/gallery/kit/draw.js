// Drawing on canvases, in the colours of the page.

/** The value of a CSS custom property such as '--accent'. It changes with dark and light. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** [red, green, blue] of a colour such as '#1f6feb', or of a property such as '--accent'. */
export function rgb(text) {
  const hex = (text.startsWith('--') ? colour(text) : text).slice(1);
  const digits = hex.length === 3 ? [...hex].map((digit) => digit + digit) : hex.match(/../g);
  return digits.map((each) => parseInt(each, 16));
}

/**
 * A function from [0, 1] to [red, green, blue] through these colours at equal distances:
 * ramp('--low', '--paper', '--high').
 */
export function ramp(...names) {
  const colours = names.map(rgb);
  return (t) => {
    const place = Math.min(Math.max(t || 0, 0), 1) * (colours.length - 1);
    const i = Math.min(Math.floor(place), colours.length - 2);
    return colours[i].map((from, k) => from + (colours[i + 1][k] - from) * (place - i));
  };
}

/**
 * Makes a canvas as large as its box, with one point per pixel of the screen, and clears it.
 * Returns its context and the size of the box; drawing is in CSS pixels. The box has its size from
 * CSS: style="aspect-ratio: 3 / 2".
 */
export function canvas2d(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down)
    [canvas.width, canvas.height] = [across, down];
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.lineJoin = 'round';
  g.font = '12px system-ui, sans-serif';
  return { g, width, height };
}

/**
 * Draws numbers as pixels: `values` is [rows, columns], and `colours` maps a number from `from` to
 * `to`, scaled to [0, 1], to [red, green, blue]. `box` is { x, y, width, height } in CSS pixels.
 */
export function heatmap(g, values, { rows, columns, box, from = 0, to = 1, smooth = false,
                                     colours = ramp('--paper', '--accent') }) {
  const image = new ImageData(columns, rows);
  for (let i = 0; i < rows * columns; ++i) {
    const [red, green, blue] = colours((values[i] - from) / (to - from));
    image.data.set([red, green, blue, 255], 4 * i);
  }
  const small = new OffscreenCanvas(columns, rows);
  small.getContext('2d').putImageData(image, 0, 0);
  g.imageSmoothingEnabled = smooth;
  g.drawImage(small, box.x, box.y, box.width, box.height);
}

/**
 * Draws curves in a frame with marks. `x` and `y` are the ends of the axes; marks are
 * [place, text]; a curve is { x, y, colour, width, dash, points }: with `points` each is a dot of
 * that radius.
 */
export function plot(canvas, { x: [x0, x1], y: [y0, y1], xMarks = [], yMarks = [], curves }) {
  const { g, width, height } = canvas2d(canvas);
  const left = yMarks.length ? 30 : 1, bottom = height - (xMarks.length ? 20 : 1);
  const across = (x) => left + ((x - x0) / (x1 - x0)) * (width - 1 - left);
  const up = (y) => bottom - ((y - y0) / (y1 - y0)) * (bottom - 1);
  g.strokeStyle = colour('--line');
  g.fillStyle = colour('--faint');
  g.strokeRect(left, 1, width - 1 - left, bottom - 1);
  g.textBaseline = 'middle';
  g.textAlign = 'right';
  for (const [y, text] of yMarks) {
    g.fillText(text, left - 6, up(y));
    g.beginPath();
    g.moveTo(left, up(y));
    g.lineTo(width - 1, up(y));
    g.stroke();
  }
  for (const [x, text] of xMarks) {
    const half = g.measureText(text).width / 2 + 1;
    g.textAlign = 'center';
    g.fillText(text, Math.min(Math.max(across(x), half), width - half), bottom + 12);
  }
  g.save();
  g.beginPath();
  g.rect(left, 1, width - 1 - left, bottom - 1);
  g.clip();
  for (const { x, y, colour: name, width: line = 2, dash = [], points } of curves) {
    g.strokeStyle = g.fillStyle = colour(name);
    g.lineWidth = line;
    g.setLineDash(dash);
    g.beginPath();
    for (let i = 0; i < y.length; ++i) {
      const [px, py] = [across(x[i]), up(y[i])];
      if (points) {
        g.moveTo(px, py);
        g.arc(px, py, points, 0, 2 * Math.PI);
      } else g.lineTo(px, py);
    }
    if (points) g.fill();
    else g.stroke();
  }
  g.restore();
}
