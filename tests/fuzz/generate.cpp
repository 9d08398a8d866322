#include "tests/fuzz/generate.h"

#include <algorithm>
#include <cmath>

#include "support/fail.h"
#include "support/integers.h"
#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

constexpr double kLargeValue = 30;  // larger values are limited by tanh
constexpr int kMostAxes = 5;

bool broadcasts(const Shape& a, const Shape& b) {
  for (int d = 1; d <= std::min(a.rank(), b.rank()); ++d)
    if (a[-d] != b[-d] && a[-d] != 1 && b[-d] != 1) return false;
  return true;
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), assembler_(program_.sizes) {}

  Program run() {
    draw_sizes();
    draw_leaves();
    const int ops = kFewestOps + random_.below(kMostOps - kFewestOps + 1);
    for (int made = 0, tries = 0; made < ops && tries < 20 * kMostOps; ++tries) made += draw_op();
    choose_results();
    tame();
    return std::move(program_);
  }

 private:
  void draw_sizes() {
    const int small[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17};
    const int large[] = {31, 33, 64, 100, 257, 300, 1030, 4100, 5000};
    for (int i = 0; i < 3; ++i) program_.sizes.push_back(small[random_.below(std::size(small))]);
    program_.sizes.push_back(1 + random_.below(3));
    most_elements_ = 1200;
    if (!random_.chance(0.15)) return;
    program_.sizes[0] = large[random_.below(std::size(large))];
    most_elements_ = 20000;
  }

  Dice dice() {
    Dice dice;
    for (auto& die : dice) die = static_cast<std::uint16_t>(random_.bits());
    return dice;
  }

  bool add(Instr instr) {
    const Made* made = nullptr;
    try {
      made = &assembler_.add(instr);
    } catch (const UserError&) {
      return false;
    }
    const Tensor& x = made->tensor;
    if ((x.count() > most_elements_ && !instr.in.empty()) || x.rank() > kMostAxes ||
        x.count() == 0) {
      assembler_.drop_last();
      return false;
    }
    used_.push_back(false);
    for (const int operand : instr.in) used_[usize(operand)] = true;
    program_.code.push_back(std::move(instr));
    return true;
  }

  void draw_leaf(const char* kind) { add({&row_of_leaf(kind), {}, dice()}); }

  void draw_leaves() {
    for (int n = 1 + random_.below(4); n > 0; --n) draw_leaf("parameter");
    for (int n = random_.below(3); n > 0; --n) draw_leaf("input");
    if (random_.chance(0.5)) draw_leaf("ids");
    if (random_.chance(0.3)) draw_leaf("mask");
    if (random_.chance(0.3)) draw_leaf("state");
  }

  // A value of that element type, preferably a recent one that broadcasts with `beside`.
  int draw_operand(char kind, const Shape* beside) {
    std::vector<int> all, fitting;
    const auto& values = assembler_.values();
    for (int i = 0; i < static_cast<int>(values.size()); ++i) {
      if (!accepts(kind, values[usize(i)].tensor.dtype())) continue;
      all.push_back(i);
      if (beside && broadcasts(values[usize(i)].tensor.shape(), *beside)) fitting.push_back(i);
    }
    const auto& from = !fitting.empty() && random_.chance(0.8) ? fitting : all;
    if (from.empty()) return -1;
    const int count = static_cast<int>(from.size());
    return from[usize(random_.chance(0.5) ? count - 1 - random_.below(std::min(count, 4))
                                          : random_.below(count))];
  }

  bool draw_op() {
    const auto& rows = drawn_rows();
    Instr instr{rows[usize(random_.below(static_cast<int>(rows.size())))], {}, dice()};
    for (const char kind : instr.row->operands) {
      const Shape* beside =
          instr.in.empty() ? nullptr : &assembler_.values()[usize(instr.in[0])].tensor.shape();
      const int operand = draw_operand(kind, beside);
      if (operand < 0) return false;
      instr.in.push_back(operand);
    }
    return add(std::move(instr));
  }

  bool is_leaf(int i, const char* kind) const {
    return program_.code[usize(i)].row == &row_of_leaf(kind);
  }

  void choose_results() {
    const int count = static_cast<int>(program_.code.size());
    const bool trains = random_.chance(0.85), all = random_.chance(0.5);
    for (int i = 0; i < count; ++i) {
      const bool real = assembler_.values()[usize(i)].tensor.dtype() == f32;
      if (is_leaf(i, "parameter") && trains && (all || random_.chance(0.6)))
        program_.wanted.push_back(i);
      if (is_leaf(i, "state") && random_.chance(0.8))
        program_.updates.push_back({i, random_.below(count)});
      if (is_leaf(i, "parameter") && random_.chance(0.2)) program_.updates.push_back({i, -1});
      const bool used = used_[usize(i)];
      if (random_.chance(used ? 0.08 : trains && real ? 0.2 : 0.9)) program_.outputs.push_back(i);
      if (trains && real && random_.chance(used ? 0.03 : 0.85)) program_.loss.push_back(i);
    }
    if (trains && program_.loss.empty()) program_.loss.push_back(0);  // a parameter
    if (!trains && program_.outputs.empty()) program_.outputs.push_back(count - 1);
    if (trains && random_.chance(0.15)) program_.optimizer = 1 + random_.below(16);
  }

  void tame() {
    const int optimizer = std::exchange(program_.optimizer, 0);
    bool changed = true;
    for (int round = 0; round < 5 && changed; ++round) {
      const Built built = build(program_);
      const auto values = reference::interpret(built.graph, built.leaves);
      changed = false;
      for (std::size_t i = 0; i < program_.code.size(); ++i) {
        const auto& value = values[usize(built.values[i])];
        if (value.type.dtype != f32 || program_.code[i].tame) continue;
        const bool large = std::any_of(value.data.begin(), value.data.end(),
                                       [](double x) { return !(std::abs(x) < kLargeValue); });
        program_.code[i].tame = large;
        changed = changed || large;
      }
    }
    program_.optimizer = optimizer;
  }

  Random random_;
  Program program_;
  Assembler assembler_;
  std::vector<bool> used_;
  std::int64_t most_elements_ = 0;
};

}  // namespace

Program generate(std::uint64_t seed) { return Generator(seed).run(); }

}  // namespace tensorgrad::fuzz
