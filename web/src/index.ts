// The package: training, running, and language models on text.
import { offerSessions } from './compile/open.js';
import { makeTextSession } from './engine/text_session.js';
import { useEverything } from './wasm/module.js';

useEverything();
offerSessions(makeTextSession);

export * from './api.js';
export { Tokenizer } from './text/tokenizer.js';
export {
  TextGenerator,
  TextTrainer,
  type OnText,
  type TextGeneratorOptions,
  type TextStepResult,
  type TextTrainerSpec,
  type Validation,
} from './text/models.js';
export type { GenerateOptions, TextModelConfig, TextTrainingOptions } from './text/options.js';
