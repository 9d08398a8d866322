#include "compile/initialise.h"

#include <cmath>
#include <numbers>

#include "support/fail.h"
#include "support/integers.h"
#include "support/threefry.h"

namespace tensorgrad {

namespace init {

Init zeros() { return {}; }
Init ones() { return {.kind = Init::Kind::ones, .values = {}}; }
Init constant(float value) { return {.kind = Init::Kind::constant, .a = value, .values = {}}; }
Init normal(float deviation, float mean) {
  return {.kind = Init::Kind::normal, .a = mean, .b = deviation, .values = {}};
}
Init uniform(float low, float high) {
  return {.kind = Init::Kind::uniform, .a = low, .b = high, .values = {}};
}
Init log_of_uniform(float low, float high) {
  return {.kind = Init::Kind::log_of_uniform, .a = low, .b = high, .values = {}};
}
Init step_size(float low, float high) {
  return {.kind = Init::Kind::step_size, .a = low, .b = high, .values = {}};
}
Init kaiming(float gain) {
  return {.kind = Init::Kind::normal, .b = gain, .scale_by_fan = true, .values = {}};
}
Init kaiming_uniform(float gain) {
  return {.kind = Init::Kind::uniform, .a = -gain, .b = gain, .scale_by_fan = true, .values = {}};
}
Init xavier(float gain) {
  const float bound = gain * std::sqrt(3.0f);
  return {.kind = Init::Kind::uniform,
          .a = -bound,
          .b = bound,
          .scale_by_fan = true,
          .both_fans = true,
          .values = {}};
}
Init function(std::function<float(std::int64_t)> f) {
  if (!f) user_error("init::function: the function is empty");
  return {.kind = Init::Kind::function, .values = {}, .function = std::move(f)};
}
Init literal(std::vector<float> values) {
  return {.kind = Init::Kind::literal, .values = std::move(values)};
}

}  // namespace init

namespace compile_stage {

namespace {

// Fan-in and fan-out of a weight: [in, out] for matrices, [out, in, k...] for convolutions.
double fan_of(const Shape& shape, bool both) {
  double in = 1, out = 1;
  if (shape.rank() == 1) {
    in = out = static_cast<double>(shape[0]);
  } else if (shape.rank() == 2) {
    in = static_cast<double>(shape[0]), out = static_cast<double>(shape[1]);
  } else if (shape.rank() > 2) {
    double window = 1;
    for (int d = 2; d < shape.rank(); ++d) window *= static_cast<double>(shape[d]);
    in = static_cast<double>(shape[1]) * window, out = static_cast<double>(shape[0]) * window;
  }
  return both ? (in + out) / 2 : in;
}

std::uint32_t name_hash(const std::string& name) {  // FNV-1a
  std::uint32_t h = 2166136261u;
  for (const char c : name) h = (h ^ static_cast<std::uint8_t>(c)) * 16777619u;
  return h;
}

}  // namespace

void check_init(const Init& init, const Shape& shape, const std::string& name) {
  const auto count = usize(shape.count());
  if (init.kind == Init::Kind::literal && init.values.size() != count)
    user_error("init: {} is {} and needs {} numbers, the literal has {}", name, shape.text(), count,
               init.values.size());
}

std::vector<float> initial_values(const Init& init, const Shape& shape, const std::string& name,
                                  std::uint32_t seed) {
  const auto count = usize(shape.count());
  const double scale =
      init.scale_by_fan ? 1 / std::sqrt(std::max(1.0, fan_of(shape, init.both_fans))) : 1;
  const double a = init.a * scale, b = init.b * scale;
  // One call draws the numbers of two neighbours.
  const std::uint32_t stream = name_hash(name);
  const auto random = [&](std::size_t pair) {
    constexpr std::uint32_t kStream = 0x696e6974;  // "init"
    return threefry(seed, kStream, stream, static_cast<std::uint32_t>(pair));
  };
  std::vector<float> out(count, 0.0f);
  const auto draw = [&](auto value_of) {  // value_of: takes a number in [0, 1)
    for (std::size_t i = 0; i < count; i += 2) {
      const auto word = random(i / 2);
      out[i] = static_cast<float>(value_of(static_cast<double>(unit_float(word[0]))));
      if (i + 1 < count)
        out[i + 1] = static_cast<float>(value_of(static_cast<double>(unit_float(word[1]))));
    }
  };
  switch (init.kind) {
    case Init::Kind::zeros:
      break;
    case Init::Kind::ones:
      out.assign(count, 1.0f);
      break;
    case Init::Kind::constant:
      out.assign(count, init.a);
      break;
    case Init::Kind::normal:
      for (std::size_t i = 0; i < count; i += 2) {
        const auto word = random(i / 2);
        const double u = 1.0 - static_cast<double>(unit_float(word[0])),
                     v = static_cast<double>(unit_float(word[1]));
        const double radius = b * std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
        out[i] = static_cast<float>(a + radius * std::cos(angle));
        if (i + 1 < count) out[i + 1] = static_cast<float>(a + radius * std::sin(angle));
      }
      break;
    case Init::Kind::uniform:
      draw([&](double u) { return a + (b - a) * u; });
      break;
    case Init::Kind::log_of_uniform:
      draw([&](double u) { return std::log(a + (b - a) * u); });
      break;
    case Init::Kind::step_size:
      draw([&](double u) {
        const double step = a * std::pow(b / a, u);
        return step + std::log(-std::expm1(
                          -step));  // log(exp(step) - 1) without losing digits of small steps
      });
      break;
    case Init::Kind::literal:
      check_init(init, shape, name);
      out = init.values;
      break;
    case Init::Kind::function:
      for (std::size_t i = 0; i < count; ++i) out[i] = init.function(static_cast<std::int64_t>(i));
      break;
  }
  return out;
}

}  // namespace compile_stage

}  // namespace tensorgrad
