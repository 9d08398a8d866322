// A drawn network: lines for weights, and for each unit a button with a canvas, so that visitors
// choose a unit by pointer or keyboard.

const svgNamespace = 'http://www.w3.org/2000/svg';

/**
 * Draws a network in `element`. `nodes` are { at: [left, top], text } for labels, and { at, name }
 * for units; places are in per cent. `edges` are [from, to] by number of the node. choose(node) is
 * called with the number of a unit that the visitor points at, focuses or clicks.
 *
 * Returns { canvases, show(weights, chosen) }: the canvas of each unit, by number of the node;
 * show() sets colour and width of each edge.
 */
export function network(element, { nodes, edges, choose, describedBy }) {
  element.classList.add('network');
  const svg = element.appendChild(document.createElementNS(svgNamespace, 'svg'));
  svg.setAttribute('viewBox', '0 0 100 100');
  svg.setAttribute('width', '100%');
  svg.setAttribute('aria-hidden', 'true');
  const lines = edges.map(([from, to]) => {
    const line = svg.appendChild(document.createElementNS(svgNamespace, 'line'));
    const [[x1, y1], [x2, y2]] = [nodes[from].at, nodes[to].at];
    for (const [key, at] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(key, at);
    return line;
  });
  const buttons = [], canvases = [];
  nodes.forEach(({ at: [left, top], text, name }, node) => {
    const item = element.appendChild(document.createElement(name ? 'button' : 'span'));
    item.style.cssText = `left: ${left}%; top: ${top}%`;
    if (!name) return (item.textContent = text);
    item.type = 'button';
    item.ariaLabel = name;
    if (describedBy) item.setAttribute('aria-describedby', describedBy);
    item.onpointerenter = item.onfocus = item.onclick = () => choose(node);
    buttons[node] = item;
    canvases[node] = item.appendChild(document.createElement('canvas'));
  });

  function show(weights, chosen) {
    lines.forEach((line, i) => {
      line.style.stroke = weights[i] < 0 ? 'var(--low)' : 'var(--high)';
      line.style.strokeWidth = Math.min(0.15 + Math.abs(weights[i]) / 3, 3);
    });
    buttons.forEach((button, node) => (button.ariaPressed = String(node === chosen)));
  }
  return { canvases, show };
}
