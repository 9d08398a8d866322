// Random ops. The interpreter has its own generator, so equal values mean that both are Threefry.
// random_test checks the distributions.
#include "checks/samples.h"

namespace tensorgrad::checks {

Samples random_samples() {
  Samples rows;
  rows.push_back({"uniform", "unit", {}, [](In) { return uniform({3, 5}); }});
  rows.push_back({"uniform", "range", {}, [](In) { return uniform({40}, -3, 5); }});
  rows.push_back({"uniform", "rank_0", {}, [](In) { return uniform({}); }});
  rows.push_back({"uniform", "empty", {}, [](In) { return uniform({0, 2}); }});
  rows.push_back({"uniform", "many_blocks", {}, [](In) { return uniform({5000}); }});
  rows.push_back({"uniform", "of_views", {}, [](In) {
                    return permute(uniform({3, 5}), {1, 0}) + narrow(uniform({5, 9}), 1, 2, 3);
                  }});
  rows.push_back({"uniform", "two_calls", {real({9})}, [](In x) {
                    return uniform({9}) * x[0] - uniform({9});
                  }});
  // cos(2 pi v) rounds its angle, up to 6.3, and the radius is up to 5.8.
  rows.push_back({"randn", "plain", {}, [](In) { return randn({4, 300}); }, 5e-6});
  rows.push_back({"randn", "rank_0", {}, [](In) { return randn({}); }, 5e-6});
  rows.push_back(
      {"randn", "added_noise", {real({40})}, [](In x) { return exp(x[0] + randn({40})); }, 1e-5});
  rows.push_back({"bernoulli", "probabilities", {real({300}, 0, 1).fixed()}, [](In x) {
                    return bernoulli(x[0]);
                  }});
  rows.push_back({"bernoulli", "certain", {given({4}, {0, 1, 0, 1}).fixed()}, [](In x) {
                    return bernoulli(x[0]);
                  }});
  rows.push_back({"bernoulli", "broadcast", {real({1}, 0.2, 0.8).fixed()}, [](In x) {
                    return bernoulli(broadcast_to(x[0], {50}));
                  }});
  rows.push_back(
      {"categorical", "vector", {real({5}).fixed()}, [](In x) { return categorical(x[0]); }});
  rows.push_back(
      {"categorical", "rows", {real({200, 7}).fixed()}, [](In x) { return categorical(x[0]); }});
  rows.push_back({"categorical", "batch", {real({2, 3, 4}, -1000, 1000).fixed()}, [](In x) {
                    return categorical(x[0]);
                  }});
  rows.push_back(
      {"categorical", "one_class", {real({5, 1}).fixed()}, [](In x) { return categorical(x[0]); }});

  const auto dropped = [](float p) { return [p](In x) { return dropout(x[0], p); }; };
  rows.push_back({"dropout", "half", {real({20, 30})}, dropped(0.5f)});
  rows.push_back({"dropout", "little", {real({5000})}, dropped(0.1f)});
  rows.push_back({"dropout", "none", {real({20})}, dropped(0)});
  rows.push_back({"dropout", "all", {real({20})}, dropped(1)});
  rows.push_back({"dropout", "rank_0", {real({})}, dropped(0.5f)});
  rows.push_back({"dropout", "empty", {real({0})}, dropped(0.5f)});
  rows.push_back({"dropout", "of_view", {real({6, 4})}, [](In x) {
                    return dropout(permute(x[0], {1, 0}), 0.3f);
                  }});
  rows.push_back({"dropout", "twice", {real({6, 40})}, [](In x) {
                    return dropout(tanh(dropout(x[0], 0.3f)), 0.3f);
                  }});
  return rows;
}

}  // namespace tensorgrad::checks
