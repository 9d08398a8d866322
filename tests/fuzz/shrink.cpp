#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <cstddef>

#include "support/integers.h"
#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

bool is_leaf(const Instr& instr) {
  const std::span<const Row> rows = leaf_rows();
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return &row == instr.row; });
}

// Every place in the program that holds the index of a value.
template <class F>
void each_value(Program& program, const F& f) {
  for (Instr& instr : program.code) std::for_each(instr.in.begin(), instr.in.end(), f);
  for (auto* list : {&program.outputs, &program.loss, &program.wanted})
    std::for_each(list->begin(), list->end(), f);
  for (Update& update : program.updates) {
    f(update.leaf);
    if (update.value >= 0) f(update.value);
  }
}

// A duplicate result would give two results of one name.
void remove_repeats(std::vector<int>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

class Shrinker {
 public:
  Shrinker(Program program, const std::function<bool(const Program&)>& fails)
      : best_(std::move(program)), fails_(fails) {}

  Program run() {
    do {
      changed_ = false;
      drop_results();
      bypass();
      use_leaves();
      simplify_dice();
      shrink_sizes();
    } while (changed_);
    return best_;
  }

 private:
  bool attempt(Program candidate) {
    remove_repeats(candidate.outputs);
    remove_repeats(candidate.loss);
    candidate = without_dead(candidate);
    if (candidate == best_ || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return changed_ = true;
  }

  // Tries to change a copy by f for each i below the count, which may decrease meanwhile.
  template <class Count, class F>
  void try_each(const Count& count, const F& f) {
    for (std::size_t i = count(); i-- > 0;) {
      if (i >= count()) continue;
      Program candidate = best_;
      f(candidate, i);
      attempt(std::move(candidate));
    }
  }

  void drop_results() {
    const auto drop_from = [&](auto member) {
      Program none = best_;
      (none.*member).clear();
      if (attempt(std::move(none))) return;
      try_each([&] { return (best_.*member).size(); },
               [&](Program& p, std::size_t i) {
                 (p.*member).erase((p.*member).begin() + static_cast<std::ptrdiff_t>(i));
               });
    };
    Program plain = best_;
    plain.optimizer = 0;
    attempt(std::move(plain));
    drop_from(&Program::updates);
    drop_from(&Program::wanted);
    drop_from(&Program::loss);
    drop_from(&Program::outputs);
  }

  // Replaces a value by one of its operands.
  void bypass() {
    try_each([&] { return best_.code.size(); },
             [&](Program& p, std::size_t i) { p.code[i].tame = false; });
    for (std::size_t which = 0; which < 3; ++which)
      try_each([&] { return best_.code.size(); },
               [&](Program& p, std::size_t i) {
                 if (which >= p.code[i].in.size()) return;
                 const int from = static_cast<int>(i), to = p.code[i].in[which];
                 each_value(p, [&](int& value) { value = value == from ? to : value; });
               });
  }

  // Replaces operands and results by the first suitable leaf.
  void use_leaves() {
    for (int leaf = 0;
         leaf < static_cast<int>(best_.code.size()) && is_leaf(best_.code[usize(leaf)]); ++leaf) {
      try_each([&] { return best_.code.size(); },
               [&](Program& p, std::size_t i) {
                 if (is_leaf(p.code[i])) return;
                 const int from = static_cast<int>(i);
                 each_value(p, [&](int& value) { value = value == from ? leaf : value; });
               });
      for (std::size_t which = 0; which < 3; ++which)
        try_each([&] { return best_.code.size(); },
                 [&](Program& p, std::size_t i) {
                   if (which < p.code[i].in.size() && p.code[i].in[which] > leaf)
                     p.code[i].in[which] = leaf;
                 });
    }
  }

  void simplify_dice() {
    for (int die = 0; die < kDice; ++die)
      for (const int to : {0, 1, 2, 3})
        try_each([&] { return best_.code.size(); },
                 [&](Program& p, std::size_t i) {
                   auto& now = p.code[i].dice[usize(die)];
                   if (now > to) now = static_cast<std::uint16_t>(to);
                 });
  }

  void shrink_sizes() {
    for (std::size_t i = 0; i < best_.sizes.size(); ++i) {
      const std::int64_t now = best_.sizes[i];
      for (const std::int64_t to :
           {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, now / 2, now - 1}) {
        Program candidate = best_;
        if (to < 1 || to >= candidate.sizes[i]) continue;
        candidate.sizes[i] = to;
        attempt(std::move(candidate));
      }
    }
  }

  Program best_;
  const std::function<bool(const Program&)>& fails_;
  bool changed_ = false;
};

}  // namespace

Program without_dead(const Program& program) {
  Program out = program;
  std::vector<bool> live(program.code.size());
  const auto mark = [&](const std::vector<int>& values) {
    for (const int value : values) live[usize(value)] = true;
  };
  mark(program.outputs);
  mark(program.loss);
  mark(program.wanted);
  for (const Update& update : program.updates)
    mark({update.leaf, update.value >= 0 ? update.value : update.leaf});
  for (std::size_t i = program.code.size(); i-- > 0;)
    if (live[i]) mark(program.code[i].in);
  std::vector<int> renamed(program.code.size(), -1);
  out.code.clear();
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    if (!live[i]) continue;
    renamed[i] = static_cast<int>(out.code.size());
    out.code.push_back(program.code[i]);
  }
  each_value(out, [&](int& value) { value = renamed[usize(value)]; });
  return out;
}

Program shrink(Program program, const std::function<bool(const Program&)>& fails) {
  return Shrinker(std::move(program), fails).run();
}

}  // namespace tensorgrad::fuzz
