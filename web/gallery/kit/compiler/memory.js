// The memory of a step over time: each tensor is a box, from the kernel that writes it to its last
// use, at its place in the arena. Below it is what is in use at the same time.
import { bytes, escape, h, inPieces, many, opsOf, roving, short } from './dom.js';
import { siteLink, siteOf, tabStop, whole } from './dom.js';

const left = 58,
  top = 22,
  height = 240,
  curve = 64,
  bottom = 22,
  right = 12;

/**
 * The tensors that live in an arena, as boxes: kernel numbers across, bytes up. A tensor that
 * overwrites an operand takes its place in the middle of their kernel.
 */
export function boxesOf(kernels) {
  const boxes = kernels.flatMap((kernel, at) =>
    kernel.writes
      .filter(({ space }) => space.startsWith('arena'))
      .map((tensor) => ({
        ...tensor,
        kernel: at,
        phase: kernel.phase,
        from: tensor.in_place ? at + 0.5 : at,
        to: Math.min(Math.max(tensor.last_use, at) + 1, kernels.length),
      })),
  );
  const meet = (a, b) =>
    a.space === b.space && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  for (const box of boxes)
    if (boxes.some((next) => next.in_place && next.kernel === box.last_use && meet(box, next)))
      box.to = box.last_use + 0.5;
  return boxes;
}

/** The bytes that are in use while each kernel runs. */
export function liveBytes(boxes, kernels) {
  return kernels.map((_, at) => {
    const spans = boxes
      .filter(({ from, to }) => from < at + 1 && to > at)
      .map(({ space, offset, bytes: size }) => ({ space, from: offset, to: offset + size }))
      .sort((a, b) => (a.space < b.space ? -1 : a.space > b.space ? 1 : a.from - b.from));
    let sum = 0,
      end = 0,
      space;
    for (const span of spans) {
      if (span.space !== space) [space, end] = [span.space, 0];
      sum += Math.max(0, span.to - Math.max(end, span.from));
      end = Math.max(end, span.to);
    }
    return sum;
  });
}

/** The figure for a plan. `point(number)` is called for the kernel of the box that is looked at. */
export function memoryFigure(kernels, { counts, signal, point }) {
  const boxes = boxesOf(kernels);
  const live = liveBytes(boxes, kernels);
  const peak = live.indexOf(Math.max(...live));
  const arenas = [...new Set(boxes.map(({ space }) => space))].sort();
  const scroll = h('div', { class: 'canvas memory' });
  const detail = h('div', { class: 'detail', 'aria-live': 'polite' });
  detail.textContent = 'Point at a box, or use the arrow keys.';
  const caption = h('p', {
    class: 'sentence',
    html:
      '<strong>Memory over time.</strong> Each box is a tensor: across from the kernel that ' +
      'writes it to its last use, up from its first byte to its last. The place is free again ' +
      `after that. At most <b>${bytes(live[peak])}</b> are in use at the same time, in kernel ` +
      `<b>${peak}</b>; the arena has <b>${bytes(counts?.arena_bytes ?? endOf(boxes))}</b>.`,
  });
  let drawing;
  const draw = () => {
    drawing?.abort();
    drawing = new AbortController();
    const width = Math.max(scroll.clientWidth - 2, left + 5 * kernels.length + right, 300);
    drawMemory(scroll, { kernels, boxes, live, peak, arenas, width }, drawing.signal);
  };
  let before = 0;
  const resized = new ResizeObserver(() => {
    if (scroll.clientWidth === before || scroll.clientWidth === 0) return;
    before = scroll.clientWidth;
    draw();
  });
  resized.observe(scroll);
  signal.addEventListener('abort', () => {
    resized.disconnect();
    drawing?.abort();
  });
  roving(scroll, '.box', (item) => {
    scroll.querySelector('.on')?.classList.remove('on');
    item.classList.add('on');
    const box = boxes[item.dataset.box];
    point(box.kernel);
    detail.replaceChildren(...describe(box, kernels));
  });
  return [caption, scroll, detail];
}

const endOf = (boxes) => Math.max(...boxes.map(({ offset, bytes: size }) => offset + size));

function drawMemory(scroll, { kernels, boxes, live, peak, arenas, width }, signal) {
  const column = (width - left - right) / kernels.length;
  const x = (at) => left + at * column;
  const sizes = arenas.map((space) => endOf(boxes.filter((box) => box.space === space)));
  const tops = arenas.map((_, i) => top + i * (height + 26));
  const curveTop = top + arenas.length * (height + 26);
  const all = curveTop + curve + bottom;
  const y = ({ space }, offset) => {
    const i = arenas.indexOf(space);
    return tops[i] + height * (1 - offset / sizes[i]);
  };
  const text = (at, level, content, anchor = 'start', kind = 'axis') =>
    `<text class="${kind}" x="${at}" y="${level}" text-anchor="${anchor}">` +
    `${escape(content)}</text>`;

  // Phases as strips behind everything.
  let back = '';
  for (let i = 0; i < kernels.length;) {
    let end = i;
    const { phase } = kernels[i];
    while (end < kernels.length && kernels[end].phase === phase) ++end;
    back +=
      `<rect class="strip ${phase}" x="${x(i)}" y="4" width="${x(end) - x(i)}" ` +
      `height="${all - bottom - 4}"/>`;
    if ((end - i) * column > 6 * phase.length) back += text(x(i) + 4, 16, phase);
    i = end;
  }
  arenas.forEach((space, i) => {
    back +=
      `<path class="frame" d="M${left} ${tops[i]}h${width - left - right}` +
      `M${left} ${tops[i] + height}h${width - left - right}"/>` +
      text(left - 6, tops[i] + 4, bytes(sizes[i]), 'end') +
      text(left - 6, tops[i] + height, '0', 'end') +
      text(left - 6, tops[i] + height / 2, space, 'end');
  });
  // What is in use.
  const high = Math.max(...live),
    up = (size) => curveTop + curve * (1 - size / high);
  back +=
    `<path class="curve" d="M${left} ${curveTop + curve}` +
    live.map((size, i) => `V${up(size).toFixed(1)}H${x(i + 1).toFixed(1)}`).join('') +
    `V${curveTop + curve}Z"/>` +
    text(left - 6, curveTop + 8, 'in use', 'end') +
    `<path class="peak" d="M${x(peak + 0.5)} ${top}V${curveTop + curve}"/>` +
    text(
      x(peak + 0.5) + (peak > kernels.length / 2 ? -5 : 5),
      curveTop - 4,
      `peak ${bytes(high)}`,
      peak > kernels.length / 2 ? 'end' : 'start',
      'mark',
    );
  const each = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((n) => n * column >= 26) ?? 1000;
  for (let i = 0; i < kernels.length; i += each)
    back += text(x(i + 0.5), all - 6, String(i), 'middle');
  back += text(left - 6, all - 6, 'kernel', 'end');

  scroll.innerHTML =
    `<svg width="${width}" height="${all}" viewBox="0 0 ${width} ${all}" role="group" ` +
    `aria-label="Memory over time: ${many(boxes.length, 'tensor')}">` +
    `<g>${back}</g><g class="boxes"></g></svg>`;
  const layer = scroll.querySelector('.boxes');
  inPieces(
    (function* () {
      for (let i = 0; i < boxes.length; i += 8) {
        const pictures = boxes.slice(i, i + 8).map((box, j) => {
          const tall = y(box, box.offset) - y(box, box.offset + box.bytes);
          const wide = (box.to - box.from) * column;
          const label = tall > 13 && wide > 40 ? short(box.type, Math.floor((wide - 8) / 6.3)) : '';
          return (
            `<g class="box ${box.phase}" data-box="${i + j}" data-from="${box.from}" ` +
            `data-to="${box.to}" data-offset="${box.offset}" data-bytes="${box.bytes}" ` +
            `data-space="${box.space}" role="img" tabindex="-1" ` +
            `aria-label="${escape(words(box))}"><rect x="${x(box.from).toFixed(2)}" ` +
            `y="${y(box, box.offset + box.bytes).toFixed(2)}" ` +
            `width="${wide.toFixed(2)}" height="${Math.max(tall, 1.5).toFixed(2)}"/>` +
            (label
              ? text(x(box.from) + 4, y(box, box.offset) - tall / 2 + 4, label, 'start', 'name')
              : '') +
            '</g>'
          );
        });
        layer.insertAdjacentHTML('beforeend', pictures.join(''));
        yield;
      }
      tabStop(scroll, '.box');
    })(),
    signal,
  );
}

const words = (box) =>
  `${box.type}, ${bytes(box.bytes)} at byte ${whole(box.offset)}, ` +
  `written by kernel ${box.kernel}, ` +
  (box.last_use > box.kernel ? `last read by kernel ${box.last_use}` : 'not read afterwards');

function describe(box, kernels) {
  const kernel = kernels[box.kernel];
  const reader = kernels[box.last_use];
  return [
    h('code', { text: box.type }),
    h('span', {
      class: 'facts',
      text:
        ` ${whole(box.bytes)} bytes of ${box.space} from byte ${whole(box.offset)}` +
        `${box.in_place ? ', where an operand was' : ''}. Written by kernel ${box.kernel} ` +
        `(${short(opsOf(kernel), 48)}), ` +
        (reader && box.last_use > box.kernel
          ? `last read by kernel ${box.last_use} (${short(opsOf(reader), 48)}).`
          : 'not read afterwards.'),
    }),
    siteLink(siteOf(kernel.where)),
  ];
}
