// A language model learns a text that the visitor pastes, and writes while it learns.
import { page } from 'kit/page.js';
import { recall, remember } from 'kit/remember.js';
import { rate, trainerOf } from './model.js';

const part = (id) => document.getElementById(id);
const [text, kind, samples, prompt] = ['text', 'kind', 'samples', 'prompt'].map(part);
const every = 200; // steps from one sample to the next
const tokensToValidate = 4096;

// The text and the model that were learned last, or facts to begin with.
const facts = await (await fetch('facts.txt')).text();
text.value = recall('text', { text: facts }).text;
kind.value = recall('text', { kind: 'gpt' }).kind;

part('learn').onclick = kind.onchange = () => part('reset').click();

let learned; // the text of the model
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
  const start = [...prompt.value].filter((each) => learned.includes(each)).join('') || learned[0];
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
    const make = async () => {
      const choice = { text: text.value, kind: kind.value };
      const trainer = await trainerOf(choice, { run, small });
      learned = choice.text;
      remember('text', choice);
      return trainer;
    };
    const subject = {
      train: await make(),
      replaces: true, // a reset makes another trainer, perhaps of another text
      async reset() {
        const made = await make(); // may refuse the text: then the old one stays
        subject.train.destroy();
        subject.train = made;
        samples.replaceChildren();
        sampled = -Infinity;
      },
      step: () => subject.train.step(),
      setRate: (to) => subject.train.setLR?.(to),
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
