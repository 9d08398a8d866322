// Pass `attention`: which forms of written-out attention are recognised, and which are not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "ops/builder.h"
#include "ops/table.h"
#include "passes/dce.h"
#include "passes/recognise.h"
#include "passes/views.h"
#include "reference/interpret.h"
#include "tensorgrad/ops.h"

namespace tensorgrad {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Leaves {
  Tensor q, k, v;
  Tensor more;  // an input like the scores
};
using Form = std::function<Tensor(const Leaves&)>;

struct Sizes {
  Shape batch{2, 3};
  std::int64_t T = 4, S = 4, D = 8, V = 6;

  Shape with(std::int64_t rows, std::int64_t columns) const {
    Shape shape = batch;
    shape.push_back(rows), shape.push_back(columns);
    return shape;
  }
};

ir::Graph traced(const Form& form, const Sizes& sizes) {
  ops::Builder builder;
  ops::BuildScope scope(builder);
  const auto leaf = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return builder.leaf(ir::Core::input, name, {DType::f32, sizes.with(rows, columns)});
  };
  const Tensor q = leaf("q", sizes.T, sizes.D), k = leaf("k", sizes.S, sizes.D),
               v = leaf("v", sizes.S, sizes.V);
  const Tensor more = leaf("more", sizes.T, sizes.S);
  const Tensor out = form({q, k, v, more});
  builder.graph.results.push_back({ir::Result::Kind::output, "out", TensorAccess::node(out)});
  return std::move(builder.graph);
}

// The graph without source lines of this file.
std::string text(const ir::Graph& graph) {
  ir::Graph out = passes::dce(passes::views(graph));
  for (ir::Node& node : out.nodes) node.site = 0;
  return ir::print(out);
}

std::vector<double> numbers(const ir::Graph& graph) {
  reference::Leaves leaves;
  int next = 0;
  for (const ir::Node& node : graph.nodes) {
    if (!ir::is_leaf(node)) continue;
    reference::Value value{node.type, {}};
    for (std::int64_t i = 0; i < node.type.shape.count(); ++i)
      value.data.push_back(std::sin(1.7 * ++next));
    leaves["input:" + node.as<ir::LeafAttrs>().name] = value;
  }
  return reference::interpret(graph, leaves)[static_cast<std::size_t>(graph.results[0].node)].data;
}

// The form becomes attention with these options, and gives the same values.
void expect_recognised(const char* what, const Form& form, bool causal, float scale,
                       const Sizes& sizes = {}) {
  SCOPED_TRACE(what);
  const ir::Graph before = traced(form, sizes), after = passes::recognise_attention(before);
  ir::verify(after);
  const ir::Graph wanted = traced(
      [&](const Leaves& in) {
        const auto four = [&](const Tensor& t) {
          Shape shape = t.shape();
          while (shape.rank() < 4) shape.insert(shape.rank() - 2, 1);
          return reshape(t, shape);
        };
        const Tensor q = four(in.q), k = four(in.k), v = four(in.v);
        const Tensor out = attention(q, k, v, {.causal = causal, .scale = scale});
        return reshape(out, sizes.with(sizes.T, sizes.V));
      },
      sizes);
  EXPECT_EQ(text(after), text(wanted));
  const auto want = numbers(before), got = numbers(after);
  ASSERT_EQ(want.size(), got.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9);
}

// The form is unchanged.
void expect_left_alone(const char* what, const Form& form, const Sizes& sizes = {}) {
  SCOPED_TRACE(what);
  const ir::Graph before = traced(form, sizes);
  EXPECT_EQ(ir::print(passes::recognise_attention(before)), ir::print(before));
}

Tensor turned(const Tensor& k) { return swap_axes(k, -1, -2); }
Tensor product(const Leaves& in) { return matmul(in.q, turned(in.k)); }
Tensor rows(std::int64_t T) { return unsqueeze(arange(T), 1); }
Tensor columns(std::int64_t S) { return unsqueeze(arange(S), 0); }
// true where a query sees a key
Tensor causal(std::int64_t T, std::int64_t S) { return columns(S) <= rows(T) + (S - T); }
Tensor causal(const Tensor& scores) { return causal(scores.size(-2), scores.size(-1)); }

TEST(RecogniseAttention, TextInTextOut) {
  const std::string before = R"(graph {
  %0 = input {name="q", dtype=f32, shape=[2,3,8]}
  %1 = input {name="k", dtype=f32, shape=[2,5,8]}
  %2 = input {name="v", dtype=f32, shape=[2,5,4]}
  %3 = permute(%1) {order=[0,2,1]}
  %4 = matmul(%0, %3)
  %5 = constant {value=0.5, dtype=f32}
  %6 = broadcast_to(%5) {shape=[2,3,5]}
  %7 = mul(%4, %6)
  %8 = softmax(%7) {axis=2}
  %9 = matmul(%8, %2)
  output "y" = %9
}
)";
  const std::string after = R"(graph {
  %0 = input {name="q", dtype=f32, shape=[2,3,8]}
  %1 = input {name="k", dtype=f32, shape=[2,5,8]}
  %2 = input {name="v", dtype=f32, shape=[2,5,4]}
  %3 = reshape(%0) {shape=[2,1,3,8]}
  %4 = reshape(%1) {shape=[2,1,5,8]}
  %5 = reshape(%2) {shape=[2,1,5,4]}
  %6 = attention(%3, %4, %5) {causal=false, scale=0.5}
  %7 = narrow(%6) {axis=0, start=0, length=24}
  %8 = reshape(%7) {shape=[2,3,1,4]}
  %9 = permute(%8) {order=[0,2,1,3]}
  %10 = reshape(%9) {shape=[2,3,4]}
  output "y" = %10
}
)";
  const auto parse = [](const std::string& text) { return ir::parse(text, ops::find_primitive); };
  EXPECT_EQ(ir::print(passes::recognise_attention(parse(before))), ir::print(parse(after)));
}

// Unused nodes may read nodes that only the written-out form needed.
TEST(RecogniseAttention, DeadReadersOfLeftovers) {
  expect_recognised(
      "of the turned keys",
      [](const Leaves& in) {
        const Tensor kt = turned(in.k);
        exp(kt);
        return matmul(softmax(matmul(in.q, kt)), in.v);
      },
      false, 1);
  expect_recognised(
      "of the mask",
      [](const Leaves& in) {
        const Tensor scores = product(in), mask = causal(scores);
        cast(mask, f32);
        return matmul(softmax(where(mask, scores, -std::numeric_limits<float>::infinity())), in.v);
      },
      true, 1);
  expect_recognised(
      "of the scaled queries",
      [](const Leaves& in) {
        const Tensor q = in.q * 0.5f;
        sum(q);
        return matmul(softmax(matmul(q, turned(in.k))), in.v);
      },
      false, 0.5f);
}

TEST(RecogniseAttention, ScalesOnEitherSideOfTheProduct) {
  const Form forms[] = {
      [](const Leaves& in) { return matmul(softmax(product(in) * 0.5f, -1), in.v); },
      [](const Leaves& in) { return matmul(softmax(0.5f * product(in), -1), in.v); },
      [](const Leaves& in) { return matmul(softmax(product(in) / 2.0f, -1), in.v); },
      [](const Leaves& in) { return matmul(softmax(product(in) * 2.0f / 4.0f, -1), in.v); },
      [](const Leaves& in) { return matmul(softmax(matmul(in.q * 0.5f, turned(in.k)), -1), in.v); },
      [](const Leaves& in) { return matmul(softmax(matmul(in.q, turned(in.k / 2.0f)), -1), in.v); },
      [](const Leaves& in) { return matmul(softmax(matmul(in.q, turned(in.k) * 0.5f), -1), in.v); },
      [](const Leaves& in) {
        return matmul(softmax(matmul(in.q * 0.25f, turned(4.0f * in.k)) / 2.0f, -1), in.v);
      },
  };
  for (const Form& form : forms) expect_recognised("scaled", form, false, 0.5f);
  expect_recognised(
      "not scaled", [](const Leaves& in) { return matmul(softmax(product(in), -1), in.v); }, false,
      1);
}

TEST(RecogniseAttention, AnyNumberOfBatchAxesUpToTwo) {
  const Form form = [](const Leaves& in) {
    return matmul(softmax_causal(product(in) * 0.5f), in.v);
  };
  for (const Shape& batch : {Shape{}, Shape{3}, Shape{2, 3}, Shape{1, 1}})
    expect_recognised(batch.text().c_str(), form, true, 0.5f, {.batch = batch});
  expect_left_alone("three", form, {.batch = {2, 1, 3}});
}

TEST(RecogniseAttention, KeysThatAreStoredTurned) {
  const ir::Graph graph = traced(
      [](const Leaves& in) {
        const Tensor stored = reshape(in.k, {2, 3, 8, 4});  // [B, H, D, S]
        return matmul(softmax(matmul(in.q, stored), -1), in.v);
      },
      {});
  const ir::Graph after = passes::recognise_attention(graph);
  EXPECT_NE(ir::print(after).find("attention("), std::string::npos);
  const auto want = numbers(graph), got = numbers(after);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9);
}

TEST(RecogniseAttention, CausalMasks) {
  const auto masked = [](auto mask) {
    return [=](const Leaves& in) { return matmul(softmax(mask(product(in) * 0.5f), -1), in.v); };
  };
  const std::pair<const char*, Form> forms[] = {
      {"softmax_causal",
       [](const Leaves& in) { return matmul(softmax_causal(product(in) * 0.5f), in.v); }},
      {"-inf", masked([](const Tensor& s) { return where(causal(s), s, -kInfinity); })},
      {"a large number", masked([](const Tensor& s) { return where(causal(s), s, -1e9f); })},
      {"what is hidden",
       masked([](const Tensor& s) { return where(columns(4) > rows(4), -kInfinity, s); })},
      {"the other order",
       masked([](const Tensor& s) { return where(rows(4) >= columns(4), s, -1e30f); })},
      {"tril", masked([](const Tensor& s) {
         return where(tril(ones({4, 4})) > 0.0f, s, -kInfinity);
       })},
      {"with axes", masked([](const Tensor& s) {
         return where(reshape(causal(s), {1, 1, 4, 4}), s, -kInfinity);
       })},
      {"of the batch's size", masked([](const Tensor& s) {
         return where(logical_not(broadcast_to(columns(4) > rows(4), {2, 3, 4, 4})), s, -kInfinity);
       })},
      {"added", masked([](const Tensor& s) { return s + where(causal(s), 0.0f, -kInfinity); })},
      {"added on the left",
       masked([](const Tensor& s) { return where(causal(s), 0.0f, -1e9f) + s; })},
      {"subtracted",
       masked([](const Tensor& s) { return s - cast(columns(4) > rows(4), f32) * 1e9f; })},
      {"twice", masked([](const Tensor& s) {
         return where(causal(s), s, -kInfinity) + where(causal(s), 0.0f, -1e9f);
       })},
      {"before the scale",
       [](const Leaves& in) {
         return matmul(softmax(where(causal(4, 4), product(in), -kInfinity) / 2.0f, -1), in.v);
       }},
  };
  for (const auto& [what, form] : forms) expect_recognised(what, form, true, 0.5f);
}

TEST(RecogniseAttention, MoreKeysThanQueries) {
  const Form form = [](const Leaves& in) {
    return matmul(softmax(where(causal(3, 7), product(in), -kInfinity), -1), in.v);
  };
  expect_recognised("causal", form, true, 1, {.T = 3, .S = 7});
  const Form first = [](const Leaves& in) {
    return matmul(softmax(where(columns(7) <= rows(3), product(in), -kInfinity), -1), in.v);
  };
  expect_left_alone("counted from the first key", first, {.T = 3, .S = 7});
  const Form fewer = [](const Leaves& in) {
    return matmul(softmax(where(columns(3) <= rows(7), product(in), -kInfinity), -1), in.v);
  };
  expect_left_alone("fewer keys than queries", fewer, {.T = 7, .S = 3});
}

TEST(RecogniseAttention, AMaskThatHidesNothing) {
  expect_recognised(
      "where",
      [](const Leaves& in) {
        return matmul(softmax(where(columns(4) >= 0, product(in), -kInfinity), -1), in.v);
      },
      false, 1);
  expect_recognised(
      "added", [](const Leaves& in) { return matmul(softmax(product(in) + zeros({4}), -1), in.v); },
      false, 1);
}

TEST(RecogniseAttention, HeadsOfAGroupShareKeysAndValues) {
  // [2, 1, 4, D] seen as [2, 3, 4, D]
  const auto repeated = [](const Tensor& t) {
    const Tensor group = narrow(t, 1, 0, 1);
    return reshape(broadcast_to(unsqueeze(group, 2), {2, 1, 3, 4, t.size(-1)}),
                   {2, 3, 4, t.size(-1)});
  };
  const ir::Graph before = traced(
      [&](const Leaves& in) {
        return matmul(softmax_causal(matmul(in.q, turned(repeated(in.k))) * 0.5f), repeated(in.v));
      },
      {});
  const ir::Graph wanted = traced(
      [](const Leaves& in) {
        return attention(in.q, narrow(in.k, 1, 0, 1), narrow(in.v, 1, 0, 1),
                         {.causal = true, .scale = 0.5f});
      },
      {});
  const ir::Graph after = passes::recognise_attention(before);
  EXPECT_EQ(text(after), text(wanted));
  const auto want = numbers(before), got = numbers(after);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9);
}

TEST(RecogniseAttention, LeavesAloneWhatOthersRead) {
  expect_left_alone("weights that are a result", [](const Leaves& in) {
    const Tensor weights = capture("weights", softmax(product(in), -1));
    return matmul(weights, in.v);
  });
  expect_left_alone("scores that are a result", [](const Leaves& in) {
    return matmul(softmax(capture("scores", product(in)) * 0.5f, -1), in.v);
  });
  expect_left_alone("weights that are read twice", [](const Leaves& in) {
    const Tensor weights = softmax(product(in), -1);
    return matmul(weights, in.v) + sum(weights);
  });
  expect_left_alone("scores that are read twice", [](const Leaves& in) {
    const Tensor scores = product(in);
    return matmul(softmax(scores * 0.5f, -1), in.v) + max(scores);
  });
  expect_left_alone("masked scores that are read twice", [](const Leaves& in) {
    const Tensor scores = where(causal(4, 4), product(in), -kInfinity);
    return matmul(softmax(scores, -1), in.v) + max(scores);
  });
}

TEST(RecogniseAttention, LeavesAloneOtherFormulas) {
  expect_left_alone("over the queries",
                    [](const Leaves& in) { return matmul(softmax(product(in), -2), in.v); });
  expect_left_alone("dropout", [](const Leaves& in) {
    return matmul(dropout(softmax(product(in), -1), 0.1f), in.v);
  });
  expect_left_alone("no product",
                    [](const Leaves& in) { return matmul(softmax(in.more * 0.5f, -1), in.v); });
  expect_left_alone(
      "a bias", [](const Leaves& in) { return matmul(softmax(product(in) + in.more, -1), in.v); });
  expect_left_alone("a scale that is an input", [](const Leaves& in) {
    return matmul(softmax(product(in) * max(in.more), -1), in.v);
  });
  expect_left_alone("a negative scale", [](const Leaves& in) {
    return matmul(softmax(product(in) * -0.5f, -1), in.v);
  });
  expect_left_alone("one over the scores",
                    [](const Leaves& in) { return matmul(softmax(0.5f / product(in), -1), in.v); });
  expect_left_alone("a gradient that stops", [](const Leaves& in) {
    return matmul(softmax(stop_gradient(product(in)), -1), in.v);
  });
}

TEST(RecogniseAttention, LeavesAloneOtherMasks) {
  const auto masked = [](auto mask) {
    return [=](const Leaves& in) { return matmul(softmax(mask(product(in), in), -1), in.v); };
  };
  const std::pair<const char*, Form> forms[] = {
      {"of an input", masked([](const Tensor& s, const Leaves& in) {
         return where(in.more > 0.0f, s, -kInfinity);
       })},
      {"of an input and positions", masked([](const Tensor& s, const Leaves& in) {
         return where(logical_and(in.more > 0.0f, causal(s)), s, -kInfinity);
       })},
      {"a window", masked([](const Tensor& s, const Leaves&) {
         return where(logical_and(causal(s), columns(4) > rows(4) - 2), s, -kInfinity);
       })},
      {"without the diagonal", masked([](const Tensor& s, const Leaves&) {
         return where(columns(4) < rows(4), s, -1e9f);
       })},
      {"the future alone",
       masked([](const Tensor& s, const Leaves&) { return where(causal(s), -kInfinity, s); })},
      {"one number short", masked([](const Tensor& s, const Leaves&) {
         return where(logical_and(causal(s), not_equal(columns(4) + rows(4), 6)), s, -kInfinity);
       })},
      {"another for each of the batch", masked([](const Tensor& s, const Leaves&) {
         return where(columns(4) <= rows(4) + reshape(arange(2), {2, 1, 1, 1}), s, -kInfinity);
       })},
      {"a number that counts",
       masked([](const Tensor& s, const Leaves&) { return where(causal(s), s, -100.0f); })},
      {"too small after the scale",
       masked([](const Tensor& s, const Leaves&) { return where(causal(s), s, -1e9f) / 8.0f; })},
      {"a slope",
       masked([](const Tensor& s, const Leaves&) { return s - cast(rows(4) - columns(4), f32); })},
      {"zero times infinity", masked([](const Tensor& s, const Leaves&) {
         return s + cast(columns(4) > rows(4), f32) * -kInfinity;
       })},
  };
  for (const auto& [what, form] : forms) expect_left_alone(what, form);
}

// The interpreter would need too long for a mask of this size.
TEST(RecogniseAttention, LeavesAloneMasksThatAreTooLarge) {
  expect_left_alone("large",
                    [](const Leaves& in) { return matmul(softmax_causal(product(in)), in.v); },
                    {.batch = {}, .T = 5000, .S = 5000});
  expect_recognised("causal=false",
                    [](const Leaves& in) { return matmul(softmax(product(in), -1), in.v); }, false,
                    1, {.batch = {}, .T = 5, .S = 500});
}

}  // namespace
}  // namespace tensorgrad
