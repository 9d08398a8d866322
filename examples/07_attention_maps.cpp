// Attention maps by capture. A model of two attention layers learns induction: it sees a row of
// letters, is then asked for some of them again, and answers with the letter that followed each.
// Attention is written out, so that capture() can name its probabilities. The map shows where the
// model looks for its answer.
#include <tensorgrad/tensorgrad.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace tg = tensorgrad;

constexpr int kLetters = 12, kShown = 8, kAsked = kShown - 1, kTime = kShown + kAsked;
constexpr int kBatch = 64, kDim = 32;

struct Layer {
  tg::Linear q{kDim, kDim, false}, k{kDim, kDim, false}, v{kDim, kDim, false};

  // x [B, T, D] -> [B, T, D]. Without the capture, this becomes one kernel that stores no weights.
  tg::Tensor operator()(tg::Tensor x, const std::string& name) const {
    const tg::Tensor mask = where(tril(tg::ones({kTime, kTime})) > 0, 0, -1e9f);
    const tg::Tensor scores = matmul(q(x), swap_axes(k(x), -1, -2)) / std::sqrt(float{kDim});
    const tg::Tensor weights = tg::capture(name, softmax(scores + mask));  // [B, T, T]
    return matmul(weights, v(x));
  }
};

struct Model {
  tg::Embedding letters{kLetters, kDim}, positions{kTime, kDim};
  std::array<Layer, 2> layers;
  tg::Linear out{kDim, kLetters};

  // tokens i32 [B, T] -> logits of an answer to each of the last letters, [B, kAsked, kLetters]
  tg::Tensor operator()(tg::Tensor tokens) const {
    tg::Tensor x = letters(tokens) + positions(tg::arange(kTime));
    for (std::size_t i = 0; i < layers.size(); ++i)
      x = x + layers[i](x, "layer" + std::to_string(i) + ".attention");
    return out(narrow(x, 1, kShown, kAsked));
  }
};

// std::shuffle differs between libraries.
void shuffle(std::vector<int>& items, std::mt19937& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

// Rows of different letters. All but the last letter are asked for, in another order.
struct Questions {
  std::vector<std::int32_t> tokens, places, answers;  // places: where the answer was shown

  Questions(std::mt19937& random, int rows) {
    std::vector<int> letters(kLetters), asked(kAsked);
    for (int row = 0; row < rows; ++row) {
      std::iota(letters.begin(), letters.end(), 0);
      std::iota(asked.begin(), asked.end(), 0);
      shuffle(letters, random);
      shuffle(asked, random);
      tokens.insert(tokens.end(), letters.begin(), letters.begin() + kShown);
      for (const int place : asked) {
        tokens.push_back(letters[static_cast<std::size_t>(place)]);
        places.push_back(place + 1);
        answers.push_back(letters[static_cast<std::size_t>(place + 1)]);
      }
    }
  }
};

// Rows are queries, columns are keys; the darker, the more weight.
void print_map(const std::string& title, const std::vector<std::int32_t>& tokens,
               std::span<const float> map) {
  const std::string shades = " .:-=+*#@";
  const auto letter = [&](std::size_t t) { return static_cast<char>('a' + tokens[t]); };
  std::printf("%s\n    ", title.c_str());
  for (std::size_t key = 0; key < kTime; ++key) std::printf("%c ", letter(key));
  std::printf("\n");
  for (std::size_t query = 0; query < kTime; ++query) {
    std::printf("  %c ", letter(query));
    for (std::size_t key = 0; key <= query; ++key) {
      const float weight = map[query * kTime + key];
      const char shade = shades[static_cast<std::size_t>(weight * 8.99f)];
      std::printf("%c%c", shade, shade);
    }
    std::printf("\n");
  }
}

// Every row is a distribution over the keys up to its own position.
bool is_causal_distribution(std::span<const float> map) {
  for (std::size_t query = 0; query < kTime; ++query) {
    float sum = 0;
    for (std::size_t key = 0; key < kTime; ++key) {
      const float weight = map[query * kTime + key];
      if (!(weight >= 0) || (key > query && weight != 0)) return false;
      sum += weight;
    }
    if (std::fabs(sum - 1) > 1e-5f) return false;
  }
  return true;
}

int main() {
  auto train = tg::compile(
      Model{},
      {.inputs = {{"tokens", {kBatch, kTime}, tg::i32}, {"answers", {kBatch, kAsked}, tg::i32}},
       .optimizer = tg::Adam{.lr = tg::warmup(20, tg::cosine(1e-2, 1e-3, 300))},
       .clip_grad_norm = 1.0f},
      [](const Model& m, const tg::Inputs& in) {
        return cross_entropy(m(in["tokens"]), in["answers"]);
      });
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const Questions batch(random, kBatch);
    const auto step = train.step({{"tokens", batch.tokens}, {"answers", batch.answers}});
    if (i % 100 == 0 || i == 299) std::printf("step %3d  loss %.4f\n", i, step.loss());
  }

  // One row of new questions, with the attention map that shows where the answers come from.
  auto answer =
      train.attach({.inputs = {{"tokens", {1, kTime}, tg::i32}}},
                   [](const Model& m, const tg::Inputs& in) { return argmax(m(in["tokens"])); });
  const Questions asked(random, 1);
  const auto result = answer.run({{"tokens", asked.tokens}}, {.captures = true});
  for (const std::string name : {"layer0.attention", "layer1.attention"}) {
    const auto map = result.capture(name).floats();  // [1, T, T]
    if (!is_causal_distribution(map)) {
      std::printf("%s is no causal attention\n", name.c_str());
      return 1;
    }
    print_map(name, asked.tokens, map);
  }

  // The last layer attends to the letter after the one asked for.
  const auto map = result.capture("layer1.attention").floats();
  const auto answers = result.output().ints();
  bool right = true;
  for (std::size_t i = 0; i < kAsked; ++i) {
    const auto row = map.subspan((kShown + i) * kTime, kTime);
    const auto place = std::max_element(row.begin(), row.end()) - row.begin();
    std::printf("after %c: %c, from place %d with weight %.2f\n", 'a' + asked.tokens[kShown + i],
                'a' + answers[i], static_cast<int>(place), row[static_cast<std::size_t>(place)]);
    right = right && answers[i] == asked.answers[i] && place == asked.places[i];
  }
  std::printf("%s\n",
              right ? "the model looks where the answers are" : "the model looks elsewhere");
  return right ? 0 : 1;
}
