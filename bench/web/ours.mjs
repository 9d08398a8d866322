// The models of the comparison in tensorgrad, on one thread of the CPU.
const options = { device: 'cpu', worker: false };
const values_of = (weights) =>
  Object.fromEntries(Object.entries(weights).map(([name, { values }]) => [name, values]));

async function training(tg, model, loss, inputs, { weights }, feed) {
  const optimizer = { kind: 'adam', lr: 0.001 };
  const train = await tg.compile({ model, loss, inputs, optimizer, ...options });
  await train.uploadParams(values_of(weights));
  return async (count) => {
    for (let i = 1; i < count; ++i) void train.step(feed); // steps are made in order
    const result = await train.step(feed);
    if (result.kind !== 'completed') throw result.error;
    return [result.loss];
  };
}

export function train_mlp(tg, task) {
  class Mlp extends tg.Module {
    l1 = new tg.Linear(1, 64);
    l2 = new tg.Linear(64, 64);
    l3 = new tg.Linear(64, 1);
  }
  const { x, y } = task;
  const predict = (m, h) => m.l3.fwd(tg.relu(m.l2.fwd(tg.relu(m.l1.fwd(h)))));
  const loss = (m, given) => tg.mean(tg.square(tg.sub(predict(m, given.x), given.y)));
  const inputs = { x: [x.length, 1], y: [y.length, 1] };
  return training(tg, new Mlp(), loss, inputs, task, { x, y });
}

function cnn(tg) {
  class Cnn extends tg.Module {
    c1 = new tg.Conv2d(1, 8, 3, { padding: 1 });
    c2 = new tg.Conv2d(8, 16, 3, { padding: 1 });
    fc = new tg.Linear(16 * 7 * 7, 10);
  }
  const logits = (m, { x }) => {
    let h = tg.maxPool2d(tg.relu(m.c1.fwd(x)), 2);
    h = tg.maxPool2d(tg.relu(m.c2.fwd(h)), 2);
    return m.fc.fwd(tg.reshape(h, [x.shape[0], -1]));
  };
  return { model: new Cnn(), logits };
}

export async function run_cnn(tg, { weights, x, shape }) {
  const { model, logits } = cnn(tg);
  const net = await tg.compileForward({ model, forward: logits, inputs: { x: shape }, ...options });
  await net.uploadParams(values_of(weights));
  return async (count) => {
    let result;
    for (let i = 0; i < count; ++i) {
      result = await net.run({ x });
      if (result.kind !== 'completed') throw result.error;
    }
    return result.output;
  };
}

export function train_cnn(tg, task) {
  const { model, logits } = cnn(tg);
  const loss = (m, given) => tg.crossEntropy(logits(m, given), given.y);
  const { x, y, shape } = task;
  const inputs = { x: shape, y: { shape: [shape[0]], dtype: 'i32' } };
  return training(tg, model, loss, inputs, task, { x, y });
}
