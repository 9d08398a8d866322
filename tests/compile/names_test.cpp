// Parameters are named by the path of their field; a parameter may occur in several places.
#include <array>
#include <memory>
#include <optional>
#include <variant>

#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {
namespace {

std::vector<std::string> names_of(const ProgramHandle& program) {
  std::vector<std::string> names;
  for (const ParamInfo& info : program.parameters()) names.push_back(info.name);
  return names;
}

class Norm {
 public:
  explicit Norm(std::int64_t size) : scale_({size}, init::ones()), size_(size) {}
  Tensor operator()(Operand x) const { return rms_norm(x, scale_); }
  std::int64_t size() const { return size_; }

 private:
  Param scale_;
  std::int64_t size_;
  TENSORGRAD_FIELDS(scale_)
};

struct Block {
  Linear proj{2, 2};
  Norm norm{2};
  float dropout = 0.1f;
};

struct Everything {
  Param first{{2}, init::zeros()};
  Block block;
  std::vector<Block> blocks = std::vector<Block>(2);
  std::array<Linear, 2> pair{Linear(2, 2, false), Linear(2, 2)};
  std::optional<Linear> absent, present = Linear(2, 2, false);
  std::variant<Linear, Block> chosen = Block{};
  std::unique_ptr<Block> owned = std::make_unique<Block>();
  std::string title = "no parameter";
  std::vector<int> sizes = {1, 2};
};

TEST(Names, AreFieldPathsInFieldOrder) {
  auto program = compile_forward(Everything{}, {.threads = 1},
                                 [](const Everything& m, const Inputs&) { return neg(m.first); });
  EXPECT_EQ(names_of(program), (std::vector<std::string>{"first",
                                                         "block.proj.W",
                                                         "block.proj.b",
                                                         "block.norm.scale_",
                                                         "blocks.0.proj.W",
                                                         "blocks.0.proj.b",
                                                         "blocks.0.norm.scale_",
                                                         "blocks.1.proj.W",
                                                         "blocks.1.proj.b",
                                                         "blocks.1.norm.scale_",
                                                         "pair.0.W",
                                                         "pair.1.W",
                                                         "pair.1.b",
                                                         "present.W",
                                                         "chosen.proj.W",
                                                         "chosen.proj.b",
                                                         "chosen.norm.scale_",
                                                         "owned.proj.W",
                                                         "owned.proj.b",
                                                         "owned.norm.scale_"}));
  EXPECT_EQ(program.model().blocks[1].proj.W.name(), "blocks.1.proj.W");
  EXPECT_EQ(program.model().title, "no parameter");
}

TEST(Names, ALoneParameterIsAModel) {
  auto train = compile(Param({2}, init::ones()), {.threads = 1},
                       [](const Param& w, const Inputs&) { return sum(w * w); });
  EXPECT_EQ(names_of(train), std::vector<std::string>{"param"});
  EXPECT_EQ(train.step().loss(), 2);
}

TEST(Names, InfoHasShapesAndFlags) {
  struct Model {
    Linear l1{2, 3};
    Param a = Param({2, 2}, init::ones()).decay(false);
    Param b = Param({2}, init::ones()).decay(true);
    Param c = Param({2}, init::ones()).freeze();
  };
  auto train = compile(Model{}, {.freeze = {"l1.b"}, .threads = 1},
                       [](const Model& m, const Inputs&) { return sum(m.a * m.b) + sum(m.l1.W); });
  struct Expected {
    const char* name;
    Shape shape;
    bool decay, frozen;
  };
  const std::vector<Expected> expected = {{"l1.W", {2, 3}, true, false},
                                          {"l1.b", {3}, false, true},
                                          {"a", {2, 2}, false, false},
                                          {"b", {2}, true, false},
                                          {"c", {2}, false, true}};
  const auto infos = train.parameters();
  ASSERT_EQ(infos.size(), expected.size());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    EXPECT_EQ(infos[i].name, expected[i].name);
    EXPECT_EQ(infos[i].shape, expected[i].shape) << infos[i].name;
    EXPECT_EQ(infos[i].decay, expected[i].decay) << infos[i].name;
    EXPECT_EQ(infos[i].frozen, expected[i].frozen) << infos[i].name;
  }
}

TEST(Names, TheDecayFilterReplacesTheFlags) {
  auto train = compile_mlp({.decay = NameFilter{"l2.*", "l3.b"}});
  for (const ParamInfo& info : train.parameters())
    EXPECT_EQ(info.decay, info.name == "l2.W" || info.name == "l2.b" || info.name == "l3.b")
        << info.name;
}

// A field may have the name of optimizer state.
TEST(Names, FieldsCalledLikeOptimizerState) {
  struct Model {
    Linear m{2, 2}, v{2, 2}, momentum{2, 2}, accumulated{2, 2};
    Param W{{2, 2}, init::ones()}, b{{2}, init::ones()}, updates{{}, init::ones()},
        failed{{}, init::ones()}, step{{}, init::ones()};
  };
  struct Plain {
    Linear q0{2, 2}, q1{2, 2}, q2{2, 2}, q3{2, 2};
    Param W{{2, 2}, init::ones()}, b{{2}, init::ones()}, p0{{}, init::ones()}, p1{{}, init::ones()},
        p2{{}, init::ones()};
  };
  const std::vector<Optimizer> optimizers = {Adam{.lr = 0.1}, Sgd{.lr = 0.1, .momentum = 0.9f}};
  for (const Optimizer& optimizer : optimizers) {
    const TrainingOptions options{.optimizer = optimizer, .accumulate = 2, .threads = 1};
    auto train = compile(Model{}, options, [](const Model& m, const Inputs&) {
      return sum(square(m.accumulated(m.momentum(m.v(m.m(m.W)))) + m.b)) * m.updates * m.failed *
             m.step;
    });
    auto plain = compile(Plain{}, options, [](const Plain& m, const Inputs&) {
      return sum(square(m.q3(m.q2(m.q1(m.q0(m.W)))) + m.b)) * m.p0 * m.p1 * m.p2;
    });
    NamedArrays same = plain.download();
    const auto rename = [&](const std::string& from, const std::string& to) {
      auto node = same.extract(from);
      node.key() = to;
      same.insert(std::move(node));
    };
    for (const char* end : {".W", ".b"}) {
      rename(std::string("q0") + end, std::string("m") + end),
          rename(std::string("q1") + end, std::string("v") + end);
      rename(std::string("q2") + end, std::string("momentum") + end),
          rename(std::string("q3") + end, std::string("accumulated") + end);
    }
    rename("p0", "updates"), rename("p1", "failed"), rename("p2", "step");
    train.upload(same);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(train.step().loss(), plain.step().loss());
    for (const auto& [name, from] : {std::pair{"m.W", "q0.W"},
                                     {"accumulated.b", "q3.b"},
                                     {"updates", "p0"},
                                     {"step", "p2"},
                                     {"W", "W"}})
      EXPECT_EQ(floats_of(train.download().at(name)), floats_of(plain.download().at(from))) << name;
  }
}

// The same for a parameter of the very name, frozen or not.
TEST(Names, ParametersCalledLikeOptimizerState) {
  struct Model {
    Param m{{2}, init::ones()}, v{{2}, init::ones()}, momentum{{2}, init::ones()},
        accumulated{{2}, init::ones()}, w{{2}, init::ones()};
  };
  const std::vector<Optimizer> optimizers = {Adam{.lr = 0.1}, Sgd{.lr = 0.1, .momentum = 0.9f}};
  for (const Optimizer& optimizer : optimizers)
    for (const NameFilter& freeze :
         {NameFilter{}, NameFilter{"m", "v", "momentum", "accumulated"}}) {
      auto train = compile(
          Model{}, {.optimizer = optimizer, .accumulate = 2, .freeze = freeze, .threads = 1},
          [](const Model& m, const Inputs&) {
            return sum(m.m * m.v * m.momentum * m.accumulated * m.w);
          });
      for (int i = 0; i < 2; ++i) EXPECT_EQ(train.step().loss(), 2);
      const NamedArrays now = train.download();
      for (const auto& [name, array] : now) {
        const Floats expected(2, freeze.empty() || name == "w" ? 0.9f : 1.0f);
        for (std::size_t i = 0; i < 2; ++i)
          EXPECT_NEAR(array.floats()[i], expected[i], 1e-6f) << name;
      }
    }
}

TEST(Sharing, ALayerUsedTwiceIsOneParameter) {
  struct Model {
    Linear l{2, 2, false};
  };
  auto train =
      compile(Model{}, {.inputs = {{"x", {1, 2}}}, .optimizer = Sgd{.lr = 1}, .threads = 1},
              [](const Model& m, const Inputs& in) { return sum(m.l(m.l(in["x"]))); });
  EXPECT_EQ(names_of(train), std::vector<std::string>{"l.W"});
  train.upload({{"l.W", Array({2, 2}, Floats{1, 2, 3, 4})}});
  EXPECT_EQ(train.step({{"x", Floats{1, 1}}}).loss(), 54);  // [1 1] W = [4 6]; [4 6] W = [22 32]
  // d sum(x W W) / dW = x^T (1 W^T) + (x W)^T 1 = [[3,7],[3,7]] + [[4,4],[6,6]]
  EXPECT_EQ(floats_of(train.gradients().at("l.W")), (Floats{7, 11, 9, 13}));
}

struct Tied {
  Param embedding{{3, 2}, init::normal(1)};
  Linear between{2, 2};
  Param head = embedding.shared();
};

TEST(Sharing, ATiedWeightIsOneParameterUnderItsFirstName) {
  const Tied model;
  const Tied copy = model;  // tied among itself too
  auto train =
      compile(copy, {.optimizer = Sgd{.lr = 0.5}, .threads = 1}, [](const Tied& m, const Inputs&) {
        return sum(matmul(m.embedding, swap_axes(m.head, 0, 1)));
      });
  EXPECT_EQ(names_of(train), (std::vector<std::string>{"embedding", "between.W", "between.b"}));
  EXPECT_EQ(train.model().head.name(), "embedding");
  const Floats w = {1, 2, 3, 4, 5, 6};
  train.upload({{"embedding", Array({3, 2}, w)}}, Upload::partial);
  EXPECT_EQ(train.step().loss(), 9 * 9 + 12 * 12);  // |sum of rows|^2
  EXPECT_EQ(floats_of(train.gradients().at("embedding")), (Floats{18, 24, 18, 24, 18, 24}));
  EXPECT_EQ(floats_of(train.download().at("embedding")), (Floats{-8, -10, -6, -8, -4, -6}));
  EXPECT_EQ(train.download().count("head"), 0u);
  EXPECT_EQ(train.counts().param_bytes, 4 * (6 + 4 + 2));
}

TEST(Sharing, WithoutATieFieldsAreTheirOwn) {
  struct Apart {
    Param a{{2}, init::normal(1)}, b = a;  // a copy
  };
  auto train = compile(Apart{}, {.threads = 1},
                       [](const Apart& m, const Inputs&) { return sum(m.a * m.b); });
  EXPECT_EQ(names_of(train), (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(floats_of(train.download().at("a")), floats_of(train.download().at("b")));
}

}  // namespace
}  // namespace tensorgrad::compile_tests
