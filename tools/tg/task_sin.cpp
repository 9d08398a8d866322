// sin: a multilayer perceptron fits one period of the sine.
#include <cmath>
#include <numbers>

#include "draw.h"
#include "task.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::tool {

namespace {

constexpr std::int64_t kTestPoints = 1000;
constexpr float kTolerance = 0.05f;

struct Mlp {
  Linear l1{1, 64}, l2{64, 64}, l3{64, 1};
};

Tensor predict(const Mlp& m, const Tensor& x) { return m.l3(relu(m.l2(relu(m.l1(x))))); }

// Maps 0 .. 1 to -pi .. pi.
float angle(double unit) { return static_cast<float>((2 * unit - 1) * std::numbers::pi); }

float sine(float x) { return static_cast<float>(std::sin(static_cast<double>(x))); }

class SinTask : public Task {
 public:
  explicit SinTask(const TaskOptions& options)
      : options_(options),
        train_(compile(
            Mlp{},
            {.inputs = {{"x", {options.batch, 1}}, {"y", {options.batch, 1}}},
             .optimizer = Adam{.lr = options.lr},
             .seed = options.seed,
             .device = options.where.device,
             .threads = options.where.threads,
             .without = options.where.without,
             .progress = options.where.progress},
            [](const Mlp& m, const Inputs& in) { return mse_loss(predict(m, in["x"]), in["y"]); })),
        test_(
            train_.attach({.inputs = {{"x", {kTestPoints, 1}}}, .progress = options.where.progress},
                          [](const Mlp& m, const Inputs& in) { return predict(m, in["x"]); })) {
    // Midpoints of equal intervals of the period; training draws random points.
    for (std::int64_t i = 0; i < kTestPoints; ++i)
      test_x_.push_back(angle((static_cast<double>(i) + 0.5) / kTestPoints));
  }

  TrainingHandle& training() override { return train_; }

  Result step() override {
    const std::int64_t now = train_.steps();
    std::vector<float> x, y;
    for (std::int64_t i = 0; i < options_.batch; ++i) {
      x.push_back(angle(unit_float(draw(options_.seed, DrawFor::batch, now, i))));
      y.push_back(sine(x.back()));
    }
    return train_.step({{"x", x}, {"y", y}});
  }

  double accuracy(Extent) override {
    const Result run = test_.run({{"x", test_x_}});
    const auto y = run.output().floats();
    int right = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      right += std::abs(y[i] - sine(test_x_[i])) < kTolerance;
    return static_cast<double>(right) / static_cast<double>(y.size());
  }

  std::string right() const override {
    return fmt::format("of {} points within {} of the sine", grouped(kTestPoints), kTolerance);
  }

  std::vector<std::string> samples() override {
    const Result run = test_.run({{"x", test_x_}});
    const auto y = run.output().floats();
    std::vector<std::string> lines;
    for (std::size_t i = y.size() / 10; i < y.size(); i += y.size() / 5)
      lines.push_back(fmt::format("sin({:5.2f}) = {:7.4f}   the model says {:7.4f}", test_x_[i],
                                  sine(test_x_[i]), y[i]));
    return lines;
  }

 private:
  TaskOptions options_;
  Training<Mlp> train_;
  Forward<Mlp> test_;
  std::vector<float> test_x_;
};

}  // namespace

std::unique_ptr<Task> make_sin(const TaskOptions& options) {
  return std::make_unique<SinTask>(options);
}

}  // namespace tensorgrad::tool
