// A language model learns a text that the visitor pastes, and writes while it learns.
import { page } from 'kit/page.js';
import { recall, remember } from 'kit/remember.js';
import { rate, trainerOf } from './model.js';

const part = (id) => document.getElementById(id);
const [text, kind, samples, prompt] = ['text', 'kind', 'samples', 'prompt'].map(part);
const every = 200; // steps from one sample to the next
const tokensToValidate = 4096;

// The text and the kind of model that are learned: those of the last visit, or facts to begin with.
const facts = await (await fetch('facts.txt')).text();
let learned = recall('text', { text: facts, kind: 'gpt' });
[text.value, kind.value] = [learned.text, learned.kind];

part('learn').onclick = kind.onchange = () => part('reset').click();

let sampled = -Infinity; // the step of the latest sample
let redraw = () => {};
part('write').onsubmit = (event) => {
  event.preventDefault();
  sampled = -Infinity;
  redraw();
};

// Shows a sample piece by piece, as the model writes it.
async function sample(trainer, step, tokens) {
  // The model knows no other characters than those of its text.
  const known = [...prompt.value].filter((each) => learned.text.includes(each)).join('');
  const [first] = learned.text;
  const start = known || first;
  const item = document.createElement('li');
  item.innerHTML = '<b></b><mark></mark><span></span>';
  const [title, begin, rest] = item.children;
  title.textContent = `step ${step.toLocaleString('en')}`;
  begin.textContent = start;
  samples.prepend(item);
  samples.children[12]?.remove();
  const options = { tokens, temperature: 0.7, seed: step };
  await trainer.generate(start, options, (piece) => rest.append(piece));
}

page({
  name: 'text',
  rate,
  loss: 'cross-entropy per character',
  score: 'bits per byte',
  async open({ run, small, redraw: draws }) {
    redraw = draws;
    const make = (choice) => trainerOf(choice, { run, small });
    const subject = {
      train: await make(learned),
      replaces: true, // a reset makes another trainer, perhaps of another text
      async reset() {
        const choice = { text: text.value, kind: kind.value };
        if (choice.text.length < 100)
          throw new Error('The text is too short to learn. Paste 100 characters or more.');
        const made = await make(choice); // may refuse the text: then the old one stays
        subject.train.destroy();
        subject.train = made;
        learned = choice;
        remember('text', learned);
        samples.replaceChildren();
        sampled = -Infinity;
      },
      step: () => subject.train.step(),
      async draw({ step }) {
        if (step >= sampled + every || step < sampled) {
          sampled = step;
          await sample(subject.train, step, small ? 20 : 200);
        }
        const { loss, bitsPerByte } = await subject.train.validate(tokensToValidate);
        if (Number.isNaN(loss)) return undefined; // the text is too short to keep a part
        part('validation').textContent = `Validation loss: ${loss.toFixed(3)}.`;
        return bitsPerByte;
      },
    };
    return subject;
  },
});
