// The comparison of the GPU tests and the self-test: what it rejects, and its messages.
#include "checks/check_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "checks/sample_graph.h"
#include "runtime/blocking.h"
#include "runtime/device.h"

namespace tensorgrad::checks {
namespace {

const Sample& row_called(const std::string& name) {
  for (const Sample& row : samples())
    if (row.name() == name) return row;
  throw std::runtime_error("there is no row " + name);
}

// A row's results from the interpreter, for tests to change.
struct Results {
  SampleGraph made;
  std::vector<reference::Value> want, got;

  explicit Results(const Sample& row) : made(build(row)) {
    got = want = eval::interpret_results(made.gradient, made.leaves);
  }
  RowOutcome compare(const Demands& demands = {}) const {
    return compare_results(made.gradient, got, want, 1e-6, demands);
  }
};

// A device that reports a bad id where there is none, as if it read memory before it was written.
class Suspicious : public runtime::Device {
 public:
  std::string name() const override { return "suspicious"; }
  int threads() const override { return device_->threads(); }
  std::int64_t largest_buffer() const override { return device_->largest_buffer(); }
  Completion<std::shared_ptr<runtime::Buffer>> allocate(std::int64_t elements,
                                                        std::string_view what) override {
    const auto buffer = device_->allocate(elements, what);
    if (what == "bad ids") faults_ = buffer.get().get();
    return buffer;
  }
  void clear(runtime::Buffer& buffer) override { device_->clear(buffer); }
  void upload(runtime::Buffer& buffer, std::int64_t offset,
              std::span<const std::byte> bytes) override {
    device_->upload(buffer, offset, bytes);
  }
  Completion<Done> read(const runtime::Buffer& buffer, std::int64_t offset, std::span<std::byte> to,
                        std::shared_ptr<const void> owner) override {
    const auto done = device_->read(buffer, offset, to, std::move(owner));
    const auto words = runtime::fault_words({.tag = 0, .node = 3, .value = 1234567});
    if (&buffer == faults_) std::memcpy(to.data(), words.data(), sizeof words);
    return done;
  }
  const ir::DeviceModel& model() const override { return device_->model(); }
  Completion<std::shared_ptr<const runtime::Emitted>> emit(std::vector<ir::Kernel> kernels, int tag,
                                                           CompileCallback) override {
    return device_->emit(std::move(kernels), tag);
  }
  Completion<std::shared_ptr<runtime::Loaded>> load(std::shared_ptr<const runtime::Emitted> emitted,
                                                    CompileCallback, runtime::Combine) override {
    return device_->load(std::move(emitted));
  }
  void submit(const std::shared_ptr<runtime::Loaded>& loaded,
              const runtime::Spaces& spaces) override {
    device_->submit(loaded, spaces);
  }
  bool immediate() const override { return true; }
  bool full() override { return false; }
  Completion<Done> done() override { return Done{}; }
  bool poll(std::chrono::nanoseconds) override { return false; }
  std::chrono::seconds patience() const override { return std::chrono::seconds(1); }
  void profile(bool) override {}
  Completion<std::vector<Time>> take_times(runtime::Loaded&) override {
    return std::vector<Time>{};
  }

 private:
  std::shared_ptr<runtime::Device> device_ = runtime::blocking::open_device("cpu", 1);
  const runtime::Buffer* faults_ = nullptr;
};

TEST(CheckRow, ReportsWhatIsCompiled) {
  std::vector<std::int64_t> done;
  std::int64_t total = 0;
  check_row(*runtime::blocking::open_device("cpu", 1), row_called("softmax_middle_axis"),
            [&](const CompileProgress& progress) {
              done.push_back(progress.done), total = progress.total;
            });
  EXPECT_GT(total, 0);
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i <= total; ++i) expected.push_back(i);
  EXPECT_EQ(done, expected);
}

TEST(CheckRow, AnIdThatIsRefusedIsAFailure) {
  Suspicious device;
  const RowOutcome outcome = check_row(device, row_called("square_of_transposed"));
  EXPECT_FALSE(outcome.passed());
  EXPECT_EQ(outcome.text(), "id 1234567 was refused, and is none of the row's");
}

TEST(CheckRow, EqualResultsPass) {
  const RowOutcome outcome = Results(row_called("square_of_transposed")).compare();
  EXPECT_TRUE(outcome.passed());
  EXPECT_EQ(outcome.text(), "");
  EXPECT_EQ(outcome.worst, 0);
}

TEST(CheckRow, AWrongValueIsNamedWithWhatWasExpected) {
  Results results(row_called("square_of_transposed"));
  results.want[0].data.assign(35, 1);
  results.got[0].data.assign(35, 1);
  results.got[0].data[3] = 1.5;
  results.got[0].data[9] = 7;
  const RowOutcome outcome = results.compare();
  EXPECT_FALSE(outcome.passed());
  EXPECT_EQ(outcome.text(),
            "out: element 3 of f32[7,5]: 1.5 instead of 1 (off by 5.00e-01, allowed 1.00e-06) and "
            "1 more");
  EXPECT_NEAR(outcome.worst, 6e6, 1);
}

TEST(CheckRow, AWrongGradientIsNamedByItsOperand) {
  Results results(row_called("square_of_transposed"));
  ASSERT_EQ(results.got.size(), 2u);
  results.got[1].data[0] += 1;
  EXPECT_EQ(results.compare().text().substr(0, 38), "gradient of x0: element 0 of f32[5,7]:");
}

TEST(CheckRow, TheShareOfWhatIsAllowedIsMeasured) {
  Results results(row_called("square_of_transposed"));
  results.want[0].data.assign(35, 1);
  results.got[0].data.assign(35, 1);
  results.got[0].data[3] = 1 + 4e-6;
  EXPECT_FALSE(results.compare().passed());
  const RowOutcome looser = results.compare({.looser = 8});
  EXPECT_TRUE(looser.passed());
  EXPECT_NEAR(looser.worst, 0.5, 1e-6);
}

TEST(CheckRow, NonFiniteValuesCountOnlyWhereTheyAreDemanded) {
  Results results(row_called("square_of_transposed"));
  results.want[0].data[3] = HUGE_VAL;
  EXPECT_FALSE(results.compare().passed());
  EXPECT_TRUE(results.compare({.non_finite = false}).passed());
  results.want[0].data[3] = results.got[0].data[3];
  results.got[0].data[3] = std::nan("");  // NaN is always wrong if the reference is finite
  EXPECT_FALSE(results.compare({.non_finite = false}).passed());
}

TEST(CheckRow, IntegersMustBeEqual) {
  Results results(row_called("arange_plain"));
  results.got[0].data[2] += 1;
  const RowOutcome outcome = results.compare({.looser = 8});
  EXPECT_EQ(outcome.text(),
            "out: element 2 of i32[7]: 3 instead of 2 (off by 1.00e+00, allowed 0.00e+00)");
  EXPECT_EQ(outcome.worst, HUGE_VAL);
}

TEST(CheckRow, RunsOnTheCpu) {
  const auto device = runtime::blocking::open_own_device("cpu", 1);
  const RowOutcome outcome = check_row(*device, row_called("softmax_middle_axis"));
  EXPECT_EQ(outcome.text(), "");
  EXPECT_GT(outcome.worst, 0);
  EXPECT_LE(outcome.worst, 1);
}

TEST(CheckRow, TurnsBeginWithEveryOpOnce) {
  std::set<std::string> ops, first;
  for (const Sample& row : samples()) ops.insert(row.op);
  const auto rows = rows_by_turns();
  EXPECT_EQ(rows.size(), samples().size());
  EXPECT_EQ(std::set<const Sample*>(rows.begin(), rows.end()).size(), samples().size());
  for (std::size_t i = 0; i < ops.size(); ++i) first.insert(rows[i]->op);
  EXPECT_EQ(first, ops);
}

}  // namespace
}  // namespace tensorgrad::checks
