// Samples a token from logits. Probabilities are computed in double. If only some candidates are
// kept, they are sorted by probability and then by id, so that ties have a fixed order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/fail.h"
#include "support/integers.h"
#include "support/threefry.h"
#include "tensorgrad/generate.h"

namespace tensorgrad {

namespace {

constexpr std::uint32_t kDrawForSampling = 21;

// 53 random bits as a number in [0, 1).
double uniform(std::uint32_t seed, std::uint32_t i) {
  const auto words = threefry(seed, kDrawForSampling, i, 0);
  const std::uint64_t bits = (static_cast<std::uint64_t>(words[0]) << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

struct Candidate {
  std::int32_t id;
  double weight;  // not normalised
};

}  // namespace

Sampler::Sampler(const SamplingOptions& options) : options_(options) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature))
    user_error("sampling: the temperature must not be negative: {}", options.temperature);
  if (options.top_k < 0) user_error("sampling: top_k must not be negative: {}", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1))
    user_error("sampling: top_p must be above 0 and at most 1: {}", options.top_p);
  if (!(options.min_p >= 0 && options.min_p <= 1))
    user_error("sampling: min_p must be from 0 to 1: {}", options.min_p);
  if (!(options.repetition_penalty > 0) || std::isinf(options.repetition_penalty))
    user_error("sampling: the repetition penalty must be above 0: {}", options.repetition_penalty);
}

std::int32_t Sampler::pick(std::span<const float> logits, std::span<const std::int32_t> seen) {
  if (logits.empty()) user_error("sampling: there are no logits");
  std::vector<double> scores(logits.begin(), logits.end());
  for (std::size_t id = 0; id < scores.size(); ++id)
    if (std::isnan(scores[id])) user_error("sampling: the logit of token {} is NaN", id);
  if (options_.repetition_penalty != 1) {
    std::vector<bool> done(scores.size());
    for (const std::int32_t id : seen) {
      if (id < 0 || usize(id) >= scores.size())
        user_error("sampling: the seen token {} is out of range: there are {} tokens", id,
                   scores.size());
      if (done[usize(id)]) continue;
      done[usize(id)] = true;
      double& score = scores[usize(id)];
      score = score > 0 ? score / options_.repetition_penalty : score * options_.repetition_penalty;
    }
  }
  const auto likeliest = std::max_element(scores.begin(), scores.end());
  if (options_.temperature == 0 || options_.top_k == 1 || std::isinf(*likeliest))
    return static_cast<std::int32_t>(likeliest - scores.begin());

  std::vector<Candidate> candidates;
  candidates.reserve(scores.size());
  for (std::size_t id = 0; id < scores.size(); ++id)
    candidates.push_back({static_cast<std::int32_t>(id),
                          std::exp((scores[id] - *likeliest) / options_.temperature)});
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  };
  if (options_.top_k > 0 || options_.top_p < 1 || options_.min_p > 0)
    std::sort(candidates.begin(), candidates.end(), before);
  if (options_.top_k > 0 && usize(options_.top_k) < candidates.size())
    candidates.resize(usize(options_.top_k));
  const auto total = [&] {
    return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                           [](double sum, const Candidate& c) { return sum + c.weight; });
  };
  if (options_.top_p < 1) {
    // The fewest candidates whose sum reaches top_p.
    const double wanted = options_.top_p * total();
    double sum = 0;
    std::size_t kept = 0;
    while (kept < candidates.size() && sum < wanted) sum += candidates[kept++].weight;
    candidates.resize(std::max<std::size_t>(kept, 1));
  }
  if (options_.min_p > 0) {
    const double least = options_.min_p * candidates.front().weight;
    while (candidates.back().weight < least) candidates.pop_back();
  }
  const double at = uniform(options_.seed, drawn_++) * total();
  double sum = 0;
  for (const Candidate& c : candidates) {
    sum += c.weight;
    if (at < sum) return c.id;
  }
  return candidates.back().id;
}

}  // namespace tensorgrad
