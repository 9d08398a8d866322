// addition: a transformer learns to add two numbers of two digits, from text. 27 + 58 is
// "27+58=580": the answer has three digits, lowest first, so that each digit depends only on the
// digits of its column and the carry. The model reads the first 8 of these 9 characters and learns
// to write the last 3. If a sum is held out, the sum with its numbers swapped is held out too.
#include <algorithm>
#include <array>

#include "draw.h"
#include "support/integers.h"
#include "task.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::tool {

namespace {

constexpr std::string_view kAlphabet = "0123456789+=";
constexpr std::int64_t kNumbers = 100;  // 0 .. 99 on each side
constexpr std::size_t kPrompt = 6, kDigits = 3, kT = kPrompt + kDigits - 1;
constexpr std::size_t kHeldOut = 1500;
constexpr std::size_t kEvalBatch = 250;  // divides kHeldOut

struct Sum {
  int a, b;
};

std::int32_t token(char c) { return static_cast<std::int32_t>(kAlphabet.find(c)); }

std::string prompt(Sum s) { return fmt::format("{:02}+{:02}=", s.a, s.b); }

// "085" for 27 + 58.
std::string right_answer(Sum s) { return fmt::format("{:03}", s.a + s.b); }

std::string without_zeros(const std::string& digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
}

// All sums a + b, shuffled by the seed, with a + b and b + a as neighbours.
std::vector<Sum> shuffled_sums(std::uint32_t seed) {
  struct Entry {
    std::uint32_t key;
    Sum sum;
  };
  std::vector<Entry> entries;
  for (int a = 0; a < kNumbers; ++a)
    for (int b = a; b < kNumbers; ++b)
      entries.push_back({draw(seed, DrawFor::split, a, b), {a, b}});
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& x, const Entry& y) { return x.key < y.key; });
  std::vector<Sum> sums;
  for (const auto& [key, sum] : entries) {
    sums.push_back(sum);
    if (sum.a != sum.b) sums.push_back({sum.b, sum.a});
  }
  return sums;
}

class AdditionTask : public Task {
 public:
  explicit AdditionTask(const TaskOptions& options)
      : options_(options),
        train_(compile_task(options)),
        decode_(attach_decoder(train_, options.where.progress)) {
    std::vector<Sum> sums = shuffled_sums(options.seed);
    // Keeps a + b and b + a together: one more sum may stay out of training.
    std::size_t cut = kHeldOut;
    if (sums[cut].a == sums[cut - 1].b && sums[cut].b == sums[cut - 1].a) ++cut;
    held_out_.assign(sums.begin(), sums.begin() + kHeldOut);
    trained_.assign(sums.begin() + static_cast<std::ptrdiff_t>(cut), sums.end());

    std::vector<float> mask;  // [B, T]: 1 where the model writes a digit of the answer
    for (std::int64_t i = 0; i < options.batch; ++i)
      for (std::size_t t = 0; t < kT; ++t) mask.push_back(t + 1 >= kPrompt ? 1.0f : 0.0f);
    train_.set_input("mask", mask);
  }

  TrainingHandle& training() override { return train_; }

  Result step() override {
    const std::int64_t now = train_.steps();
    std::vector<std::int32_t> tokens, targets;  // [B, T]
    for (std::int64_t i = 0; i < options_.batch; ++i) {
      const auto size = static_cast<std::int64_t>(trained_.size());
      const auto which = below(size, draw(options_.seed, DrawFor::batch, now, i));
      const Sum sum = trained_[usize(which)];
      const std::string answer = right_answer(sum);
      const std::string text = prompt(sum) + std::string(answer.rbegin(), answer.rend());
      for (std::size_t t = 0; t < kT; ++t) {
        tokens.push_back(token(text[t]));
        targets.push_back(token(text[t + 1]));
      }
    }
    return train_.step({{"tokens", tokens}, {"targets", targets}});
  }

  double accuracy(Extent extent) override {
    const std::size_t count = extent == Extent::some ? kEvalBatch : kHeldOut;
    int right = 0;
    for (std::size_t start = 0; start < count; start += kEvalBatch) {
      const std::span sums(held_out_.data() + start, kEvalBatch);
      const std::vector<std::string> answers = decode(sums);
      for (std::size_t i = 0; i < sums.size(); ++i) right += answers[i] == right_answer(sums[i]);
    }
    return right / static_cast<double>(count);
  }

  std::string right() const override {
    return fmt::format("of {} sums with every digit right", grouped(kHeldOut));
  }

  std::vector<std::string> samples() override {
    std::vector<Sum> sums;
    for (std::size_t i = 0; i < 6; ++i) sums.push_back(held_out_[i * (kHeldOut / 6) + 1]);
    const std::vector<std::string> answers = decode(sums);
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::string right = right_answer(sums[i]);
      lines.push_back(
          fmt::format("{:2} + {:2} = {:>3}", sums[i].a, sums[i].b, without_zeros(answers[i])));
      if (answers[i] != right) lines.back() += "   wrong: it is " + without_zeros(right);
    }
    return lines;
  }

 private:
  static Training<Transformer> compile_task(const TaskOptions& options) {
    return compile(Transformer({.vocab = kAlphabet.size(),
                                .dim = 64,
                                .context = kT,
                                .layers = 3,
                                .heads = 4,
                                .activation = Activation::relu}),
                   sequence_options(options, kT), [](const Transformer& m, const Inputs& in) {
                     return masked_cross_entropy(m(in["tokens"]), in["targets"], in["mask"]);
                   });
  }

  // The most likely next token at each position.
  static Forward<Transformer> attach_decoder(Training<Transformer>& train,
                                             const CompileCallback& progress) {
    return train.attach(
        {.inputs = {{"tokens", {static_cast<std::int64_t>(kEvalBatch), kT}, i32}},
         .progress = progress},
        [](const Transformer& m, const Inputs& in) { return argmax(m(in["tokens"])); });
  }

  // Decodes the answers to at most kEvalBatch sums greedily: each digit is the most likely one and
  // is fed back before the next.
  std::vector<std::string> decode(std::span<const Sum> sums) {
    std::vector<std::int32_t> tokens(kEvalBatch * kT);  // [B, T], 0 where nothing is written yet
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::string text = prompt(sums[i]);
      std::transform(text.begin(), text.end(), &tokens[i * kT], token);
    }
    std::vector<std::string> answers(sums.size());
    for (std::size_t t = kPrompt; t < kPrompt + kDigits; ++t) {
      const Result run = decode_.run({{"tokens", tokens}});
      const auto next = run.output().ints();  // [B, T]
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::int32_t written = next[i * kT + t - 1];
        answers[i].insert(0, 1, kAlphabet[usize(written)]);
        if (t < kT) tokens[i * kT + t] = written;
      }
    }
    return answers;
  }

  TaskOptions options_;
  Training<Transformer> train_;
  Forward<Transformer> decode_;
  std::vector<Sum> held_out_, trained_;
};

}  // namespace

std::unique_ptr<Task> make_addition(const TaskOptions& options) {
  return std::make_unique<AdditionTask>(options);
}

}  // namespace tensorgrad::tool
