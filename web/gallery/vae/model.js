// A variational autoencoder. The encoder maps an image of 28 x 28 pixels to a normal distribution
// in the latent plane; the decoder maps a point of the plane to an image.
import {
  add, bceWithLogits, exp, Linear, mean, Module, mul, randn, relu, sigmoid, split, square, sub, sum,
} from 'tensorgrad';

export class Autoencoder extends Module {
  constructor(width) {
    super();
    this.encode1 = new Linear(784, width);
    this.encode2 = new Linear(width, width / 4);
    this.latent = new Linear(width / 4, 4); // two means, two logarithms of variances
    this.decode1 = new Linear(2, width / 4);
    this.decode2 = new Linear(width / 4, width);
    this.pixels = new Linear(width, 784);
  }
}

function encoder(m, x) {
  return split(m.latent.fwd(relu(m.encode2.fwd(relu(m.encode1.fwd(x))))), 2); // 2 of [B, 2]
}
function decoder(m, z) {
  return m.pixels.fwd(relu(m.decode2.fwd(relu(m.decode1.fwd(z))))); // logits, [B, 784]
}

// Both parts of the loss, in nats per image.
const reconstruction = (logits, x) => mean(sum(bceWithLogits(logits, x, 'none'), -1));
// KL(N(mean, variance) || N(0, 1)) = (mean^2 + variance - log variance - 1) / 2 per coordinate.
function divergence(centre, logVariance) {
  const each = sub(sub(add(square(centre), exp(logVariance)), logVariance), 1);
  return mean(mul(sum(each, -1), 0.5));
}

// A random point of each image's distribution is decoded. It is written as a function of the mean
// and the variance, so that both get a gradient ("reparameterisation").
export function loss(m, { x }) {
  const [centre, logVariance] = encoder(m, x);
  const z = add(centre, mul(exp(mul(logVariance, 0.5)), randn(centre.shape)));
  return add(reconstruction(decoder(m, z), x), divergence(centre, logVariance));
}

// Where images are in the plane, and both parts of the loss without the randomness.
export function encode(m, { x }) {
  const [centre, logVariance] = encoder(m, x);
  return {
    centre,
    reconstruction: reconstruction(decoder(m, centre), x),
    divergence: divergence(centre, logVariance),
  };
}

// The images at points of the plane, [B, 784].
export const decode = (m, { z }) => sigmoid(decoder(m, z));
