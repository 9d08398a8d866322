#include "codegen/wgsl/functions.h"

#include <array>
#include <cmath>
#include <string_view>

#include "codegen/wgsl/source.h"
#include "support/fail.h"

namespace tensorgrad::wgsl {

namespace {

struct Function {
  std::string_view name;
  int arguments;
  std::string_view needs;     // a function it calls, or empty
  std::string_view text;      // for one value: f32 -> f32 unless the text says otherwise
  bool componentwise = true;  // the vec4 form calls it per component
};

// NaN and infinity are detected by their bits: WGSL lets compilers assume that they do not occur.
constexpr Function kFunctions[] = {
    // Goes through a function variable, so that it is not evaluated at compile time, where WGSL
    // rejects it.
    {"bits_to_f32", 1, "",
     "fn bits_to_f32(bits: u32) -> f32 { var b = bits; return bitcast<f32>(b); }"},
    {"is_nan", 1, "",
     "fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }"},
    {"finite", 1, "",
     "fn finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }"},
    {"not_zero", 1, "",
     "fn not_zero(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }"},
    {"maximum", 2, "is_nan",
     "fn maximum(a: f32, b: f32) -> f32 { if (is_nan(a)) { return a; } if (is_nan(b)) { return b; "
     "} return max(a, b); }"},
    {"minimum", 2, "is_nan",
     "fn minimum(a: f32, b: f32) -> f32 { if (is_nan(a)) { return a; } if (is_nan(b)) { return b; "
     "} return min(a, b); }"},
    {"sign_of", 1, "is_nan", "fn sign_of(x: f32) -> f32 { return select(sign(x), x, is_nan(x)); }"},
    {"power", 2, "is_nan", R"(fn power(x: f32, y: f32) -> f32 {
  if (y == 0.0f || x == 1.0f) { return 1.0f; }
  if (is_nan(x) || is_nan(y)) { return x + y; }
  let size = abs(x);
  if ((bitcast<u32>(y) & 0x7fffffffu) == 0x7f800000u) {
    return select(select(0.0f, bits_to_f32(0x7f800000u), (size > 1.0f) == (y > 0.0f)), 1.0f, size == 1.0f);
  }
  let odd = fract(y * 0.5f) != 0.0f;
  let whole = fract(y) == 0.0f;
  if (bitcast<u32>(size) == 0x7f800000u) {
    let far = select(0.0f, bits_to_f32(0x7f800000u), y > 0.0f);
    return select(far, -far, x < 0.0f && odd && whole);
  }
  if (x < 0.0f && !whole) { return bits_to_f32(0x7fc00000u); }
  if (y == 1.0f) { return x; }
  if (y == 2.0f) { return x * x; }
  if (y == -1.0f) { return 1.0f / x; }
  if (size == 0.0f) {
    let zero = select(0.0f, bits_to_f32(0x7f800000u), y < 0.0f);
    return select(zero, -zero, odd && whole && (bitcast<u32>(x) >> 31u) == 1u);
  }
  // Small whole powers by multiplication: exp2(y * log2(x)) loses bits.
  var r = 1.0f;
  if (whole && abs(y) <= 16.0f) {
    for (var i = 0u; i < u32(abs(y)); i++) { r *= size; }
    if (y < 0.0f) { r = 1.0f / r; }
  } else {
    r = pow(size, y);
  }
  return select(r, -r, x < 0.0f && odd);
})"},
    {"exp_minus_1", 1, "", R"(fn exp_minus_1(x: f32) -> f32 {
  if (abs(x) > 0.5f) { return exp(x) - 1.0f; }
  return x * (1.0f + x * (0.5f + x * (0.166666667f + x * (0.0416666667f + x * (0.00833333333f +
         x * (0.00138888889f + x * (0.000198412698f + x * 0.0000248015873f)))))));
})"},
    {"log_1_plus", 1, "", R"(fn log_1_plus(x: f32) -> f32 {
  if (x > 0.5f || x < -0.375f || (bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u) { return log(1.0f + x); }
  let s = x / (2.0f + x);
  let t = s * s;
  return 2.0f * s * (1.0f + t * (0.333333333f + t * (0.2f + t * (0.142857143f + t * (0.111111111f + t * (0.0909090909f + t * 0.0769230769f))))));
})"},
    // Drivers are imprecise for large angles. This reduces by pi/2 in three parts, whose multiples
    // are exact.
    {"sine_of_quarters", 2, "", R"(fn sine_of_quarters(x: f32, more: i32) -> f32 {
  let k = round(x * 0.636619772f);
  let r = ((x - k * 1.5703125f) - k * 0.000483751297f) - k * 7.54978995e-8f;
  let z = r * r;
  let sine = r + r * z * (-0.166666546f + z * (0.00833216087f + z * -0.000195152959f));
  let cosine = 1.0f - 0.5f * z + z * z * (0.0416666457f + z * (-0.00138873163f + z * 0.0000244331571f));
  let quarter = (i32(k) + more) & 3;
  let value = select(sine, cosine, (quarter & 1) == 1);
  return select(value, -value, quarter >= 2);
})"},
    {"sine", 1, "sine_of_quarters",
     "fn sine(x: f32) -> f32 { return select(sine_of_quarters(x, 0), sin(x), abs(x) > 100000.0f); "
     "}"},
    {"cosine", 1, "sine_of_quarters",
     "fn cosine(x: f32) -> f32 { return select(sine_of_quarters(x, 1), cos(x), abs(x) > "
     "100000.0f); }"},
    {"hyperbolic_tangent", 1, "is_nan", R"(fn hyperbolic_tangent(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  if (abs(x) < 0.25f) {
    let t = x * x;
    return x * (1.0f + t * (-0.333333333f + t * (0.133333333f + t * (-0.0539682540f + t * 0.0218694885f))));
  }
  return tanh(clamp(x, -12.0f, 12.0f));
})"},
    {"error_function", 1, "is_nan", R"(fn error_function(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let size = abs(x);
  if (size <= 1.0f) {
    let z = x * x;
    return x * (1.12837917f + z * (-0.376126267f + z * (0.112835947f + z * (-0.026854212f + z * (0.00518908742f +
           z * (-0.000801686428f + z * 0.0000787587505f))))));
  }
  let t = 1.0f / (1.0f + 0.5f * min(size, 5.0f));
  let q = -0.00015676374f + t * (0.284954021f + t * (0.259408957f + t * (0.348818722f + t * (-0.105786556f +
          t * (0.566008221f + t * (-0.473083067f + t * 0.119894504f))))));
  let r = select(1.0f - exp(-size * size) * q, 1.0f, size > 4.2f);
  return select(r, -r, x < 0.0f);
})"},
    // Computes exp(-x^2 / 2) in parts with small rounding errors: exp of a large argument is
    // imprecise.
    {"normal_cdf", 1, "is_nan", R"(fn normal_cdf(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let size = min(abs(x), 15.0f);
  let u = 1.0f / (1.0f + 0.295f * size);
  let q = 1.81113173e-05f + u * (0.117268912f + u * (0.121857829f + u * (0.0840709656f + u * (0.168008953f +
          u * (-0.119773746f + u * (0.273574769f + u * (-0.184742779f + u * 0.0397169851f)))))));
  let head = bitcast<f32>(bitcast<u32>(size) & 0xfffff000u);
  let high = -0.5f * head * head;
  let low = -0.5f * (size - head) * (size + head);
  let n = max(round((high + low) * 1.44269504f), -127.0f);
  let r = ((high - n * 0.693145752f) - n * 0.00000142860677f) + low;
  let tail = q * exp(r) * bitcast<f32>(u32(i32(n) + 127) << 23u);
  return select(tail, 1.0f - tail, x > 0.0f);
})"},
    {"to_integer", 1, "is_nan", R"(fn to_integer(x: f32) -> i32 {
  if (is_nan(x)) { return 0; }
  if (x >= 2147483648.0f) { return 2147483647; }
  if (x < -2147483648.0f) { return -2147483647 - 1; }
  return i32(x);
})"},
    {"threefry", 4, "", R"(fn threefry(key0: u32, key1: u32, counter0: u32, counter1: u32) -> u32 {
  var keys = array<u32, 3>(key0, key1, 0x1BD11BDAu ^ key0 ^ key1);
  var turns = array<u32, 8>(13u, 15u, 26u, 6u, 17u, 29u, 16u, 24u);
  var x = counter0 + key0;
  var y = counter1 + key1;
  for (var g = 0u; g < 5u; g++) {
    for (var i = 0u; i < 4u; i++) {
      let turn = turns[4u * (g % 2u) + i];
      x += y;
      y = ((y << turn) | (y >> (32u - turn))) ^ x;
    }
    x += keys[(g + 1u) % 3u];
    y += keys[(g + 2u) % 3u] + g + 1u;
  }
  return x;
})"},
    {"uniform_number", 4, "threefry",
     R"(fn uniform_number(seed: i32, step: i32, site: u32, index: i32) -> f32 {
  return f32(threefry(u32(seed), u32(step), site, u32(index)) >> 8u) * 0x1p-24f;
})"},
};

const Function& find(std::string_view name) {
  for (const Function& f : kFunctions)
    if (f.name == name) return f;
  internal_error("no shader function {}", name);
}

// The result type, parsed from the text.
std::string result_type(const Function& f) {
  const std::size_t arrow = f.text.find("-> ");
  return std::string(f.text.substr(arrow + 3, f.text.find(' ', arrow + 3) - arrow - 3));
}

// The type of argument i.
std::string argument_type(const Function& f, int i) {
  std::size_t at = f.text.find('(');
  for (int k = 0; k <= i; ++k) at = f.text.find(": ", at + 1);
  return std::string(f.text.substr(at + 2, f.text.find_first_of(",)", at) - at - 2));
}

}  // namespace

std::string use_function(Source& source, const std::string& name, int width) {
  const Function& f = find(name);
  if (!f.needs.empty()) use_function(source, std::string(f.needs), 1);
  if (f.text.find("bits_to_f32(0") != std::string_view::npos)
    use_function(source, "bits_to_f32", 1);
  source.declare(std::string(f.text));
  if (width == 1) return name;
  std::vector<std::string> parameters, parts;
  for (int i = 0; i < f.arguments; ++i) {
    const std::string type = argument_type(f, i);
    // All elements share the site of random numbers.
    parameters.push_back(
        fmt::format(fmt::runtime(type == "u32" ? "a{}: {}" : "a{}: vec4<{}>"), i, type));
  }
  for (const char c : {'x', 'y', 'z', 'w'}) {
    std::vector<std::string> arguments;
    for (int i = 0; i < f.arguments; ++i)
      arguments.push_back(argument_type(f, i) == "u32" ? fmt::format("a{}", i)
                                                       : fmt::format("a{}.{}", i, c));
    parts.push_back(fmt::format("{}({})", name, fmt::join(arguments, ", ")));
  }
  source.declare(fmt::format("fn {}_4({}) -> vec4<{}> {{\n  return vec4<{}>({});\n}}", name,
                             fmt::join(parameters, ", "), result_type(f), result_type(f),
                             fmt::join(parts, ", ")));
  return name + "_4";
}

std::string literal(Source& source, double value, DType dtype, int width) {
  if (dtype == DType::f32 && !std::isfinite(static_cast<float>(value)))
    use_function(source, "bits_to_f32", 1);
  return number(value, dtype, width);
}

}  // namespace tensorgrad::wgsl
