#include "codegen/cpu/block_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/threefry.h"

namespace tensorgrad::cpu {

using ir::Instr;
using ir::Reg;
using ir::ScalarOp;

namespace {

// Blocks hold f32 or i32; both are looked at through these. (Built with -fno-strict-aliasing.)
const std::int32_t* ints(const float* block) { return reinterpret_cast<const std::int32_t*>(block); }
std::int32_t* ints(float* block) { return reinterpret_cast<std::int32_t*>(block); }

template <class T, class R, class F>
void unary(const T* a, R* out, int n, F f) {
  for (int i = 0; i < n; ++i) out[i] = f(a[i]);
}

template <class T, class R, class F>
void binary(const T* a, const T* b, R* out, int n, F f) {
  for (int i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

// Two's complement arithmetic that wraps around.
std::int32_t wrap(std::uint32_t x) { return static_cast<std::int32_t>(x); }
std::uint32_t u(std::int32_t x) { return static_cast<std::uint32_t>(x); }

std::int32_t truncate(float x) {
  if (std::isnan(x)) return 0;
  if (x >= 0x1p31f) return std::numeric_limits<std::int32_t>::max();
  if (x < -0x1p31f) return std::numeric_limits<std::int32_t>::min();
  return static_cast<std::int32_t>(x);
}

void check(std::int32_t id, const Instr& in) {
  if (id < 0 || id >= in.extent) throw IndexError{id, in.extent, in.node};
}

template <class T>
void compare(const Instr& in, const T* a, const T* b, std::int32_t* out, int n) {
  switch (in.op) {
    case ScalarOp::less: return binary(a, b, out, n, [](T x, T y) { return std::int32_t{x < y}; });
    case ScalarOp::less_equal: return binary(a, b, out, n, [](T x, T y) { return std::int32_t{x <= y}; });
    default: return binary(a, b, out, n, [](T x, T y) { return std::int32_t{x == y}; });
  }
}

void real_arithmetic(const Instr& in, const float* a, const float* b, float* out, int n) {
  switch (in.op) {
    case ScalarOp::add: return binary(a, b, out, n, [](float x, float y) { return x + y; });
    case ScalarOp::sub: return binary(a, b, out, n, [](float x, float y) { return x - y; });
    case ScalarOp::mul: return binary(a, b, out, n, [](float x, float y) { return x * y; });
    case ScalarOp::div: return binary(a, b, out, n, [](float x, float y) { return x / y; });
    // NaN wins: x + y is NaN when either is.
    case ScalarOp::minimum:
      return binary(a, b, out, n, [](float x, float y) { return x != x || y != y ? x + y : (y < x ? y : x); });
    case ScalarOp::maximum:
      return binary(a, b, out, n, [](float x, float y) { return x != x || y != y ? x + y : (x < y ? y : x); });
    case ScalarOp::pow: return binary(a, b, out, n, [](float x, float y) { return std::pow(x, y); });
    case ScalarOp::neg: return unary(a, out, n, [](float x) { return -x; });
    case ScalarOp::abs: return unary(a, out, n, [](float x) { return std::fabs(x); });
    case ScalarOp::sign:
      return unary(a, out, n, [](float x) { return x != x ? x : static_cast<float>((x > 0) - (x < 0)); });
    case ScalarOp::sqrt: return unary(a, out, n, [](float x) { return std::sqrt(x); });
    case ScalarOp::exp: return unary(a, out, n, [](float x) { return std::exp(x); });
    case ScalarOp::expm1: return unary(a, out, n, [](float x) { return std::expm1(x); });
    case ScalarOp::log: return unary(a, out, n, [](float x) { return std::log(x); });
    case ScalarOp::log1p: return unary(a, out, n, [](float x) { return std::log1p(x); });
    case ScalarOp::sin: return unary(a, out, n, [](float x) { return std::sin(x); });
    case ScalarOp::cos: return unary(a, out, n, [](float x) { return std::cos(x); });
    case ScalarOp::tanh: return unary(a, out, n, [](float x) { return std::tanh(x); });
    case ScalarOp::erf: return unary(a, out, n, [](float x) { return std::erf(x); });
    default: return;
  }
}

void int_arithmetic(const Instr& in, const std::int32_t* a, const std::int32_t* b, std::int32_t* out, int n) {
  using I = std::int32_t;
  switch (in.op) {
    case ScalarOp::add: return binary(a, b, out, n, [](I x, I y) { return wrap(u(x) + u(y)); });
    case ScalarOp::sub: return binary(a, b, out, n, [](I x, I y) { return wrap(u(x) - u(y)); });
    case ScalarOp::mul: return binary(a, b, out, n, [](I x, I y) { return wrap(u(x) * u(y)); });
    case ScalarOp::minimum: return binary(a, b, out, n, [](I x, I y) { return std::min(x, y); });
    case ScalarOp::maximum: return binary(a, b, out, n, [](I x, I y) { return std::max(x, y); });
    case ScalarOp::neg: return unary(a, out, n, [](I x) { return wrap(0u - u(x)); });
    case ScalarOp::abs: return unary(a, out, n, [](I x) { return x < 0 ? wrap(0u - u(x)) : x; });
    case ScalarOp::sign: return unary(a, out, n, [](I x) { return I{x > 0} - I{x < 0}; });
    default: return;
  }
}

}  // namespace

BlockProgram::BlockProgram(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program,
                           std::span<const Reg> kept, std::int64_t length, int capacity)
    : code_(program.code), length_(length), capacity_(capacity) {
  for (Instr& in : code_) {
    if (in.op != ScalarOp::load && in.op != ScalarOp::gather) continue;
    loads_.push_back(loads[static_cast<std::size_t>(in.slot)]);
    readers_.emplace_back(loads_.back());
    in.slot = static_cast<int>(loads_.size()) - 1;
  }
  // Pieces of scratch memory are handed on once their register was read for the last time.
  const auto n = code_.size();
  std::vector<std::size_t> last_use(n, 0);
  for (std::size_t i = 0; i < n; ++i)
    for (const Reg r : {code_[i].a, code_[i].b, code_[i].c})
      if (r >= 0) last_use[static_cast<std::size_t>(r)] = i;
  for (const Reg r : kept) last_use[static_cast<std::size_t>(r)] = n;
  slot_.assign(n, -1);
  constants_.resize(n);
  std::vector<int> free;
  for (std::size_t i = 0; i < n; ++i) {
    if (code_[i].op == ScalarOp::constant) {
      constants_[i].assign(static_cast<std::size_t>(capacity_), element(code_[i].value, code_[i].dtype));
      continue;
    }
    if (free.empty()) free.push_back(slots_++);
    slot_[i] = free.back();
    free.pop_back();
    for (const Reg r : {code_[i].a, code_[i].b, code_[i].c}) {
      if (r < 0) continue;
      const auto reg = static_cast<std::size_t>(r);
      const bool first_mention = std::find(free.begin(), free.end(), slot_[reg]) == free.end();
      if (last_use[reg] == i && slot_[reg] >= 0 && first_mention) free.push_back(slot_[reg]);
    }
  }
}

const float* const* BlockProgram::run(const Memory& memory, const Block& block, float* scratch, Part part,
                                      const Given& given) const {
  thread_local std::vector<const float*> values;
  values.resize(code_.size());
  const auto value = [&](Reg r) { return r < 0 ? nullptr : values[static_cast<std::size_t>(r)]; };
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const Instr& in = code_[i];
    if (in.op == ScalarOp::constant) {
      values[i] = constants_[i].data();
      continue;
    }
    if (part == Part::elements && in.line) continue;
    if (part == Part::lines && !in.line) continue;
    float* out = scratch + static_cast<std::size_t>(slot_[i]) * static_cast<std::size_t>(capacity_);
    values[i] = out;
    const std::int64_t begin = in.line ? block.first_line : block.begin;
    const int n = in.line ? block.lines : block.n;
    switch (in.op) {
      case ScalarOp::load:
        values[i] = readers_[static_cast<std::size_t>(in.slot)].read(memory, begin, n, out);
        break;
      case ScalarOp::accumulator: values[i] = given.accumulator; break;
      case ScalarOp::reduce:
        if (part == Part::lines)
          values[i] = given.reductions[i];
        else
          reduce(in, value(in.a), block.lines, out);
        break;
      case ScalarOp::spread: {
        const float* from = value(in.a);
        for (int l = 0; l < block.lines; ++l) std::fill_n(out + l * length_, length_, from[l]);
        break;
      }
      default: evaluate(memory, in, begin, n, value(in.a), value(in.b), value(in.c), out);
    }
  }
  return values.data();
}

void BlockProgram::reduce(const Instr& in, const float* a, int lines, float* out) const {
  for (int l = 0; l < lines; ++l)
    out[l] = rounded(combine_block(in.combine, in.dtype, ir::identity(in.combine, in.dtype), a + l * length_,
                                   static_cast<int>(length_)),
                     in.dtype);
}

void BlockProgram::evaluate(const Memory& memory, const Instr& in, std::int64_t begin, int n, const float* a,
                            const float* b, const float* c, float* out) const {
  const auto real = [&](Reg r) { return code_[static_cast<std::size_t>(r)].dtype == DType::f32; };
  switch (in.op) {
    case ScalarOp::gather: {
      const auto slot = static_cast<std::size_t>(in.slot);
      const float* base = memory.at(loads_[slot].place);
      thread_local std::vector<std::int64_t> address;
      address.resize(static_cast<std::size_t>(capacity_));
      readers_[slot].addresses(begin, n, address.data());
      for (int j = 0; j < n; ++j) {
        check(ints(a)[j], in);
        out[j] = base[address[static_cast<std::size_t>(j)] + ints(a)[j] * in.stride];
      }
      return;
    }
    case ScalarOp::less:
    case ScalarOp::less_equal:
    case ScalarOp::equal:
      if (real(in.a))
        compare(in, a, b, ints(out), n);
      else
        compare(in, ints(a), ints(b), ints(out), n);
      return;
    case ScalarOp::logical_and:
      return binary(ints(a), ints(b), ints(out), n, [](std::int32_t x, std::int32_t y) { return x & y; });
    case ScalarOp::logical_or:
      return binary(ints(a), ints(b), ints(out), n, [](std::int32_t x, std::int32_t y) { return x | y; });
    case ScalarOp::logical_not: return unary(ints(a), ints(out), n, [](std::int32_t x) { return x ^ 1; });
    case ScalarOp::select: {
      // By bits: a branch would be mispredicted half of the time. The condition is 0 or 1.
      const std::int32_t *condition = ints(a), *yes = ints(b), *no = ints(c);
      std::int32_t* to = ints(out);
      for (int j = 0; j < n; ++j) to[j] = (yes[j] & -condition[j]) | (no[j] & (condition[j] - 1));
      return;
    }
    case ScalarOp::to_f32:
      return unary(ints(a), out, n, [](std::int32_t x) { return static_cast<float>(x); });
    case ScalarOp::to_i32:
      if (real(in.a))
        unary(a, ints(out), n, truncate);
      else
        std::copy_n(a, n, out);
      return;
    case ScalarOp::to_bool:
      if (real(in.a))
        unary(a, ints(out), n, [](float x) { return std::int32_t{x != 0}; });
      else
        unary(ints(a), ints(out), n, [](std::int32_t x) { return std::int32_t{x != 0}; });
      return;
    case ScalarOp::is_finite:
      return unary(ints(a), ints(out), n,
                   [](std::int32_t x) { return std::int32_t{(x & 0x7f800000) != 0x7f800000}; });
    case ScalarOp::random:
      for (int j = 0; j < n; ++j)
        out[j] = unit_float(threefry(u(ints(a)[j]), u(ints(b)[j]), in.site, u(ints(c)[j]))[0]);
      return;
    case ScalarOp::check_index:
      for (int j = 0; j < n; ++j) check(ints(a)[j], in);
      std::copy_n(a, n, out);
      return;
    default:
      if (in.dtype == DType::f32)
        real_arithmetic(in, a, b, out, n);
      else
        int_arithmetic(in, ints(a), ints(b), ints(out), n);
  }
}

}  // namespace tensorgrad::cpu
