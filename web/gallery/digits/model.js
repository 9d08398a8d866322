// A convolutional network for digits. Each convolution looks for small patterns everywhere in the
// image. The first takes every second place; the pooling keeps the largest of 2 x 2 places.
import {
  Conv2d, crossEntropy, div, Linear, maxPool2d, Module, relu, reshape, softmax,
} from 'tensorgrad';

export const side = 28, pixels = side * side;

export class Reader extends Module {
  constructor({ channels: [first, second], kernels: [large, small], stride, pool }) {
    super();
    this.pool = pool;
    this.conv1 = new Conv2d(1, first, large, { padding: Math.ceil((large - stride) / 2), stride });
    this.conv2 = new Conv2d(first, second, small, { padding: (small - 1) / 2 });
    this.head = new Linear(second * (side / stride / pool) ** 2, 10);
  }
}

// images [B, pixels], from 0 (paper) to 255 (ink) -> logits [B, 10]
function logits(model, images) {
  const [count] = images.shape;
  let x = reshape(div(images, 255), [count, 1, side, side]);
  x = relu(model.conv1.fwd(x)); // [B, first, 14, 14]
  x = model.conv2.fwd(x); // [B, second, 14, 14]
  if (model.pool > 1) x = maxPool2d(x, model.pool); // [B, second, 7, 7]
  x = relu(x);
  return model.head.fwd(reshape(x, [count, -1]));
}

export const loss = (model, { images, labels }) => crossEntropy(logits(model, images), labels);
export const probabilities = (model, { images }) => softmax(logits(model, images), -1);
