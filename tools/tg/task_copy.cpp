// copy: Mamba learns to separate letters from noise, to remember them, and to repeat them in order
// (selective copying). It reads
// "..b....d...a.......c....????" and answers "bdac" in the places of the question marks. The
// letters and their places are drawn anew for every example. One in 16 of all possible examples is
// held out and never trained on.
#include <algorithm>
#include <array>

#include "draw.h"
#include "support/integers.h"
#include "task.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::tool {

namespace {

constexpr std::string_view kAlphabet = "abcdefgh.?";
constexpr std::int64_t kKinds = 8;  // of letters
constexpr std::size_t kLength = 24, kLetters = 4, kT = kLength + kLetters;
constexpr std::uint32_t kNoise = 8, kQuestion = 9;  // as tokens
constexpr std::size_t kHeldOut = 1000;
constexpr std::size_t kEvalBatch = 250;  // divides kHeldOut
constexpr std::size_t kSamples = 6;

struct Example {
  std::array<std::int32_t, kT> tokens;
  std::array<std::int32_t, kLetters> answer;
};

// Draws example number i of this purpose.
Example drawn(std::uint32_t seed, DrawFor purpose, std::int64_t i) {
  Example made;
  made.tokens.fill(kNoise);
  std::fill(made.tokens.begin() + kLength, made.tokens.end(), static_cast<std::int32_t>(kQuestion));
  std::size_t placed = 0;
  for (std::size_t t = 0; t < kLength; ++t) {
    // The probability is the letters left over the positions left: every choice is equally likely.
    const auto left = static_cast<std::int64_t>(kLength - t),
               wanted = static_cast<std::int64_t>(kLetters - placed);
    const auto at = static_cast<std::int64_t>(2 * t);
    if (below(left, draw(seed, purpose, i, at)) >= wanted) continue;
    made.tokens[t] = made.answer[placed++] =
        static_cast<std::int32_t>(below(kKinds, draw(seed, purpose, i, at + 1)));
  }
  return made;
}

bool is_held_out(const Example& example) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const std::int32_t token : example.tokens)
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 16777619u;
  return (hash >> 16) % 16 == 0;
}

std::string letters_of(std::span<const std::int32_t> tokens) {
  std::string text;
  for (const std::int32_t token : tokens) text += kAlphabet[usize(token)];
  return text;
}

class CopyTask : public Task {
 public:
  explicit CopyTask(const TaskOptions& options)
      : options_(options),
        train_(compile_task(options)),
        answer_(attach_answers(train_, options.where.progress)),
        listen_(attach_listener(train_, options.where.progress)) {
    for (std::int64_t i = 0; held_out_.size() < kHeldOut; ++i)
      if (const Example example = drawn(options.seed, DrawFor::split, i); is_held_out(example))
        held_out_.push_back(example);
    std::vector<float> mask;  // [B, T]: 1 where a letter is the answer
    for (std::int64_t i = 0; i < options.batch; ++i)
      for (std::size_t t = 0; t < kT; ++t) mask.push_back(t >= kLength ? 1.0f : 0.0f);
    train_.set_input("mask", mask);
  }

  TrainingHandle& training() override { return train_; }

  Result step() override {
    if (train_.steps() == 0) next_ = 0;         // training was reset
    std::vector<std::int32_t> tokens, targets;  // [B, T]
    for (std::int64_t i = 0; i < options_.batch; ++i) {
      Example example = drawn(options_.seed, DrawFor::batch, next_++);
      while (is_held_out(example)) example = drawn(options_.seed, DrawFor::batch, next_++);
      tokens.insert(tokens.end(), example.tokens.begin(), example.tokens.end());
      targets.insert(targets.end(), kLength, 0);
      targets.insert(targets.end(), example.answer.begin(), example.answer.end());
    }
    return train_.step({{"tokens", tokens}, {"targets", targets}});
  }

  // An example is right only if all its letters are.
  double accuracy(Extent extent) override {
    const std::size_t count = extent == Extent::some ? kEvalBatch : kHeldOut;
    int right = 0;
    for (std::size_t start = 0; start < count; start += kEvalBatch) {
      std::vector<std::int32_t> tokens;
      for (std::size_t i = 0; i < kEvalBatch; ++i) {
        const Example& example = held_out_[start + i];
        tokens.insert(tokens.end(), example.tokens.begin(), example.tokens.end());
      }
      const Result run = answer_.run({{"tokens", tokens}});
      const auto said = run.output().ints();  // [B, T]
      for (std::size_t i = 0; i < kEvalBatch; ++i)
        right += std::equal(held_out_[start + i].answer.begin(), held_out_[start + i].answer.end(),
                            &said[i * kT + kLength]);
    }
    return right / static_cast<double>(count);
  }

  std::string right() const override {
    return fmt::format("of {} sequences with every letter right", grouped(kHeldOut));
  }

  // One symbol at a time: only the state remembers the letters.
  std::vector<std::string> samples() override {
    const StateSpec spec = train_.model().state(kSamples);
    NamedArrays memory = zero_state(spec);
    std::array<std::string, kSamples> said;
    for (std::size_t t = 0; t < kT; ++t) {
      std::vector<std::int32_t> now;
      for (std::size_t i = 0; i < kSamples; ++i) now.push_back(held_out_[i].tokens[t]);
      const Result run = listen_.run(feed_state(memory, {{"tokens", now}}));
      const Array next = run["next"];
      for (std::size_t i = 0; i < kSamples && t >= kLength; ++i)
        said[i] += letters_of(next.ints().subspan(i, 1));
      memory = state_after(run, spec);
    }
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const Example& example = held_out_[i];
      const std::string right = letters_of(example.answer);
      lines.push_back(
          fmt::format("{}  {}", letters_of(std::span(example.tokens).first(kLength)), said[i]));
      if (said[i] != right) lines.back() += "   wrong: it is " + right;
    }
    return lines;
  }

 private:
  static Training<Mamba> compile_task(const TaskOptions& options) {
    return compile(Mamba({.vocab = kAlphabet.size(), .layers = 2, .dim = 32, .state = 16}),
                   sequence_options(options, kT), [](const Mamba& m, const Inputs& in) {
                     return masked_cross_entropy(m(in["tokens"]), in["targets"], in["mask"]);
                   });
  }

  // The most likely letter at each position.
  static Forward<Mamba> attach_answers(Training<Mamba>& train, const CompileCallback& progress) {
    return train.attach({.inputs = {{"tokens", {static_cast<std::int64_t>(kEvalBatch), kT}, i32}},
                         .progress = progress},
                        [](const Mamba& m, const Inputs& in) { return argmax(m(in["tokens"])); });
  }

  // Processes one symbol of each sample, and the state.
  static Forward<Mamba> attach_listener(Training<Mamba>& train, const CompileCallback& progress) {
    return train.attach(
        {.inputs = with_state(train.model().state(kSamples), {{"tokens", {kSamples, 1}, i32}}),
         .progress = progress},
        [](const Mamba& m, const Inputs& in) -> Outputs {
          const Step step = m.step(in["tokens"], in);
          std::vector<std::pair<std::string, Tensor>> out = step.state;
          out.emplace_back("next", argmax(step.logits));
          return out;
        });
  }

  TaskOptions options_;
  Training<Mamba> train_;
  Forward<Mamba> answer_, listen_;
  std::vector<Example> held_out_;
  std::int64_t next_ = 0;  // next training example
};

}  // namespace

std::unique_ptr<Task> make_copy(const TaskOptions& options) {
  return std::make_unique<CopyTask>(options);
}

}  // namespace tensorgrad::tool
