// Running a BlockProgram.
#include <algorithm>

#include "codegen/cpu/block_program.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

using ir::Instr;
using ir::Reg;
using ir::ScalarOp;

namespace {

const std::int32_t* ints(const float* block) {
  return reinterpret_cast<const std::int32_t*>(block);
}

void check(std::int32_t id, const Instr& in) {
  if (id < 0 || id >= in.extent) throw IndexError{id, in.extent, in.node};
}

}  // namespace

void BlockProgram::prepare(const Memory& memory, float* scratch) const {
  for (const Reg r : rows_) {
    float* const to = scratch + slot_[usize(r)] * capacity_;
    const float* from = reader(r).read(memory, 0, static_cast<int>(length_), to);
    if (from != to) std::copy_n(from, length_, to);
  }
}

const float* const* BlockProgram::run(const Memory& memory, const Block& block, float* scratch,
                                      Part part, const Given& given) const {
  thread_local std::vector<const float*> values;
  values.resize(std::max(values.size(), code_.size()));
  for (const Reg r : fixed_) values[usize(r)] = constants_[usize(r)].data();
  for (const Reg r : rows_) values[usize(r)] = scratch + slot_[usize(r)] * capacity_;
  for (const Step& step : steps_) {
    if (part == Part::elements && step.line) continue;
    if (part == Part::lines && !step.line) continue;
    float* out = scratch + slot_[usize(step.reg)] * capacity_;
    if (step.store >= 0 && part == Part::all)
      out = memory.at(places_[usize(step.store)]) + block.begin;
    const float*& value = values[usize(step.reg)];
    value = out;
    const std::int64_t begin = step.line ? block.first_line : block.begin;
    const int all = step.line ? block.lines : block.n;
    const int n = step.one ? std::min(all, 1) : all;
    switch (step.op) {
      case ScalarOp::load:
        value = reader(step.reg).read(memory, begin, n, out);
        break;
      case ScalarOp::accumulator:
        value = given.accumulator;
        break;
      case ScalarOp::reduce:
        if (part == Part::lines)
          value = given.reductions[step.reg];
        else
          reduce(step, values[usize(step.a.reg)], block.lines, out);
        break;
      case ScalarOp::spread: {
        const float* from = values[usize(step.a.reg)];
        if (step.one)
          std::copy_n(from, n, out);  // filled below, if needed as an array
        else
          for (int l = 0; l < block.lines; ++l) std::fill_n(out + l * length_, length_, from[l]);
        break;
      }
      case ScalarOp::gather:
        gather(memory, instr(step.reg), begin, n, values[usize(step.a.reg)], out);
        break;
      case ScalarOp::random:
        random_loop(values[usize(step.a.reg)], values[usize(step.b.reg)], values[usize(step.c.reg)],
                    instr(step.reg).site, out, n);
        break;
      case ScalarOp::check_index: {
        const float* ids = values[usize(step.a.reg)];
        for (int i = 0; i < n; ++i) check(ints(ids)[i], instr(step.reg));
        std::copy_n(ids, n, out);
        break;
      }
      default:
        if (n > 0) stretch(step, values.data(), block, n, out);
    }
    if (step.filled) {
      if (all > 0 && value != out) out[0] = value[0];
      std::fill_n(out + 1, std::max(0, all - 1), out[0]);
      value = out;
    }
  }
  for (const Reg r : twins_) values[usize(r)] = values[usize(same_[usize(r)])];
  return values.data();
}

// Runs one loop, over all elements at once or line by line.
void BlockProgram::stretch(const Step& step, const float* const* values, const Block& block, int n,
                           float* out) const {
  const auto value = [&](const Operand& o) { return o.reg < 0 ? nullptr : values[o.reg]; };
  if (!step.one && step.op == ScalarOp::select && step.a.mode == Mode::one) {
    const Operand& chosen = *ints(value(step.a)) ? step.b : step.c;
    if (chosen.mode == Mode::one)
      std::fill_n(out, n, *value(chosen));
    else if (value(chosen) != out)
      std::copy_n(value(chosen), n, out);
    return;
  }
  Stretch s{.a = value(step.a),
            .b = value(step.b),
            .c = value(step.c),
            .out = out,
            .lines = 1,
            .length = n};
  if (step.nested) {
    const auto by = [&](const Operand& o) {
      return o.mode == Mode::each   ? length_
             : o.mode == Mode::line ? std::int64_t{1}
                                    : std::int64_t{0};
    };
    s.lines = block.lines, s.length = length_;
    s.a_step = by(step.a), s.b_step = by(step.b), s.c_step = by(step.c);
  }
  step.loop(s);
}

void BlockProgram::reduce(const Step& step, const float* a, int lines, float* out) const {
  constexpr int kLines = 64;
  double folded[kLines];
  for (int l = 0; l < lines; l += kLines) {
    const int n = std::min(kLines, lines - l);
    step.fold(a + l * length_, n, length_, folded);
    for (int i = 0; i < n; ++i) out[l + i] = element(folded[i], instr(step.reg).dtype);
  }
}

// Ids are often constant along a run: then its elements are copied in one go.
void BlockProgram::gather(const Memory& memory, const Instr& in, std::int64_t begin, int n,
                          const float* ids, float* out) const {
  const float* const base = memory.at(loads_[usize(in.slot)].place);
  const std::int32_t* id = ints(ids);
  readers_[usize(in.slot)].each_run(begin, n,
                                    [&](std::int64_t address, std::int64_t stride, int run) {
                                      for (int i = 0, end = 0; i < run; i = end) {
                                        for (end = i + 1; end < run && id[end] == id[i];) ++end;
                                        check(id[i], in);
                                        const float* from = base + address + id[i] * in.stride;
                                        if (stride == 1)
                                          std::copy(from + i, from + end, out + i);
                                        else
                                          for (int j = i; j < end; ++j) out[j] = from[j * stride];
                                      }
                                      id += run, out += run;
                                    });
}

}  // namespace tensorgrad::cpu
