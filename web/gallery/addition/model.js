// A transformer that adds. It reads "27+58=" and writes the answer 085 from its lowest digit up:
// "580". So each digit depends only on one column of the sum and on the carry.
import {
  add, arange, argmax, capture, cast, crossEntropy, Embedding, equal, LayerNorm, Linear, matmul,
  mean, mergeHeads, Module, mul, narrow, prod, relu, softmax, softmaxCausal, splitHeads, swapAxes,
} from 'tensorgrad';

const alphabet = '0123456789+=';
const prompt = 6; // symbols of the question
export const digits = 3; // symbols of the answer
export const length = prompt + digits - 1; // T: the last symbol is written, and never read

// ---- sums as text, and text as numbers

const written = (number, size) => String(number).padStart(size, '0');
const question = ([a, b]) => `${written(a, 2)}+${written(b, 2)}=`;
export const answer = ([a, b]) => [...written(a + b, digits)].reverse().join('');

// The tokens of texts, [texts, T]. What is not yet written is 0; no place before it can see it.
function tokens(texts) {
  const whole = texts.map((text) => text.padEnd(length, '0').slice(0, length)).join('');
  return Int32Array.from(whole, (symbol) => alphabet.indexOf(symbol));
}

// What the model reads and what it has to write.
export const examples = (sums) => ({
  tokens: tokens(sums.map((sum) => question(sum) + answer(sum))),
  answers: Int32Array.from(sums.map(answer).join(''), Number),
});

// ---- the model

class Block extends Module {
  constructor(dim, heads) {
    super();
    this.heads = heads;
    this.norm1 = new LayerNorm(dim);
    this.query = new Linear(dim, dim, { bias: false });
    this.key = new Linear(dim, dim, { bias: false });
    this.value = new Linear(dim, dim, { bias: false });
    this.out = new Linear(dim, dim);
    this.norm2 = new LayerNorm(dim);
    this.up = new Linear(dim, 2 * dim);
    this.down = new Linear(2 * dim, dim);
  }
}

export class Adder extends Module {
  constructor({ dim, layers, heads }) {
    super();
    this.symbols = new Embedding(alphabet.length, dim);
    this.places = new Embedding(length, dim);
    this.blocks = Array.from({ length: layers }, () => new Block(dim, heads));
    this.norm = new LayerNorm(dim);
    this.head = new Linear(dim, 10);
  }
}

// What each position learns from the positions before it.  x [B, T, D] -> [B, T, D]
function attend(block, x, see) {
  const [q, k, v] = [block.query, block.key, block.value].map(
    (linear) => splitHeads(linear.fwd(x), block.heads)); // [B, H, T, D/H]
  const scores = mul(matmul(q, swapAxes(k, -1, -2)), q.shape.at(-1) ** -0.5);
  const weights = see(softmaxCausal(scores)); // [B, H, T, T]: row t sees places 0 .. t
  return block.out.fwd(mergeHeads(matmul(weights, v)));
}

// tokens i32 [B, T] -> logits of the digits of the answer, [B, 3, 10]. `see` gets each map of
// attention and its name.
function logits(model, tokens, see = (name, map) => map) {
  let x = add(model.symbols.fwd(tokens), model.places.fwd(arange(length)));
  model.blocks.forEach((block, i) => {
    x = add(x, attend(block, block.norm1.fwd(x), (map) => see(`layer${i}`, map)));
    x = add(x, block.down.fwd(relu(block.up.fwd(block.norm2.fwd(x)))));
  });
  return model.head.fwd(model.norm.fwd(narrow(x, 1, prompt - 1, digits)));
}

export const loss = (model, { tokens, answers }) => crossEntropy(logits(model, tokens), answers);

// The share of answers that are right in every digit. A digit is right if it is the likeliest one
// after the right digits before it. If all digits are, the model also writes this answer when it
// reads its own digits.
export function share(model, { tokens, answers }) {
  const right = equal(argmax(logits(model, tokens), -1), answers); // [B, 3]
  return mean(prod(cast(right, 'f32'), -1));
}

// The probabilities of the digits, [B, 3, 10]. Each run has the maps of attention, too:
// captures.get('layer0') is [B, H, T, T].
export const observed = (model, { tokens }) => softmax(logits(model, tokens, capture), -1);

// The model writes its answers, digit by digit: `run` maps tokens to the result of `observed`.
// Returns the texts, and the last result.
export async function write(run, sums) {
  const texts = sums.map(question);
  let result;
  for (let i = 0; i < digits; ++i) {
    result = await run(tokens(texts));
    for (let n = 0; n < sums.length; ++n) {
      const p = result.output.slice(10 * (n * digits + i), 10 * (n * digits + i + 1));
      texts[n] += p.indexOf(Math.max(...p)); // the likeliest digit
    }
  }
  return { texts, result };
}
