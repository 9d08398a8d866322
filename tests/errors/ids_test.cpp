// Ids out of range: the message names the op, the id, the range and the user's line, and the step
// changes nothing.
#include <limits>

#include "tests/errors/expect_error.h"
#include "tests/errors/snapshot.h"

namespace tensorgrad::errors {
namespace {

using Ints = std::vector<std::int32_t>;

struct Model {
  Embedding emb{5, 3};
  Linear head{3, 4};
};

using Loss = std::function<Tensor(const Model& m, const Inputs& in)>;

struct IdRow {
  const char* name;
  std::string text;
  int line;
  Loss loss;
  Ints good, bad;
};

TrainingOptions options(int threads) {
  return {.inputs = {{"ids", {2, 3}, i32}}, .optimizer = Adam{.lr = 0.1}, .threads = threads};
}

void expect_out_of_range(const std::vector<IdRow>& rows, int threads) {
  for (const IdRow& row : rows) {
    SCOPED_TRACE(row.name);
    const auto captured = [&](const Model& m, const Inputs& in) {
      capture("ids", in["ids"]);
      return row.loss(m, in);
    };
    auto train = compile(Model{}, options(threads), captured);
    auto twin = compile(Model{}, options(threads), row.loss);
    for (auto* each : {&train, &twin}) each->step({{"ids", row.good}});
    const Snapshot before = snapshot(train);
    expect_errors({{row.name, row.text, row.line, [&] { train.step({{"ids", row.bad}}); }}});
    EXPECT_EQ(snapshot(train), before);
    EXPECT_EQ(train.steps(), 1);
    // Again, with captures, which is another program of the same graph.
    expect_errors({{row.name, row.text, row.line, [&] {
                      train.step({{"ids", row.bad}}, {.captures = true});
                    }}});
    EXPECT_EQ(snapshot(train), before);
    const Result here = train.step({{"ids", row.good}}), there = twin.step({{"ids", row.good}});
    EXPECT_EQ(here.loss(), there.loss());
    EXPECT_EQ(snapshot(train), snapshot(twin));
    EXPECT_NE(snapshot(train), before);
  }
}

#define LOSS __LINE__, [](const Model& m, const Inputs& in)

// [2, 3, 4], the same for both rows
Tensor logits(const Model& m) { return broadcast_to(m.head(narrow(m.emb.W, 0, 0, 3)), {2, 3, 4}); }

// A row's call stands on the line of its __LINE__.
// clang-format off
std::vector<IdRow> rows() {
  return {
      {"embedding", "embedding: id 5 is out of range: ids are 0 to 4\n  in emb, at @",
       LOSS { return mean(square(m.head(embedding(m.emb.W, in["ids"])))); },
       {0, 4, 1, 1, 2, 3}, {0, 4, 1, 5, 2, 3}},
      {"a layer", "Embedding: id -1 is out of range: ids are 0 to 4\n  in emb, at @",
       LOSS { return mean(square(m.head(m.emb(in["ids"])))); },
       {0, 4, 1, 1, 2, 3}, {0, 4, 1, 1, 2, -1}},
      {"the first of several", "Embedding: id 77 is out of range: ids are 0 to 4\n  in emb, at @",
       LOSS { return mean(square(m.head(m.emb(in["ids"])))); },
       {0, 4, 1, 1, 2, 3}, {0, 77, 88, 1, -9, 99}},
      {"ids that were computed", "Embedding: id 8 is out of range: ids are 0 to 4\n  in emb, at @",
       LOSS { return mean(square(m.head(m.emb(in["ids"] * 2)))); },
       {0, 2, 1, 1, 2, 0}, {0, 2, 1, 1, 2, 4}},
      {"take_along_axis", "take_along_axis: id 3 is out of range: ids are 0 to 2\n  at @",
       LOSS { return mean(square(take_along_axis(narrow(m.emb.W * 2, 0, 0, 2), in["ids"], 1))); },
       {0, 1, 2, 2, 1, 0}, {0, 1, 2, 3, 1, 0}},
      {"take_along_axis of a parameter",
       "take_along_axis: id 3 is out of range: ids are 0 to 2\n  in emb, at @",
       LOSS { return mean(square(take_along_axis(narrow(m.emb.W, 0, 0, 2), in["ids"], 1))); },
       {0, 1, 2, 2, 1, 0}, {0, 1, 2, 3, 1, 0}},
      {"gather", "gather: id -2 is out of range: ids are 0 to 4\n  at @",
       LOSS { return mean(square(gather(tanh(m.emb.W), 0, in["ids"]))); },
       {0, 4, 1, 1, 2, 3}, {0, 4, 1, -2, 2, 3}},
      {"one_hot", "one_hot: id 5 is out of range: ids are 0 to 4\n  at @",
       LOSS { return mean(square(matmul(one_hot(in["ids"], 5), m.emb.W))); },
       {0, 4, 1, 1, 2, 3}, {0, 4, 1, 1, 5, 3}},
      {"one_hot of one class", "one_hot: id 1 is out of range: ids are 0 to 0\n  at @",
       LOSS { return mean(square(one_hot(in["ids"], 1) * sum(m.emb.W) * 2)); },
       {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 0}},
      {"cross_entropy", "cross_entropy: id 4 is out of range: ids are 0 to 3\n  at @",
       LOSS { return cross_entropy(logits(m), in["ids"]); },
       {0, 3, 1, 1, 2, 3}, {0, 3, 1, 1, 2, 4}},
      {"cross_entropy, not the ignored one",
       "cross_entropy: id -1 is out of range: ids are 0 to 3\n  at @",
       LOSS { return cross_entropy(logits(m), in["ids"], {.ignore_index = -100}); },
       {0, 3, -100, 1, 2, 3}, {0, 3, -100, 1, 2, -1}},
      {"nll_loss", "nll_loss: id 4 is out of range: ids are 0 to 3\n  at @",
       LOSS { return nll_loss(logits(m), in["ids"]); },
       {0, 3, 1, 1, 2, 3}, {0, 3, 1, 1, 2, 4}},
  };
}
// clang-format on

TEST(IdErrors, OneThread) { expect_out_of_range(rows(), 1); }
TEST(IdErrors, SeveralThreads) { expect_out_of_range(rows(), 3); }

// The bad id is in another output than the loss: still no update.
TEST(IdErrors, OutsideTheLoss) {
  auto train = compile(Model{}, options(1), [](const Model& m, const Inputs& in) -> Outputs {
    const Tensor loss = mean(square(m.emb.W));
    return {{"loss", loss}, {"rows", embedding(m.head.W, in["ids"])}};
  });
  train.step({{"ids", Ints{0, 1, 2, 0, 1, 2}}});
  const Snapshot before = snapshot(train);
  const std::string text = text_of([&] { train.step({{"ids", Ints{0, 1, 2, 0, 1, 3}}}); });
  EXPECT_NE(text.find("embedding: id 3 is out of range: ids are 0 to 2"), std::string::npos);
  EXPECT_EQ(snapshot(train), before);
}

// The check may be fused into the kernel that reads its result; the message still names the check.
TEST(IdErrors, AFusedCheckIsNamed) {
  int line = 0;
  const auto twice = [&](const Model&, const Inputs& in) {
    line = __LINE__ + 1;
    const Tensor hot = one_hot(in["ids"], 1);
    return sum(tanh(hot) * 2);
  };
  auto run = compile_forward(Model{}, {.inputs = {{"ids", {6}, i32}}, .threads = 1}, twice);
  EXPECT_EQ(run.counts().kernels, 1);  // otherwise this tests nothing
  const Ints bad = {0, 0, 1, 0, 0, 0};
  EXPECT_EQ(text_of([&] {
              run.run({{"ids", bad}});
            }),
            at_line("one_hot: id 1 is out of range: ids are 0 to 0\n  at @", __FILE__, line));
}

TEST(IdErrors, OfAnEmptyTable) {
  int line = 0;
  const auto rows_of_none = [&](const Model&, const Inputs& in) {
    line = __LINE__ + 1;
    return embedding(zeros({0, 3}), in["ids"]);
  };
  auto run = compile_forward(Model{}, {.inputs = {{"ids", {1}, i32}}, .threads = 1}, rows_of_none);
  const Ints ids = {0};
  EXPECT_EQ(text_of([&] {
              run.run({{"ids", ids}});
            }),
            at_line("embedding: id 0 is out of range: there are none\n  at @", __FILE__, line));
}

TEST(IdErrors, AForwardPassGoesOn) {
  auto run = compile_forward(Model{}, {.inputs = {{"ids", {2, 3}, i32}}, .threads = 1},
                             [](const Model& m, const Inputs& in) { return m.emb(in["ids"]); });
  const Ints good = {0, 1, 2, 3, 4, 0}, bad = {0, 1, 2, 3, 4, 5};
  const Array first = run.run({{"ids", good}}).output();
  EXPECT_NE(text_of([&] {
              run.run({{"ids", bad}});
            }).find("Embedding: id 5 is out of range"),
            std::string::npos);
  const Array again = run.run({{"ids", good}}).output();
  EXPECT_TRUE(std::equal(first.floats().begin(), first.floats().end(), again.floats().begin()));
}

// Impossible probabilities are reported like a bad id, with the op, the rule and the line, and the
// program continues.
TEST(IdErrors, NothingToDrawFrom) {
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  struct Draw {
    const char* name;
    std::string text;
    int line;
    std::function<Tensor(const Inputs& in)> draw;
    std::vector<std::vector<float>> bad;
  };
  const std::vector<Draw> draws = {
      {"categorical",
       "categorical: the largest logit of a row is not finite: there is no class to choose\n  at @",
       __LINE__ + 1,
       [](const Inputs& in) { return categorical(in["x"]); },
       {{0, 1, -inf, -inf}, {nan, 0, 0, 0}, {0, 0, 0, inf}}},
      {"bernoulli",
       "bernoulli: a probability is outside 0 to 1, or NaN\n  at @",
       __LINE__ + 1,
       [](const Inputs& in) { return bernoulli(in["x"]); },
       {{0, 1, -0.25f, 0}, {0, 0, 0, 1.0000001f}, {nan, 0, 0, 0}}},
  };
  for (const Draw& each : draws) {
    auto run = compile_forward(Model{}, {.inputs = {{"x", {2, 2}}}, .threads = 1},
                               [&](const Model&, const Inputs& in) { return each.draw(in); });
    for (const std::vector<float>& bad : each.bad) {
      expect_errors({{each.name, each.text, each.line, [&] { run.run({{"x", bad}}); }}});
      run.run({{"x", std::vector<float>{0, 1, 1, 0}}});
    }
  }
  // If one class is possible, the others may be impossible.
  auto run = compile_forward(Model{}, {.inputs = {{"x", {2, 2}}}, .threads = 1},
                             [](const Model&, const Inputs& in) { return categorical(in["x"]); });
  const Result result = run.run({{"x", std::vector<float>{-inf, 0, 5, -inf}}});
  EXPECT_EQ(result.output().ints()[0], 1);
  EXPECT_EQ(result.output().ints()[1], 0);
}

// With accumulation a refused step does not count, so the round still has all its steps.
TEST(IdErrors, ARefusedStepIsNoPartOfTheAccumulation) {
  const auto loss = [](const Model& m, const Inputs& in) {
    return mean(square(m.head(m.emb(in["ids"]))));
  };
  TrainingOptions all = options(1);
  all.accumulate = 3;
  auto train = compile(Model{}, all, loss), twin = compile(Model{}, all, loss);
  const Ints good = {0, 1, 2, 3, 4, 0}, bad = {0, 1, 2, 3, 4, 5};
  for (int i = 0; i < 6; ++i) {
    if (i % 2) text_of([&] { train.step({{"ids", bad}}); });
    train.step({{"ids", good}}), twin.step({{"ids", good}});
  }
  EXPECT_EQ(snapshot(train), snapshot(twin));
}

}  // namespace
}  // namespace tensorgrad::errors
