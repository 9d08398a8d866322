// Shared code of the tests that use the table: one GoogleTest case per row, named after it.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "checks/sample_graph.h"
#include "checks/samples.h"

namespace tensorgrad::checks {

struct Row {
  const Sample* sample;
  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.sample->name(); }
};

class SampleTest : public testing::TestWithParam<Row> {
 protected:
  const Sample& sample() const { return *GetParam().sample; }
};

inline std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const Sample& sample : samples()) rows.push_back({&sample});
  return rows;
}

inline std::vector<Row> rows_with_gradient() {
  std::vector<Row> rows;
  for (const Sample& sample : samples())
    if (has_gradient(sample)) rows.push_back({&sample});
  return rows;
}

inline std::string row_name(const testing::TestParamInfo<Row>& info) {
  return info.param.sample->name();
}

}  // namespace tensorgrad::checks
