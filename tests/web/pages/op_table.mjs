// Runs rows of the op table in a page or a worker.
import create from '/op_table/op_table.mjs';

async function open_gpu() {
  const adapter = await navigator.gpu.requestAdapter();
  const requiredFeatures = ['timestamp-query', 'subgroups', 'shader-f16'].filter((feature) =>
    adapter.features.has(feature),
  );
  const requiredLimits = {};
  for (const name in adapter.limits)
    if (/^max(Buffer|Storage|Compute)/.test(name)) requiredLimits[name] = adapter.limits[name];
  return { ok: true, adapter, device: await adapter.requestDevice({ requiredFeatures, requiredLimits }) };
}

/** The rows with number part, part + parts, ... Returns the failures and how many rows were run. */
export async function check_rows({ device, part, parts }) {
  let arrived = () => {};
  const gpu = device === 'cpu' ? { ok: false, message: '' } : await open_gpu();
  const table = await create({ gpu, onArrived: () => arrived() });
  const text = (pointer) => table.UTF8ToString(pointer);
  const with_text = (value, body) => {
    const bytes = new TextEncoder().encode(`${value}\0`);
    const pointer = table._malloc(bytes.length);
    table.HEAPU8.set(bytes, pointer);
    const result = body(pointer);
    table._free(pointer);
    return result;
  };
  const end = async (failure) => {
    if (failure !== '') return failure;
    while (!table._op_table_poll()) {
      const news = new Promise((resolve) => (arrived = resolve));
      await Promise.race([news, new Promise((resolve) => setTimeout(resolve, 20))]);
    }
    return text(table._op_table_failure());
  };
  const problem = await end(with_text(device, (name) => text(table._op_table_open(name))));
  if (problem) throw new Error(problem);
  const failures = [];
  let count = 0;
  const of = table._op_table_size();
  for (let row = part; row < of; row += parts, ++count) {
    const wrong = await end(text(table._op_table_start(row)));
    if (wrong) failures.push(`${text(table._op_table_name(row))}: ${wrong}`);
  }
  return { failures, count, of };
}
