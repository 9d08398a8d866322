// Places the nodes of a training graph as a textbook draws it. Layers are bands from top to bottom.
// In each band the forward pass goes down on the left, and the backward pass goes up on the right.
// The update, if the graph has it, follows below.
import { isSource } from './bands.js';

export const nodeWidth = 172,
  nodeHeight = 36;
const columnGap = 22,
  rowGap = 16,
  bandTop = 26,
  bandGap = 12,
  middle = 56,
  margin = 14;
const laneGap = 7,
  mostColumns = 4;

/**
 * Places what visible() returned. Returns { width, height, groups, edges }; nodes have x and y,
 * groups y and height.
 */
export function place({ groups, shown }) {
  for (const group of groups)
    group.sides = ['forward', 'backward', 'update'].map((phase) =>
      grid(
        group.nodes.filter((node) => node.phase === phase),
        shown,
        group.index === 0,
      ),
    );
  const columns = (side) => Math.max(1, ...groups.map(({ sides }) => sides[side].columns));
  const step = nodeWidth + columnGap;
  const hasBackward = groups.some(({ sides }) => sides[1].rows > 0);
  const edges = edgesOf(groups, shown);
  const lanes = [skipLanes(edges, groups, 'forward'), skipLanes(edges, groups, 'backward')];
  const left = margin + lanes[0] * laneGap + (lanes[0] ? 8 : 0);
  const right = hasBackward ? columns(1) * step + middle : 0;
  const inner = Math.max(columns(0) * step + right, columns(2) * step) - columnGap;
  const width = left + inner + margin + lanes[1] * laneGap + (lanes[1] ? 8 : 0);

  let y = margin;
  for (const group of groups) {
    const [forward, backward, update] = group.sides;
    const rows = Math.max(forward.rows, backward.rows, update.rows, 1);
    const pitch = nodeHeight + rowGap;
    group.y = y;
    group.height = bandTop + rows * pitch;
    for (const node of group.nodes) {
      const up = node.phase === 'backward';
      node.x = up ? left + inner - nodeWidth - node.column * step : left + node.column * step;
      node.y = y + bandTop + (up ? rows - 1 - node.row : node.row) * pitch;
    }
    y += group.height + bandGap;
  }
  for (const edge of edges) edge.path = path(edge, left, left + inner);
  return { width, height: y - bandGap + margin, groups, edges, left, inner };
}

// Rows and columns of the nodes of one band and pass. A node is below its operands. What feeds it
// from the side (parameters, constants, and what is made of them alone) is close above it.
// `begins`: the band has the inputs with which the program begins.
function grid(nodes, shown, begins) {
  const inside = new Set(nodes);
  const operands = new Map();
  const side = new Set();
  const readers = new Map();
  const row = new Map();
  for (const node of nodes) {
    const all = node.inputs.map((id) => shown.get(id)).filter((o) => o && o !== node);
    const own = all.filter((o) => inside.has(o));
    operands.set(node, own);
    const feeds = isSource(node) ? !(begins && node.op === 'input') : own.every((o) => side.has(o));
    if (feeds && !node.fold && own.length === all.length) side.add(node);
    for (const o of own) readers.set(o, [...(readers.get(o) ?? []), node]);
    row.set(node, 1 + Math.max(-1, ...own.map((o) => row.get(o))));
  }
  const count = new Map(); // row -> how many nodes are in it
  const full = (at) => (count.get(at) ?? 0) >= mostColumns;
  const settle = (node, at) => {
    row.set(node, at);
    count.set(at, (count.get(at) ?? 0) + 1);
  };
  for (const node of nodes) {
    if (side.has(node)) continue;
    const above = operands
      .get(node)
      .filter((o) => !side.has(o))
      .map((o) => row.get(o));
    let at = Math.max(row.get(node), ...above.map((each) => each + 1));
    while (full(at)) ++at;
    settle(node, at);
  }
  for (const node of [...nodes].reverse()) {
    if (!side.has(node)) continue;
    const below = (readers.get(node) ?? []).map((reader) => row.get(reader));
    let at = below.length > 0 ? Math.min(...below) - 1 : row.get(node);
    while (full(at)) --at;
    settle(node, at);
  }
  const top = Math.min(...row.values());
  const taken = new Set();
  let columns = 0;
  const order = [...nodes].sort((a, b) => row.get(a) - row.get(b) || side.has(a) - side.has(b));
  for (const node of order) {
    const above = operands.get(node).filter((o) => o.column !== undefined);
    const main = above.find((o) => side.has(node) || !side.has(o));
    let at = side.has(node) ? Math.max(1, main?.column ?? 1) : (main?.column ?? 0);
    while (taken.has(`${row.get(node)} ${at}`)) ++at;
    taken.add(`${row.get(node)} ${at}`);
    node.column = at;
    node.row = row.get(node) - top;
    columns = Math.max(columns, at + 1);
  }
  return { rows: nodes.length === 0 ? 0 : 1 + Math.max(...row.values()) - top, columns };
}

function edgesOf(groups, shown) {
  const edges = [];
  for (const { nodes } of groups)
    for (const to of nodes)
      for (const from of new Set(to.inputs.map((id) => shown.get(id))))
        if (from && from !== to) edges.push({ from, to });
  return edges;
}

// Edges down the first column that would run through its nodes get lanes of their own beside it.
// Returns the number of lanes.
function skipLanes(edges, groups, phase) {
  const rowsOf = ({ sides }) => Math.max(1, ...sides.map(({ rows }) => rows));
  const start = []; // the first row of each group, counted from the top
  let rows = 0;
  for (const group of groups) {
    start[group.index] = rows;
    rows += rowsOf(group);
  }
  const depth = ({ band, row }) =>
    start[band] + (phase === 'backward' ? rowsOf(groups[band]) - 1 - row : row);
  const first = (node) => node.phase === phase && node.column === 0;
  const taken = new Set(groups.flatMap(({ nodes }) => nodes.filter(first).map(depth)));
  const skips = [];
  for (const edge of edges) {
    if (!first(edge.from) || !first(edge.to)) continue;
    const span = [depth(edge.from), depth(edge.to)].sort((a, b) => a - b);
    for (let at = span[0] + 1; at < span[1]; ++at)
      if (taken.has(at)) {
        skips.push({ edge, span });
        break;
      }
  }
  skips.sort((a, b) => a.span[1] - a.span[0] - (b.span[1] - b.span[0]));
  const lanes = []; // for each lane the spans in it
  for (const { edge, span } of skips) {
    const free = (spans) => spans.every(([a, b]) => span[1] <= a || b <= span[0]);
    let lane = lanes.findIndex(free);
    if (lane < 0) lane = lanes.push([]) - 1;
    lanes[lane].push(span);
    edge.lane = lane;
  }
  return lanes.length;
}

function path({ from, to, lane }, left, right) {
  const [fx, fy, tx, ty] = [from.x, from.y, to.x, to.y];
  const half = nodeHeight / 2,
    mid = nodeWidth / 2;
  if (lane !== undefined) {
    const up = from.phase === 'backward';
    const x = up ? right + 8 + lane * laneGap : left - 8 - lane * laneGap;
    const side = up ? nodeWidth : 0,
      turn = Math.sign(ty - fy) * 8,
      out = up ? -8 : 8;
    return (
      `M${fx + side} ${fy + half}H${x + out}Q${x} ${fy + half} ${x} ${fy + half + turn}` +
      `V${ty + half - turn}Q${x} ${ty + half} ${x + out} ${ty + half}H${tx + side}`
    );
  }
  if (from.phase !== to.phase && to.phase === 'backward') {
    const [x1, y1, x2, y2] = [fx + nodeWidth, fy + half, tx, ty + half];
    const bend = Math.max(24, (x2 - x1) / 2);
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  }
  const down = ty > fy;
  const [x1, y1] = [fx + mid, down ? fy + nodeHeight : fy];
  const [x2, y2] = [tx + mid, down ? ty : ty + nodeHeight];
  if (fy === ty) {
    const forth = tx > fx;
    return `M${forth ? fx + nodeWidth : fx} ${fy + half}H${forth ? tx : tx + nodeWidth}`;
  }
  const bend = Math.max(8, Math.min(Math.abs(y2 - y1) / 2, 60)) * (down ? 1 : -1);
  return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}
