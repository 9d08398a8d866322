#include "codegen/cpu/block_program.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "support/integers.h"

namespace tensorgrad::cpu {

using ir::Instr;
using ir::Reg;
using ir::ScalarOp;

namespace {

// Shorter lines do not get a loop of their own.
constexpr std::int64_t kShortLine = 16;

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Whether two instructions compute the same value. Operands are value-numbered already.
bool same_value(const Instr& x, const Instr& y) {
  if (x.op != y.op || x.dtype != y.dtype || x.a != y.a || x.b != y.b || x.c != y.c ||
      x.line != y.line)
    return false;
  if (x.op == ScalarOp::constant)
    return same_bits(element(x.value, x.dtype), element(y.value, y.dtype));
  return x.slot == y.slot && x.extent == y.extent && x.stride == y.stride && x.site == y.site &&
         x.combine == y.combine;
}

// The same for instructions that compute the same value.
std::size_t hash_of(const Instr& in) {
  std::size_t out = usize(in.op);
  for (const int part : {in.a, in.b, in.c, in.op == ScalarOp::constant ? 0 : in.slot})
    out = out * 1000003 + static_cast<std::size_t>(part);
  if (in.op == ScalarOp::constant) {
    const float value = element(in.value, in.dtype);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    out = out * 1000003 + bits;
  }
  return out;
}

bool has_loop(ScalarOp op) {
  switch (op) {
    case ScalarOp::load:
    case ScalarOp::gather:
    case ScalarOp::constant:
    case ScalarOp::random:
    case ScalarOp::check_index:
    case ScalarOp::reduce:
    case ScalarOp::spread:
    case ScalarOp::accumulator:
      return false;
    default:
      return true;
  }
}

int cost_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::constant:
      return 0;
    case ScalarOp::div:
    case ScalarOp::sqrt:
    case ScalarOp::gather:
      return 3;
    case ScalarOp::pow:
    case ScalarOp::random:
      return 20;
    default:
      return ir::is_costly(op) ? 6 : 1;
  }
}

}  // namespace

BlockProgram::BlockProgram(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program,
                           std::span<const Reg> kept, std::int64_t length, int capacity)
    : code_(program.code), length_(length), capacity_(capacity) {
  std::vector<int> slots(loads.size(), -1);
  for (Instr& in : code_) {
    if (in.op != ScalarOp::load && in.op != ScalarOp::gather) continue;
    int& slot = slots[usize(in.slot)];
    if (slot < 0) {
      slot = static_cast<int>(loads_.size());
      loads_.push_back(loads[usize(in.slot)]);
      readers_.emplace_back(loads_.back());
    }
    in.slot = slot;
  }
  number_values();
  choose_modes(kept);
  make_steps();
  join_products(kept);
  allocate_registers(kept);
}

// Value numbering: expanded gradients repeat instructions of the forward pass. Duplicates run once.
void BlockProgram::number_values() {
  same_.resize(code_.size());
  std::unordered_multimap<std::size_t, Reg> known;  // the first of equal instructions, by hash
  for (std::size_t i = 0; i < code_.size(); ++i) {
    Instr& in = code_[i];
    for (Reg* r : {&in.a, &in.b, &in.c})
      if (*r >= 0) *r = same_[usize(*r)];
    same_[i] = static_cast<Reg>(i);
    const auto [begin, end] = known.equal_range(hash_of(in));
    for (auto other = begin; other != end; ++other)
      if (same_value(code_[usize(other->second)], in)) same_[i] = other->second;
    if (same_[i] == static_cast<Reg>(i)) known.emplace(hash_of(in), same_[i]);
    // A bool is stored as an i32.
    if (in.op == ScalarOp::to_i32 && instr(in.a).dtype != DType::f32) same_[i] = in.a;
  }
}

// Finds which values are one scalar for all elements, which loads are one row for all lines, and
// which values are needed as arrays.
void BlockProgram::choose_modes(std::span<const Reg> kept) {
  const std::size_t n = code_.size();
  one_.assign(n, false), full_.assign(n, false);
  std::vector<bool> row(n, false);
  for (std::size_t i = 0; i < n; ++i) {
    const Instr& in = code_[i];
    if (in.op == ScalarOp::constant)
      one_[i] = true;
    else if (in.op == ScalarOp::load)
      one_[i] = readers_[usize(in.slot)].splat();
    else if (in.op == ScalarOp::spread)
      one_[i] = one_[usize(in.a)];
    else if (has_loop(in.op))
      one_[i] =
          one_[usize(in.a)] && (in.b < 0 || one_[usize(in.b)]) && (in.c < 0 || one_[usize(in.c)]);
    row[i] = in.op == ScalarOp::load && !in.line && length_ >= kShortLine &&
             readers_[usize(in.slot)].period() == length_;
  }
  for (const Reg r : kept) full_[usize(same_[usize(r)])] = true;
  for (std::size_t i = 0; i < n; ++i) {
    const Instr& in = code_[i];
    if (same_[i] != static_cast<Reg>(i) || one_[i]) continue;
    if (!has_loop(in.op)) {
      // A spread reads one value per line. So do per-line instructions, from arrays of lines.
      for (const Reg r : {in.a, in.b, in.c})
        if (r >= 0) full_[usize(r)] = true;
      continue;
    }
    // Operands are arrays, with at most one scalar (per line) among a and b. select takes scalars
    // for b and c.
    const bool select = in.op == ScalarOp::select;
    const auto number = [&](Reg r) {
      return one_[usize(r)] ||
             (!in.line && instr(r).op == ScalarOp::spread && length_ >= kShortLine);
    };
    if (in.b < 0) {
      full_[usize(in.a)] = true;
    } else if (select) {
      if (!one_[usize(in.a)]) full_[usize(in.a)] = true;
      for (const Reg r : {in.b, in.c})
        if (!number(r) || (one_[usize(in.a)] && !one_[usize(r)])) full_[usize(r)] = true;
    } else if (number(in.a) && number(in.b)) {
      full_[usize(one_[usize(in.a)] ? in.b : in.a)] = true;
    } else {
      for (const Reg r : {in.a, in.b})
        if (!number(r) && !row[usize(r)]) full_[usize(r)] = true;
    }
  }
  for (std::size_t i = 0; i < n; ++i)
    if (row[i] && !full_[i] && same_[i] == static_cast<Reg>(i))
      rows_.push_back(static_cast<Reg>(i));
}

void BlockProgram::make_steps() {
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const Instr& in = code_[i];
    const auto reg = static_cast<Reg>(i);
    if (same_[i] != reg || in.op == ScalarOp::constant) continue;
    if (std::find(rows_.begin(), rows_.end(), reg) != rows_.end()) continue;
    if (in.op == ScalarOp::spread && !full_[i] && !one_[i]) continue;
    Step step{
        .op = in.op, .reg = reg, .line = in.line, .one = one_[i], .filled = one_[i] && full_[i]};
    step.a.reg = in.a, step.b.reg = in.b, step.c.reg = in.c;
    const bool real = in.a >= 0 && instr(in.a).dtype == DType::f32;
    if (has_loop(in.op) && one_[i]) {
      step.loop = find_loop(in.op, real);
    } else if (has_loop(in.op)) {
      unsigned ones = kNoOnes, bit = 1;
      for (Operand* o : {&step.a, &step.b, &step.c}) {
        if (o->reg < 0) continue;
        if (one_[usize(o->reg)]) {
          o->mode = Mode::one;
        } else if (!full_[usize(o->reg)]) {
          const bool spread = instr(o->reg).op == ScalarOp::spread;
          o->mode = spread ? Mode::line : Mode::row;
          if (spread) o->reg = instr(o->reg).a;
          step.nested = true;
        }
        if (o->mode == Mode::one || o->mode == Mode::line) ones |= bit;
        bit *= 2;
      }
      // (A select with one scalar condition is a copy: it needs no loop.)
      step.loop = find_loop(in.op, real, ones);
    } else if (in.op == ScalarOp::reduce) {
      step.fold = find_fold(in.combine, in.dtype);
    }
    steps_.push_back(step);
    if (!step.one) cost_ += cost_of(in.op);
  }
}

// Fuses a multiplication into the loop of its only reader, if that is an addition or subtraction.
void BlockProgram::join_products(std::span<const Reg> kept) {
  std::vector<int> reads(code_.size(), 0);
  for (const Step& step : steps_)
    for (const Operand& o : {step.a, step.b, step.c})
      if (o.reg >= 0) ++reads[usize(o.reg)];
  for (const Reg r : kept) ++reads[usize(same_[usize(r)])];
  const auto plain = [&](const Step& s) {
    return !s.one && !s.line && instr(s.reg).dtype == DType::f32;
  };
  const auto number = [](const Operand& o) { return o.mode == Mode::one || o.mode == Mode::line; };
  for (Step& step : steps_) {
    if ((step.op != ScalarOp::add && step.op != ScalarOp::sub) || !plain(step)) continue;
    for (const bool left : {true, false}) {
      const Operand product = left ? step.a : step.b, other = left ? step.b : step.a;
      const auto from = std::find_if(steps_.begin(), steps_.end(),
                                     [&](const Step& s) { return s.reg == product.reg; });
      if (product.mode != Mode::each || from == steps_.end() || from->op != ScalarOp::mul ||
          !plain(*from))
        continue;
      if (reads[usize(product.reg)] != 1) continue;
      const ProductForm form = step.op == ScalarOp::add ? ProductForm::plus
                               : left                   ? ProductForm::minus
                                                        : ProductForm::from;
      step.a = number(from->a) ? from->b : from->a, step.b = number(from->a) ? from->a : from->b,
      step.c = other;
      step.nested |= from->nested;
      step.loop =
          find_product_loop(form, (number(step.b) ? kOneB : 0u) | (number(step.c) ? kOneC : 0u));
      from->op = ScalarOp::constant;  // removed
      break;
    }
  }
  std::erase_if(steps_, [](const Step& s) { return s.op == ScalarOp::constant; });
}

// Register allocation: a slot of scratch memory is reused after the last read of its register.
void BlockProgram::allocate_registers(std::span<const Reg> kept) {
  const std::size_t n = code_.size();
  std::vector<std::size_t> last_use(n, 0);
  for (std::size_t s = 0; s < steps_.size(); ++s)
    for (const Operand& o : {steps_[s].a, steps_[s].b, steps_[s].c})
      if (o.reg >= 0) last_use[usize(o.reg)] = s;
  for (const Reg r : kept) {
    last_use[usize(same_[usize(r)])] = steps_.size();
    if (same_[usize(r)] != r) twins_.push_back(r);
  }
  slot_.assign(n, -1);
  constants_.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    if (code_[i].op == ScalarOp::constant && same_[i] == static_cast<Reg>(i)) {
      constants_[i].assign(full_[i] ? usize(capacity_) : 1,
                           element(code_[i].value, code_[i].dtype));
      fixed_.push_back(static_cast<Reg>(i));
    }
  for (const Reg r : rows_) slot_[usize(r)] = slots_++;
  std::vector<int> free;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const auto hand_back = [&](bool arrays) {
      for (const Operand& o : {step.a, step.b, step.c}) {
        if (o.reg < 0 || o.mode == Mode::row || arrays != (step.loop && o.mode == Mode::each))
          continue;
        const int slot = slot_[usize(o.reg)];
        const bool first_mention = std::find(free.begin(), free.end(), slot) == free.end();
        if (last_use[usize(o.reg)] == s && slot >= 0 && slot != slot_[usize(step.reg)] &&
            first_mention)
          free.push_back(slot);
      }
    };
    hand_back(true);  // a loop may overwrite its operands
    if (free.empty()) free.push_back(slots_++);
    slot_[usize(step.reg)] = free.back();
    free.pop_back();
    hand_back(false);
  }
}

// Whether a step writes its result, element by element, directly to its destination in run().
bool BlockProgram::computes(const Step& step) const {
  return !step.line && !step.one &&
         (step.loop || step.op == ScalarOp::random || step.op == ScalarOp::gather);
}

std::vector<bool> BlockProgram::store_at(std::span<const ir::Store> stores) {
  std::vector<bool> stored;
  for (const ir::Store& store : stores) {
    const auto step = std::find_if(steps_.begin(), steps_.end(), [&](const Step& s) {
      return s.reg == same_[usize(store.value)];
    });
    bool here = step != steps_.end() && computes(*step) && step->store < 0;
    const auto reads_there = [&](Reg r) {
      if (r < 0) return false;
      // A gather may read any element of its space, depending on the ids.
      if (instr(r).op == ScalarOp::gather)
        return loads_[usize(instr(r).slot)].place.space == store.place.space;
      return instr(r).op == ScalarOp::load && reader(r).overlaps(store);
    };
    for (auto later = step; here && later != steps_.end(); ++later) {
      if (later != step)
        here = !reads_there(later->reg) && !reads_there(later->a.reg) &&
               !reads_there(later->b.reg) && !reads_there(later->c.reg);
    }
    if (here) {
      step->store = static_cast<int>(places_.size());
      places_.push_back(store.place);
    }
    stored.push_back(here);
  }
  return stored;
}

}  // namespace tensorgrad::cpu
