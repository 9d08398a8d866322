// verify(): each rule broken once, by changing a valid graph without append().
#include <gtest/gtest.h>

#include "tests/ir/local_ops.h"

namespace tensorgrad::ir {
namespace {

using namespace local;

Graph valid_graph() {
  return parse(R"(graph {
    %0 = input {name="x", dtype=f32, shape=[2,3]}
    %1 = parameter {name="w", dtype=f32, shape=[3,4]}
    %2 = matmul(%0, %1)
    %3 = reduce_sum(%2) {axes=[1]}  @ train.cpp:12 in l1
    %4 = input {name="w", dtype=f32, shape=[2]}
    output "y" = %3
    capture "y" = %2
    gradient "w" = %1
    update "w" = %1
  })",
               find_op);
}

struct Case {
  const char* error;
  void (*breaks)(Graph& g);
};

const Case kCases[] = {
    {"the node has no op, or one without a type rule\n  %2 = ?(%0, %1) : f32[2,4]",
     [](Graph& g) { g[2].op = nullptr; }},
    {"matmul takes 2 operands, not 1\n  %2 = matmul(%0) : f32[2,4]",
     [](Graph& g) { g[2].inputs = {0}; }},
    {"matmul reads %3, which does not come before it\n  %2 = matmul(%0, %3) : f32[2,4]",
     [](Graph& g) {
       g[2].inputs = {0, 3};
     }},
    {"matmul reads %2, which does not come before it\n  %2 = matmul(%0, %2) : f32[2,4]",
     [](Graph& g) {
       g[2].inputs = {0, 2};
     }},
    {"matmul reads %-1, which does not come before it\n  %2 = matmul(%0, %-1) : f32[2,4]",
     [](Graph& g) {
       g[2].inputs = {0, -1};
     }},
    {"reduce_sum takes attributes of kind 5, not 6\n"
     "  %3 = reduce_sum(%2) {axis=1} : f32[2]  @ train.cpp:12 in l1",
     [](Graph& g) { g[3].attrs = AxisAttrs{1}; }},
    {"call site 2 does not exist: there are 2\n  %2 = matmul(%0, %1) : f32[2,4]",
     [](Graph& g) { g[2].site = 2; }},
    {"call site -1 does not exist: there are 2\n  %2 = matmul(%0, %1) : f32[2,4]",
     [](Graph& g) { g[2].site = -1; }},
    {"the type is i32[2,4], and by matmul's rule f32[2,4]\n  %2 = matmul(%0, %1) : i32[2,4]",
     [](Graph& g) { g[2].type.dtype = i32; }},
    {"matmul: inner sizes differ: f32[2,3] and f32[2,3]\n  %2 = matmul(%0, %0) : f32[2,4]",
     [](Graph& g) {
       g[2].inputs = {0, 0};
     }},
    {"reduce_sum: axis 2 does not exist: x is f32[2,4]\n"
     "  %3 = reduce_sum(%2) {axes=[2]} : f32[2]  @ train.cpp:12 in l1",
     [](Graph& g) { g[3].attrs = AxesAttrs{{2}}; }},
    {"drop_axis: shape: axis 9 does not exist: the shape is [2,4]\n  at local_ops.h:73\n"
     "  %3 = drop_axis(%2) {axis=9} : f32[2]  @ train.cpp:12 in l1",
     [](Graph& g) { g[3].op = &kDropAxis, g[3].attrs = AxisAttrs{9}; }},
    {"input \"x\" occurs twice: %0 and %4\n"
     "  %4 = input {name=\"x\", dtype=f32, shape=[2]} : f32[2]",
     [](Graph& g) { std::get<LeafAttrs>(g[4].attrs).name = "x"; }},
    {"%5 does not exist\n  output \"y\" = %5", [](Graph& g) { g.results[0].node = 5; }},
    {"%-1 does not exist\n  output \"y\" = %-1", [](Graph& g) { g.results[0].node = -1; }},
    {"two results have this kind and name\n  output \"y\" = %2",
     [](Graph& g) { g.results[1].kind = Result::Kind::output; }},
    {"two results have this kind and name\n  update \"w\" = %1",
     [](Graph& g) { g.results[2].kind = Result::Kind::update; }},
    {"no parameter and no state has that name\n  update \"x\" = %0",
     [](Graph& g) {
       g.results[3] = {Result::Kind::update, "x", 0};
     }},
    {"%0 is f32[2,3], and the updated %1 is f32[3,4]\n  update \"w\" = %0",
     [](Graph& g) { g.results[3].node = 0; }},
    {"both a parameter and a state have that name\n  update \"w\" = %1",
     [](Graph& g) { g[4].op = &kState; }},
};

TEST(Verify, AcceptsAValidGraph) { EXPECT_NO_THROW(verify(valid_graph())); }

TEST(Verify, NamesTheNodeAndTheRule) {
  for (const Case& c : kCases) {
    Graph g = valid_graph();
    c.breaks(g);
    try {
      verify(g);
      ADD_FAILURE() << "no error: " << c.error;
    } catch (const InternalError& error) {
      EXPECT_EQ(std::string(error.what()),
                std::string("internal error: verify: ") + c.error +
                    "\n  this is a bug in tensorgrad; please report it with the program");
    }
  }
}

}  // namespace
}  // namespace tensorgrad::ir
