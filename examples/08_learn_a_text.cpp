// Trains a small model on a text, stops halfway, resumes in another trainer with the same bits, and
// generates text: tokenizer, data, trainer, checkpoint and generator as library calls.
#include <tensorgrad/tensorgrad.h>

#include <cstdio>
#include <filesystem>
#include <random>
#include <string>

namespace tg = tensorgrad;

// A counting rhyme, so that the example needs no file; TextData::read() reads a file of any size.
std::string rhymes() {
  const char* const things[] = {"apples", "ducks", "stones", "boats", "bells"};
  std::string text;
  for (int i = 0; i < 400; ++i) {
    const int count = i * 7 % 9 + 1;
    text += std::to_string(count) + " " + things[i % 5] + " and " + std::to_string(count + 1) +
            " " + things[i % 5] + "\n";
  }
  return text;
}

int main() {
  const std::string text = rhymes();
  tg::Tokenizer::Training pairs;
  pairs.add(text);
  const tg::Tokenizer tokenizer = pairs.finish(300);
  const tg::TextData data = tg::TextData::of(text, tokenizer, {.validation = 0.1});

  const tg::TextModelConfig model{
      .kind = "mamba", .dim = 32, .context = 32, .layers = 2, .state = 8};
  const tg::TrainerOptions options{.batch = 4, .steps = 120, .lr = 1e-2};
  const std::string name =
      "tensorgrad_example_" + std::to_string(std::random_device{}()) + ".safetensors";
  const std::filesystem::path path = std::filesystem::temp_directory_path() / name;

  // The whole training, with a checkpoint in the middle.
  tg::Trainer trainer(model, tokenizer, data, options);
  while (trainer.step() < options.steps) {
    if (trainer.steps() == 60) tg::save_checkpoint(path, trainer.checkpoint());
    if (trainer.steps() % 40 == 0)
      std::printf("step %d, loss %.3f\n", static_cast<int>(trainer.steps()),
                  static_cast<double>(trainer.report().loss));
  }
  const tg::Validation validation = trainer.validate();
  const double counting =
      tg::unigram_loss(data.training(), data.validation(), tokenizer.vocab_size());
  std::printf("validation %.3f, perplexity %.2f; counting tokens gives %.3f\n", validation.loss,
              validation.perplexity, counting);

  // The second half again, from the file.
  tg::Trainer second(model, tokenizer, data, options);
  second.restore(tg::load_checkpoint(path));
  while (second.step() < options.steps) {
  }
  const bool same = second.training().fingerprint() == trainer.training().fingerprint();
  std::printf("gone on from step 60: %s\n", same ? "the same bits" : "other bits");

  // Generates text from the file, as another program would.
  tg::save_checkpoint(path, second.checkpoint());
  tg::Generator writer(tg::load_checkpoint(path));
  // A byte-pair token includes the space before a word, so the prompt ends without a space.
  const std::string line = "3 ducks and";
  const std::string rest =
      tg::generate(writer, line, {.tokens = 20, .temperature = 0, .stop = {"\n"}});
  std::printf("%s%s\n", line.c_str(), rest.c_str());
  std::filesystem::remove(path);
  return same && validation.loss < counting / 2 && rest == " 4 ducks" ? 0 : 1;
}
