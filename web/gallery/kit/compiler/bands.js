// Divides the nodes of a training graph among phases and bands: a band is a layer, or what is between
// two layers. Reads the result of readGraph(). A band can be folded: it is one box for each pass
// then.

const sources = new Set(['input', 'parameter', 'constant', 'state', 'iota']);
/** 'parameter' for flat_parameters, and so on. */
export const kindOf = ({ op }) => op.replace(/^flat_(\w+?)s?$/, '$1');
export const isSource = (node) => sources.has(kindOf(node));

/** Marks each node as forward (an output needs it), backward, or update. */
export function markPhases(graph) {
  const outputs = graph.results.filter(({ kind, name }) => kind === 'output' && name[0] !== '$');
  const open = outputs.map(({ id }) => id);
  const needed = new Set();
  while (open.length > 0) {
    const id = open.pop();
    if (needed.has(id)) continue;
    needed.add(id);
    open.push(...graph.byId.get(id).inputs);
  }
  const updates = graph.results.some(({ kind }) => kind.includes('update'));
  const gradients = new Set(); // what the gradients need
  for (const { kind, id } of graph.results) if (kind.includes('gradient')) open.push(id);
  while (open.length > 0) {
    const id = open.pop();
    if (needed.has(id) || gradients.has(id)) continue;
    gradients.add(id);
    open.push(...graph.byId.get(id).inputs);
  }
  for (const node of graph.nodes) {
    const backward = !updates || gradients.has(node.id) || node.site.via.startsWith('gradient');
    node.phase = needed.has(node.id) ? 'forward' : backward ? 'backward' : 'update';
  }
  for (const { kind, name, id } of graph.results) {
    if (name[0] === '$') continue;
    const label = { output: name, gradient: `gradient of ${name}`, capture: `capture ${name}` }[
      kind
    ];
    if (label) graph.byId.get(id).label ??= label;
  }
}

// "blocks.0.attn.q" is part of the band "blocks.0"; "l1" is a band.
const bandName = (layer) => (/^(.*?\.\d+)(\.|$)/.exec(layer) ?? /^([^.]*)/.exec(layer))[1];
const composite = ({ site }) => site.via.replace(/^gradient of /, '');

/** Divides the nodes among bands: [{ name, title, nodes }]. Sets node.band. */
export function makeBands(graph) {
  const vias = new Map(); // band name -> composites that have a layer of this name
  for (const { site } of graph.nodes) {
    if (!site.layer) continue;
    const name = bandName(site.layer);
    if (!vias.has(name)) vias.set(name, new Set());
    vias.get(name).add(composite({ site }));
  }
  const passed = []; // the bands that the forward pass goes through
  const named = (name) => {
    if (passed.at(-1)?.name !== name) passed.push({ name, nodes: [] });
    return passed.at(-1);
  };
  const put = (node, band) => {
    node.band = band.index;
    band.nodes.push(node);
  };
  // Forward. The parameters of a layer announce it.
  let current = '';
  for (const node of graph.nodes.filter(({ phase }) => phase === 'forward')) {
    if (isSource(node) || !node.site.file) {
      if (node.op === 'parameter' && vias.has(bandName(node.name))) current = bandName(node.name);
      continue;
    }
    const { layer, via } = node.site;
    if (layer) current = bandName(layer);
    else if (!via || !vias.get(current)?.has(via)) current = '';
    named(current).nodes.push(node);
  }
  if (passed.length === 0) named('');
  const bands = joined(passed);
  for (const band of bands) for (const node of band.nodes) node.band = band.index;
  placeSources(graph, bands, put);
  // Backward, in reverse order. Pieces without a layer belong to the band that was reached.
  let reached = bands.length - 1;
  for (const node of graph.nodes.filter(({ phase }) => phase === 'backward')) {
    const { layer, via } = node.site;
    const at = bands[reached];
    if (layer) reached = nearest(bands, reached, ({ name }) => name === bandName(layer));
    else if (via && !vias.get(at.name)?.has(composite(node)))
      reached = nearest(bands, reached, (band) => madeBy(band, composite(node), node.site.line));
    put(node, bands[reached]);
  }
  const rest = graph.nodes.filter(({ phase }) => phase === 'update');
  if (rest.length > 0) {
    bands.push({ name: 'update', index: bands.length, nodes: [], update: true });
    for (const node of rest) put(node, bands.at(-1));
  }
  for (const band of bands) {
    const { site } = band.nodes.find((node) => node.site.file && node.phase === 'forward') ?? {};
    band.title = band.name || (site ? `${site.file}:${site.line}` : '');
  }
  return bands;
}

// What a block does between its layers is part of the block.
function joined(passed) {
  const bands = [];
  for (const { name, nodes } of passed) {
    const within = name && bands.at(-1)?.name === '' && bands.at(-2)?.name === name;
    if (within) bands.at(-2).nodes.push(...bands.pop().nodes, ...nodes);
    else bands.push({ name, nodes });
  }
  return bands.map((band, index) => ({ ...band, index }));
}

// Parameters, inputs, constants and their views stand where they are first used.
function placeSources(graph, bands, put) {
  const first = new Map();
  for (const node of [...graph.nodes].reverse()) {
    if (node.phase !== 'forward') continue;
    if (node.band === undefined) put(node, bands[first.get(node.id) ?? 0]);
    for (const id of node.inputs) first.set(id, Math.min(first.get(id) ?? Infinity, node.band));
  }
  for (const band of bands) band.nodes.sort((a, b) => a.id - b.id);
}

const madeBy = ({ nodes }, what, line) =>
  nodes.some(({ site, op }) => !site.layer && site.line === line && [site.via, op].includes(what));

// The nearest band above that fits, or the nearest below.
function nearest(bands, from, fits) {
  for (let i = from; i >= 0; --i) if (fits(bands[i])) return i;
  for (let i = from + 1; i < bands.length; ++i) if (fits(bands[i])) return i;
  return from;
}

/** What is drawn: the nodes, and one box for each pass of a band that is folded. */
export function visible(graph, bands, folded) {
  const shown = new Map(); // id of a node -> what stands for it
  const groups = bands.map((band) => {
    if (!folded.has(band.index)) {
      for (const node of band.nodes) shown.set(node.id, node);
      return { ...band, folded: false };
    }
    const boxes = [];
    for (const phase of ['forward', 'backward', 'update']) {
      const nodes = band.nodes.filter((node) => node.phase === phase);
      const ops = nodes.filter((node) => !isSource(node)).length;
      if (nodes.length === 0) continue;
      const parameters = nodes.filter(({ op }) => op === 'parameter').length;
      const gradients = nodes.filter(({ label }) => label?.startsWith('gradient')).length;
      const box = {
        id: `${band.index}${phase}`,
        phase,
        band: band.index,
        fold: true,
        ops,
        parameters,
        gradients,
        title: band.title,
        op: 'folded',
        inputs: [...new Set(nodes.flatMap(({ inputs }) => inputs))],
      };
      for (const node of nodes) shown.set(node.id, box);
      boxes.push(box);
    }
    return { ...band, folded: true, nodes: boxes };
  });
  return { groups, shown };
}
