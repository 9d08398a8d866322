// The models that this page trains. They are whole programs of the package: tokenizer, batches,
// validation, checkpoints. The command `tg generate` reads the files that the page saves.
import { TextTrainer, Tokenizer } from 'tensorgrad';

const models = {
  gpt: { kind: 'gpt', dim: 64, layers: 2, heads: 4, context: 64 },
  mamba: { kind: 'mamba', dim: 64, layers: 2, state: 8, context: 64 },
};
const tiny = { dim: 16, layers: 1, heads: 2, state: 4, context: 16 };

export const rate = 0.003;

/** A trainer of the text. `run` has the device; `small` makes a model for tests. */
export async function trainerOf({ text, kind }, { run, small }) {
  return TextTrainer.create({
    text,
    tokenizer: await Tokenizer.characters(text),
    model: { ...models[kind], ...(small && tiny) },
    // A checkpoint belongs to these options and this seed: they are the same in every run. The page
    // calls setLR() before the first step.
    training: { batch: small ? 2 : 8, lr: rate, lrSchedule: 'constant', seed: 1 },
    ...run,
  });
}
