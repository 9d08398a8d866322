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

// An instance of the table on a new device.
async function open_table(device) {
  let arrived = () => {};
  const gpu = device === 'cpu' ? { ok: false, message: '' } : await open_gpu();
  const table = await create({ gpu, onArrived: () => arrived() });
  const text = (pointer) => table.UTF8ToString(pointer);
  // What failed, or '', of something that was started.
  const end = async (failure) => {
    if (failure !== '') return failure;
    while (!table._op_table_poll()) {
      const news = new Promise((resolve) => (arrived = resolve));
      await Promise.race([news, new Promise((resolve) => setTimeout(resolve, 20))]);
    }
    return text(table._op_table_failure());
  };
  const name = new TextEncoder().encode(`${device}\0`);
  const pointer = table._malloc(name.length);
  table.bytes().set(name, pointer);
  const problem = await end(text(table._op_table_open(pointer)));
  if (problem) throw new Error(problem);
  return {
    rows: table._op_table_size(),
    name: (row) => text(table._op_table_name(row)),
    run: (row) => end(text(table._op_table_start(row))),
  };
}

/**
 * The rows with number part, part + parts, ... Returns the failures, the rows on which the driver
 * crashed, and how long each row took.
 */
export async function check_rows({ device, part, parts }) {
  let table = await open_table(device);
  const failures = [];
  const crashes = [];
  const seconds = {};
  for (let row = part; row < table.rows; row += parts) {
    const name = table.name(row);
    const began = performance.now();
    const wrong = await table.run(row);
    if (/the device was lost/.test(wrong)) {
      crashes.push(name);
      table = await open_table(device);
    } else if (wrong) failures.push(`${name}: ${wrong}`);
    seconds[name] = (performance.now() - began) / 1000;
  }
  return { failures, crashes, seconds, of: table.rows };
}
