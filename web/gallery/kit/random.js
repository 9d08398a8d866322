// Random numbers that a list of keys determines: generator(seed, step) gives the same numbers in
// every run. The generator is sfc32; the keys are mixed into its state.

function mix(z) {
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return z ^ (z >>> 15);
}

/**
 * `random()` is a number in [0, 1), `random.normal()` a normal one, `random.integer(n)` an integer
 * from 0 to n - 1. Keys are integers.
 */
export function generator(...keys) {
  let hash = 0x9e3779b9;
  for (const key of keys) hash = mix((hash + 0x9e3779b9) ^ mix(key | 0));
  let a = mix(hash + 1), b = mix(hash + 2), c = mix(hash + 3), counter = 1;

  function bits() {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
  for (let i = 0; i < 12; ++i) bits();

  // 24 bits: also as f32 the number is below 1.
  const random = () => (bits() >>> 8) / 2 ** 24;
  random.normal = () =>
    Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  random.integer = (n) => Math.floor(random() * n);
  return random;
}
