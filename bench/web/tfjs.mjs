// The models of the comparison in TensorFlow.js. A piece of work is a function of a count: it does the
// work that often, waits for the last result and returns it.
import * as tf from '@tensorflow/tfjs';
import '@tensorflow/tfjs-backend-wasm';

export async function use(backend) {
  tf.env().set('PROD', true); // no checks of values
  await tf.setBackend(backend);
  await tf.ready();
}

const variables = (weights) =>
  Object.fromEntries(
    Object.entries(weights).map(([name, { shape, values }]) => [
      name,
      tf.variable(tf.tensor(values, shape)),
    ]),
  );

function training(weights, loss) {
  const optimizer = tf.train.adam(0.001);
  const list = Object.values(weights);
  return async (count) => {
    for (let i = 1; i < count; ++i) optimizer.minimize(loss, false, list);
    const last = optimizer.minimize(loss, true, list);
    const [value] = await last.data();
    last.dispose();
    return [value];
  };
}

const linear = (w, name, x) => tf.add(tf.matMul(x, w[`${name}.W`]), w[`${name}.b`]);

export function train_mlp({ weights, x, y }) {
  const w = variables(weights);
  const [points, wanted] = [tf.tensor(x, [x.length, 1]), tf.tensor(y, [y.length, 1])];
  return training(w, () => {
    const h = tf.relu(linear(w, 'l2', tf.relu(linear(w, 'l1', points))));
    return tf.mean(tf.square(tf.sub(linear(w, 'l3', h), wanted)));
  });
}

// TensorFlow.js has images and weights with the channels last.
function cnn({ weights, x, shape }) {
  const [batch, channels, height, width] = shape;
  const images = tf.transpose(tf.tensor(x, [batch, channels, height, width]), [0, 2, 3, 1]);
  const w = variables(weights);
  for (const name of ['c1.W', 'c2.W']) w[name] = tf.variable(tf.transpose(w[name], [2, 3, 1, 0]));
  const c = w['c2.b'].size;
  const flat = tf.reshape(w['fc.W'], [c, -1, 10]);
  w['fc.W'] = tf.variable(tf.reshape(tf.transpose(flat, [1, 0, 2]), [-1, 10]));
  return { w, images, batch };
}

// Fused kernels, which TensorFlow.js has for the forward pass alone.
export function run_cnn(task) {
  const { w, images, batch } = cnn(task);
  const stage = (x, name) => {
    const [filter, bias] = [w[`${name}.W`], w[`${name}.b`]];
    const y = tf.fused.conv2d({ x, filter, strides: 1, pad: 'same', bias, activation: 'relu' });
    return tf.maxPool(y, 2, 2, 'valid');
  };
  const forward = () => {
    const h = tf.reshape(stage(stage(images, 'c1'), 'c2'), [batch, -1]);
    return tf.fused.matMul({ a: h, b: w['fc.W'], bias: w['fc.b'] });
  };
  return async (count) => {
    let values;
    for (let i = 0; i < count; ++i) {
      const logits = tf.tidy(forward);
      values = await logits.data();
      logits.dispose();
    }
    return values;
  };
}

export function train_cnn(task) {
  const { w, images, batch } = cnn(task);
  const classes = tf.oneHot(tf.tensor(task.y, [batch], 'int32'), 10);
  const stage = (x, name) => {
    const y = tf.relu(tf.add(tf.conv2d(x, w[`${name}.W`], 1, 'same'), w[`${name}.b`]));
    return tf.maxPool(y, 2, 2, 'valid');
  };
  return training(w, () => {
    const h = tf.reshape(stage(stage(images, 'c1'), 'c2'), [batch, -1]);
    return tf.losses.softmaxCrossEntropy(classes, linear(w, 'fc', h));
  });
}
