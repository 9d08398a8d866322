// A small language model of two Mamba layers and one attention layer memorizes a nursery rhyme,
// character by character, and then recites it one token at a time. Its state is plain arrays
// between the calls. The program keeps the state after the first word and continues from there
// twice.
#include <tensorgrad/tensorgrad.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace tg = tensorgrad;

const std::string kText = "one two buckle my shoe\nthree four knock at the door\n";
constexpr std::int64_t kBatch = 4, kTime = 52;

// The characters of the text, each once. A token is an index into this string.
std::string alphabet_of(std::string text) {
  std::sort(text.begin(), text.end());
  text.erase(std::unique(text.begin(), text.end()), text.end());
  return text;
}

int main() {
  const std::string alphabet = alphabet_of(kText);
  const auto token = [&](char c) { return static_cast<std::int32_t>(alphabet.find(c)); };
  const tg::LanguageModel model({.vocab = static_cast<std::int64_t>(alphabet.size()),
                                 .dim = 32,
                                 .layers = "mamba attention mamba"});
  auto train = tg::compile(
      model,
      {.inputs = {{"tokens", {kBatch, kTime}, tg::i32}, {"targets", {kBatch, kTime}, tg::i32}},
       .optimizer = tg::AdamW{.lr = tg::warmup(10, tg::cosine(8e-3, 5e-4, 80))},
       .clip_grad_norm = 1.0f},
      [](const tg::LanguageModel& m, const tg::Inputs& in) {
        return cross_entropy(m(in["tokens"]), in["targets"]);
      });

  // Windows of the text, which wraps around at its end.
  std::mt19937 random(1);
  std::vector<std::int32_t> tokens(kBatch * kTime), targets(kBatch * kTime);
  for (int i = 0; i < 90; ++i) {
    for (std::size_t row = 0; row < kBatch; ++row) {
      const std::size_t start = random() % kText.size();
      for (std::size_t t = 0; t < kTime; ++t) {
        tokens[row * kTime + t] = token(kText[(start + t) % kText.size()]);
        targets[row * kTime + t] = token(kText[(start + t + 1) % kText.size()]);
      }
    }
    const tg::Result step = train.step({{"tokens", tokens}, {"targets", targets}});
    if (i % 30 == 29) std::printf("step %d, loss %.3f\n", i + 1, static_cast<double>(step.loss()));
  }

  // Takes one token, and returns the most likely next one and the state, under the names of its
  // inputs.
  const tg::StateSpec state = model.state(1, static_cast<std::int64_t>(kText.size()));
  auto next = train.attach({.inputs = tg::with_state(state, {{"tokens", {1, 1}, tg::i32}})},
                           [](const tg::LanguageModel& m, const tg::Inputs& in) -> tg::Outputs {
                             const tg::Step step = m.step(in["tokens"], in);
                             auto out = step.state;
                             out.emplace_back("next", argmax(step.logits));
                             return out;
                           });
  // Feeds one character and returns the most likely next one.
  const auto hear = [&](tg::NamedArrays& memory, char c) {
    const std::vector<std::int32_t> now{token(c)};
    const tg::Result result = next.run(tg::feed_state(memory, {{"tokens", now}}));
    memory = tg::state_after(result, state);
    const tg::Array& likeliest = result["next"];
    return alphabet[static_cast<std::size_t>(likeliest.ints()[0])];
  };
  // Generates text after `last`, feeding back its own output.
  const auto go_on = [&](tg::NamedArrays memory, char last, std::size_t count) {
    std::string said;
    while (said.size() < count) said += last = hear(memory, last);
    return said;
  };

  tg::NamedArrays memory = tg::zero_state(state);
  const std::string prompt = "one two";
  for (const char c : prompt.substr(0, prompt.size() - 1)) hear(memory, c);
  const std::string rest =
      go_on(memory, prompt.back(), kText.size() - prompt.size());  // with a copy of the memory
  std::printf("%s%s", prompt.c_str(), rest.c_str());
  const bool by_heart = prompt + rest == kText,
             same = go_on(memory, prompt.back(), rest.size()) == rest;
  std::printf("%s, %s\n", by_heart ? "by heart" : "not by heart",
              same ? "and the same again" : "but not the same again");
  return by_heart && same ? 0 : 1;
}
