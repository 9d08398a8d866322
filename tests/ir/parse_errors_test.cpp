// The text of every error of the parser.
#include <gtest/gtest.h>

#include "tests/ir/local_ops.h"

namespace tensorgrad::ir {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse(text, local::find_op);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

struct Case {
  const char* lines;  // after two nodes: %0 is f32[2,3], %1 is the parameter "w", f32[3,4]
  const char* error;  // after "graph text, line "
};

TEST(ParseErrors, InsideAGraph) {
  const std::string head =
      "graph {\n"
      "%0 = input {name=\"x\", dtype=f32, shape=[2,3]}\n"
      "%1 = parameter {name=\"w\", dtype=f32, shape=[3,4]}\n";
  const Case cases[] = {
      // statements
      {"result",
       "4: result is not a kind of result (output, capture, gradient, update, flat_gradient, "
       "flat_update)"},
      {"!", "4: expected a node, a result or '}', found \"!\""},
      {"graph {",
       "4: graph is not a kind of result (output, capture, gradient, update, flat_gradient, "
       "flat_update)"},
      {"output x = %0", "4: expected '\"', found \"x = %0\""},
      {"output \"x\" %0", "4: expected '=', found \"%0\""},
      {"output \"x\" = 0", "4: expected '%', found \"0\""},
      {"output \"x\" = %0 %0", "4: expected the end of the line, found \"%0\""},
      {"output \"x\" = %2", "4: %2 is not defined above"},
      {"output \"x\" = %0\noutput \"x\" = %1",
       "5: output \"x\": two results have this kind and name"},
      {"update \"x\" = %0", "4: update \"x\": no parameter and no state has that name"},
      {"update \"w\" = %0", "4: update \"w\": %0 is f32[2,3], and the updated %1 is f32[3,4]"},
      {"%2 = state {name=\"w\", dtype=f32, shape=[3,4]}\nupdate \"w\" = %1",
       "5: update \"w\": both a parameter and a state have that name"},
      {"update \"w\" = %1\nupdate \"w\" = %1",
       "5: update \"w\": two results have this kind and name"},
      // ids and operands
      {"%3 = neg(%0)", "4: %3 is out of order: the next node is %2"},
      {"%0 = neg(%0)", "4: %0 is out of order: the next node is %2"},
      {"%99999999999 = neg(%0)", "4: the number 99999999999 is out of range"},
      {"%x = neg(%0)", "4: expected a whole number, found \"x = neg(%0)\""},
      {"%2 neg(%0)", "4: expected '=', found \"neg(%0)\""},
      {"%2 = (%0)", "4: expected an op, found \"(%0)\""},
      {"%2 = ", "4: expected an op, found the end of the line"},
      {"%2 = nag(%0)", "4: no such op: nag"},
      {"%2 = neg(%2)", "4: %2 is not defined above"},
      {"%2 = neg(%-1)", "4: %-1 is not defined above"},
      {"%2 = neg()", "4: expected '%', found \")\""},
      {"%2 = neg(%0", "4: expected ')', found the end of the line"},
      {"%2 = neg(%0, %0)", "4: neg takes 1 operand, not 2"},
      {"%2 = add(%0)", "4: add takes 2 operands, not 1"},
      {"%2 = sum_all", "4: sum_all takes at least one operand"},
      {"%2 = neg(%0) neg(%0)", "4: expected the end of the line, found \"neg(%0)\""},
      // rules and types
      {"%2 = matmul(%1, %0)",
       "4: matmul: inner sizes differ: f32[3,4] and f32[2,3]\n  hint: swap_axes?"},
      {"%2 = reduce_sum(%0) {axes=[2]}", "4: reduce_sum: axis 2 does not exist: x is f32[2,3]"},
      {"%2 = pad(%0) {axis=1, before=-9, after=0, value=0}",
       "4: pad: a size is negative: f32[2,-6]"},
      {"%2 = drop_axis(%0) {axis=5}",
       "4: drop_axis: shape: axis 5 does not exist: the shape is [2,3]\n  at local_ops.h:73"},
      {"%2 = neg(%0) : f32[3,2]", "4: the type is f32[3,2], and by neg's rule f32[2,3]"},
      {"%2 = neg(%0) : i32[2,3]", "4: the type is i32[2,3], and by neg's rule f32[2,3]"},
      {"%2 = neg(%0) : f64[2,3]", "4: expected f32, i32 or bool, found \"f64[2,3]\""},
      {"%2 = neg(%0) : f32", "4: expected '[', found the end of the line"},
      {"%2 = input {name=\"x\", dtype=f32, shape=[]}", "4: input \"x\" occurs twice: %0 and %2"},
      // attributes
      {"%2 = reduce_sum(%0)", "4: reduce_sum needs the attribute axes"},
      {"%2 = narrow(%0) {axis=0, length=1}", "4: narrow needs the attribute start"},
      {"%2 = reduce_sum(%0) {axis=0}", "4: reduce_sum has no attribute axis"},
      {"%2 = neg(%0) {axis=0}", "4: neg has no attribute axis"},
      {"%2 = reduce_sum(%0) {axes=[0], axes=[0]}", "4: the attribute axes occurs twice"},
      {"%2 = reduce_sum(%0) {axes [0]}", "4: expected '=', found \"[0]}\""},
      {"%2 = reduce_sum(%0) {}", "4: expected an attribute, found \"}\""},
      {"%2 = reduce_sum(%0) {axes=[0]", "4: expected '}', found the end of the line"},
      {"%2 = reduce_sum(%0) {axes=[0", "4: expected ']', found the end of the line"},
      {"%2 = reduce_sum(%0) {axes=[0,]}", "4: expected a whole number, found \"]}\""},
      {"%2 = reduce_sum(%0) {axes=[2147483648]}", "4: the number 2147483648 is out of range"},
      {"%2 = narrow(%0) {axis=0, start=99999999999999999999, length=1}",
       "4: the number 99999999999999999999 is out of range"},
      {"%2 = narrow(%0) {axis=0, start=-1099511627777, length=1}",
       "4: the number -1099511627777 is out of range"},
      {"%2 = narrow(%0) {axis=0, start=1.5, length=1}", "4: expected '}', found \".5, length=1}\""},
      {"%2 = probe_h {axis=0, reverse=yes}", "4: expected true or false, found \"yes}\""},
      {"%2 = constant {value=x, dtype=f32}", "4: expected a number, found \"x, dtype=f32}\""},
      {"%2 = constant {value=1e999, dtype=f32}",
       "4: the number 1e999 is malformed or out of range"},
      {"%2 = constant {value=1.2.3, dtype=f32}",
       "4: the number 1.2.3 is malformed or out of range"},
      {"%2 = constant {value=0x10, dtype=f32}", "4: expected '}', found \"x10, dtype=f32}\""},
      {"%2 = constant {value=nan(7ff0000000000000), dtype=f32}",
       "4: 7ff0000000000000 are not the bits of a NaN"},
      {"%2 = constant {value=nan(17ff8000000000000), dtype=f32}",
       "4: 17ff8000000000000 are not the bits of a NaN"},
      {"%2 = constant {value=1, dtype=half}", "4: expected f32, i32 or bool, found \"half}\""},
      // names
      {"%2 = input {name=\"y, dtype=f32, shape=[]}", "4: the closing quote is missing"},
      {"%2 = input {name=y, dtype=f32, shape=[]}",
       "4: expected '\"', found \"y, dtype=f32, shape=\""},
      {"%2 = input {name=\"\\q\", dtype=f32, shape=[]}", "4: no such escape in a quoted name: \\q"},
      {"%2 = input {name=\"\\x4", "4: \\x in a quoted name needs two hexadecimal digits"},
      {"%2 = input {name=\"\\x4g\"", "4: \\x in a quoted name needs two hexadecimal digits"},
      // shapes
      {"%2 = input {name=\"y\", dtype=f32, shape=[-1]}", "4: a size is negative: -1"},
      {"%2 = input {name=\"y\", dtype=f32, shape=[1,1,1,1,1,1,1,1,1]}",
       "4: a shape has at most 8 dimensions"},
      {"%2 = input {name=\"y\", dtype=f32, shape=[1048576,1048577]}",
       "4: the shape [1048576,1048577] is too large"},
      {"%2 = input {name=\"y\", dtype=f32, shape=[1099511627776,0,2]}",
       "4: the shape [1099511627776,0,2] is too large"},
      {"%2 = input {name=\"y\", dtype=f32, shape=[1048576,1048576]}\n%3 = outer(%2, %0)",
       "5: outer: f32[1048576,1048576,2,3] is too large"},
      // ranges of the flat parameters
      {"range \"w\" = [0,4]", "4: ranges stand before the nodes"},
      // call sites
      {"%2 = neg(%0) @", "4: expected a name, found the end of the line"},
      {"%2 = neg(%0) @ a.cpp", "4: expected ':', found the end of the line"},
      {"%2 = neg(%0) @ a.cpp:x", "4: expected a whole number, found \"x\""},
      {"%2 = neg(%0) @ a.cpp:1 in", "4: expected a name, found the end of the line"},
      {"%2 = neg(%0) @ a.cpp:1 via mean in l1", "4: expected the end of the line, found \"in l1\""},
  };
  for (const Case& c : cases)
    EXPECT_EQ(error_of(head + c.lines + "\n}\n"), std::string("graph text, line ") + c.error);
}

TEST(ParseErrors, AroundAGraph) {
  EXPECT_EQ(error_of(""), "graph text, line 0: there is no graph");
  EXPECT_EQ(error_of("\n# nothing\n"), "graph text, line 2: there is no graph");
  EXPECT_EQ(error_of("graf {\n}"), "graph text, line 1: expected \"graph {\", found \"graf {\"");
  EXPECT_EQ(error_of("graph\n{\n}"), "graph text, line 1: expected '{', found the end of the line");
  EXPECT_EQ(error_of("graph {\n"), "graph text, line 1: the closing '}' is missing");
  EXPECT_EQ(error_of("graph { }"), "graph text, line 1: expected the end of the line, found \"}\"");
  EXPECT_EQ(error_of("graph {\n} x"),
            "graph text, line 2: expected the end of the line, found \"x\"");
  EXPECT_EQ(error_of("graph {\n}\n\nx"),
            "graph text, line 4: expected nothing after the graph's '}', found \"x\"");
}

}  // namespace
}  // namespace tensorgrad::ir
