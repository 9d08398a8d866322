// PyTorch's values through the package, on the CPU.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fixture, tg } from './package.mjs';
import { replay_case, replay_training, tensors_of } from './replay.mjs';

const here = { device: 'cpu', worker: false };

test('ops and their gradients have the values of PyTorch', async () => {
  const { json, bytes } = await fixture('ops');
  const tensors = tensors_of(bytes);
  assert.ok(json.cases.length > 100);
  const wrong = [];
  for (const each of json.cases) {
    const worst = await replay_case(tg, each, tensors, { tolerance: 5e-6, ...here });
    if (!(worst <= 1)) wrong.push(`${each.case}: ${worst}`);
  }
  assert.deepEqual(wrong, []);
});

for (const name of ['mlp_sin', 'transformer', 'cnn', 'mamba'])
  test(`training ${name} has the losses, gradients and weights of PyTorch`, async () => {
    const { json, bytes } = await fixture(`train_${name}`);
    const worst = await replay_training(tg, json, tensors_of(bytes), here);
    assert.ok(worst.loss <= 1 && worst.gradients <= 1 && worst.final <= 1, JSON.stringify(worst));
    assert.ok(worst.loss > 0 && worst.final > 0);
  });
