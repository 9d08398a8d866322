// Losses with all their options.
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

constexpr Reduction kReductions[] = {Reduction::mean, Reduction::sum, Reduction::none};
constexpr const char* kNames[] = {"mean", "sum", "none"};

// The same rows for cross_entropy and nll_loss.
void add_classification(Samples& rows) {
  const auto add = [&](const std::string& variant, const Arg& logits, const Arg& targets,
                       CrossEntropyOptions options, double tolerance = 2e-6) {
    rows.push_back({"cross_entropy",
                    variant,
                    {logits, targets},
                    [=](In x) { return cross_entropy(x[0], x[1], options); },
                    tolerance});
    rows.push_back({"nll_loss",
                    variant,
                    {logits, targets},
                    [=](In x) { return nll_loss(x[0] * 0.5f, x[1], options); },
                    tolerance});
  };
  const Arg logits = real({6, 5}), targets = ints({6}, 0, 4);
  const Arg partly = given({6}, {3, -100, 0, 4, -100, 2}, i32);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = kNames[i];
    CrossEntropyOptions options{.reduction = kReductions[i]};
    add(name, logits, targets, options);
    options.label_smoothing = 0.1f;
    add(name + "_smoothed", logits, targets, options);
    options.ignore_index = -100;
    add(name + "_smoothed_ignoring", logits, partly, options);
    options.label_smoothing = 0;
    add(name + "_ignoring", logits, partly, options);
    options.ignore_index = 2;  // a class like the others
    add(name + "_ignoring_a_class", logits, targets, options);
  }
  add("rank_1", real({5}), ints({}, 0, 4), {});
  add("sequences", real({2, 3, 7}), ints({2, 3}, 0, 6), {});
  add("one_class", real({4, 1}), ints({4}, 0, 0), {});
  add("fully_smoothed", logits, targets, {.label_smoothing = 1});
  add("large_logits", real({8, 5}, -1000, 1000), ints({8}, 0, 4), {});
  add("rows_of_300", real({3, 300}), ints({3}, 0, 299), {});
  add("many_rows", real({700, 9}), ints({700}, 0, 8), {.ignore_index = 3});
  add("no_rows_sum", real({0, 5}), ints({0}, 0, 4), {.reduction = Reduction::sum});
  add("number_target", real({5}), ints({}, 2, 2), {.reduction = Reduction::none});
  rows.push_back(
      {"cross_entropy", "of_linear", {real({6, 4}), real({4, 5}), ints({6}, 0, 4)}, [](In x) {
         return cross_entropy(matmul(x[0], x[1]), x[2]);
       }});
  rows.push_back({"cross_entropy",
                  "all_ignored",
                  {logits, given({6}, {-1}, i32)},
                  [](In x) { return cross_entropy(x[0], x[1], {.ignore_index = -1}); },
                  2e-6,
                  false});
}

void add_regression(Samples& rows) {
  const auto a = [](const Shape& shape) { return real(shape).on_grid(1.0 / 64, 0.5); };
  const auto b = [](const Shape& shape) { return real(shape).on_grid(1.0 / 64, 0.25); };
  const auto share = [](const Shape& shape) { return real(shape, 0.05, 0.95); };
  for (std::size_t i = 0; i < 3; ++i) {
    const Reduction reduction = kReductions[i];
    const char* name = kNames[i];
    rows.push_back({"mse_loss", name, {a({4, 3}), b({4, 3})}, [=](In x) {
                      return mse_loss(x[0], x[1], reduction);
                    }});
    rows.push_back({"bce_with_logits", name, {a({4, 3}), share({4, 3})}, [=](In x) {
                      return bce_with_logits(x[0], x[1], reduction);
                    }});
    rows.push_back({"huber_loss", name, {a({4, 3}), b({4, 3})}, [=](In x) {
                      return huber_loss(x[0], x[1], 1, reduction);
                    }});
    rows.push_back({"kl_div", name, {real({4, 3}, -3, -0.1), share({4, 3})}, [=](In x) {
                      return kl_div(x[0], x[1], reduction);
                    }});
  }
  rows.push_back({"mse_loss", "rank_0", {a({}), b({})}, [](In x) { return mse_loss(x[0], x[1]); }});
  rows.push_back(
      {"mse_loss", "broadcast", {a({4, 3}), b({3})}, [](In x) { return mse_loss(x[0], x[1]); }});
  rows.push_back({"mse_loss", "number", {a({4, 3})}, [](In x) { return mse_loss(x[0], 0.5f); }});
  rows.push_back(
      {"mse_loss", "many", {a({70, 70}), b({70, 70})}, [](In x) { return mse_loss(x[0], x[1]); }});
  rows.push_back({"bce_with_logits",
                  "large_logits",
                  {real({40}, -1000, 1000).away_from({0}), bools({40})},
                  [](In x) { return bce_with_logits(x[0], x[1]); }});
  rows.push_back({"bce_with_logits", "broadcast", {a({4, 3}), share({4, 1})}, [](In x) {
                    return bce_with_logits(x[0], x[1]);
                  }});
  // |a - b| is at least 1/256 away from 1/2.
  rows.push_back({"huber_loss", "delta", {a({40}), b({40})}, [](In x) {
                    return huber_loss(x[0], x[1], 0.5f);
                  }});
  rows.push_back({"huber_loss", "far_off", {real({20}, 10, 2000)}, [](In x) {
                    return huber_loss(x[0], -3.0f, 1.5f);
                  }});
  rows.push_back(
      {"kl_div", "target_0", {real({4}, -3, -0.1), given({4}, {0, 0.5, 0, 0.5}).fixed()}, [](In x) {
         return kl_div(x[0], x[1], Reduction::sum);
       }});
  rows.push_back({"kl_div", "of_log_softmax", {real({3, 5}), real({3, 5}).fixed()}, [](In x) {
                    return kl_div(log_softmax(x[0]), softmax(x[1]), Reduction::sum);
                  }});
}

}  // namespace

Samples loss_samples() {
  Samples rows;
  add_classification(rows);
  add_regression(rows);
  return rows;
}

}  // namespace tensorgrad::checks
