// Decides which pieces share a shader.
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "codegen/wgsl/emitters.h"
#include "codegen/wgsl/link.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

namespace {

using ir::Kernel;

constexpr std::int64_t kScratchAlignment = 64;  // elements

// Elements [begin, end) of a space.
struct Range {
  ir::Space space;
  std::int64_t begin, end;
  bool meets(const Range& other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
};

std::vector<Range> written(const Kernel& k) {
  std::vector<Range> out;
  ir::for_each_store(k, [&](const ir::Store& s) {
    out.push_back({s.place.space, s.place.offset, s.place.offset + s.elements});
  });
  return out;
}

bool reads(const Kernel& k, ir::Space space) {
  return std::any_of(k.loads.begin(), k.loads.end(), [&](const ir::Load& load) {
    return load.source == ir::Load::Source::memory && load.place.space == space;
  });
}

// Whether the second piece of a kernel reads the space. For a matmul, or for sums down columns, it
// reads only the inputs of the epilogue, not the operands.
bool reads_late(const Kernel& k, ir::Space space) {
  const auto reads_there = [&](const ir::ScalarProgram& program, bool lines) {
    return std::any_of(program.code.begin(), program.code.end(), [&](const ir::Instr& in) {
      if ((in.op != ir::ScalarOp::load && in.op != ir::ScalarOp::gather) || (lines && !in.line))
        return false;
      const ir::Load& load = k.loads[usize(in.slot)];
      return load.source == ir::Load::Source::memory && load.place.space == space;
    });
  };
  if (const auto* columns = k.get_if<ir::ColumnsKernel>())
    return reads_there(columns->program, true);
  const auto* const matmul = k.get_if<ir::MatmulKernel>();
  if (!matmul) return reads(k, space);
  return std::any_of(matmul->parts.begin(), matmul->parts.end(),
                     [&](const ir::MatmulPart& part) { return reads_there(part.epilogue, false); });
}

// One piece of a kernel to dispatch.
struct Item {
  const Kernel* kernel;
  std::size_t piece;
  std::int64_t scratch_at;
};

class Packer {
 public:
  Packer(std::span<const Kernel> kernels, const Target& target, bool guarded)
      : kernels_(kernels), target_(target), guarded_(guarded) {}

  std::vector<Shader> run() {
    for (auto first = kernels_.begin(); first != kernels_.end();) {
      const auto last = std::find_if(first + 1, kernels_.end(), [&](const Kernel& k) {
        return k.stage < 0 || k.stage != first->stage;
      });
      stage({first, last});
      first = last;
    }
    dispatch(std::exchange(late_, {}));
    return std::move(out_);
  }

 private:
  // The pieces of a kernel in a shader of their own.
  const std::vector<Piece>& alone(const Kernel& kernel) {
    const auto [found, is_new] = alone_.try_emplace(&kernel);
    if (is_new) found->second = emit_pieces({kernel, target_, guarded_, {}});
    return found->second;
  }

  void stage(std::span<const Kernel> kernels) {
    // Pieces left over from the previous stage join this one, unless it uses what they write.
    std::vector<Item> left;
    for (const Item& item : std::exchange(late_, {}))
      (std::any_of(kernels.begin(), kernels.end(), [&](const Kernel& k) { return meets(item, k); })
           ? left
           : late_)
          .push_back(item);
    dispatch(left);
    // Partial results are placed before or after those that late pieces still read.
    std::int64_t needed = 0, first = std::numeric_limits<std::int64_t>::max(), end = 0;
    for (const Kernel& kernel : kernels) needed += scratch_of(kernel);
    for (const Item& item : late_) {
      first = std::min(first, item.scratch_at);
      end = std::max(end, item.scratch_at + scratch_of(*item.kernel));
    }
    std::int64_t scratch = needed <= first ? 0 : end;

    std::vector<std::vector<Item>> turns;  // first pieces, second pieces
    for (const Kernel& kernel : kernels) {
      const std::size_t count = alone(kernel).size();
      turns.resize(std::max(turns.size(), count));
      for (std::size_t i = 0; i < count; ++i) turns[i].push_back({&kernel, i, scratch});
      scratch += scratch_of(kernel);
    }
    if (turns.empty()) return;
    turns[0].insert(turns[0].end(), late_.begin(), late_.end());
    late_.clear();
    dispatch(turns[0]);
    for (std::size_t i = 1; i < turns.size(); ++i) {
      const auto slides = [&](const Item& item) {
        return i + 1 == alone(*item.kernel).size() && may_wait(item);
      };
      std::copy_if(turns[i].begin(), turns[i].end(), std::back_inserter(late_), slides);
      std::erase_if(turns[i], slides);
      dispatch(turns[i]);
    }
  }

  std::int64_t scratch_of(const Kernel& kernel) {
    std::int64_t most = 0;
    for (const Piece& piece : alone(kernel)) most = std::max(most, piece.scratch_elements);
    return ceil_div(most, kScratchAlignment) * kScratchAlignment;
  }

  // Whether the item may run in a later stage. Pieces that use temporaries may not, because that
  // memory is reused; bad ids must be recorded before parameters change.
  bool may_wait(const Item& item) {
    const auto& memory = alone(*item.kernel)[item.piece].memory;
    return std::none_of(memory.begin(), memory.end(), [](const auto& entry) {
      if (entry.first == Region::faults && entry.second.writable) return true;
      return static_cast<int>(entry.first) < ir::kSpaces &&
             ir::is_arena(static_cast<ir::Space>(entry.first));
    });
  }

  // Whether the kernel accesses memory that a late item writes, or writes memory that it reads.
  bool meets(const Item& item, const Kernel& kernel) const {
    const std::vector<Range> own = written(*item.kernel);
    const auto any = [&own](auto holds) { return std::any_of(own.begin(), own.end(), holds); };
    for (const Range& theirs : written(kernel))
      if (any([&](const Range& r) { return r.meets(theirs); }) ||
          reads_late(*item.kernel, theirs.space))
        return true;
    return any([&](const Range& r) { return reads(kernel, r.space); });
  }

  // Dispatches the items in as few shaders as possible.
  void dispatch(const std::vector<Item>& items) {
    std::vector<Item> together;
    std::vector<Piece> linked;
    for (const Item& item : items) {
      together.push_back(item);
      std::vector<Piece> more = agreed(together);
      if (together.size() > 1 && !why_not(more, target_).empty()) {
        out_.push_back(link(linked, target_));
        together = {item};
        more = agreed(together);
      }
      linked = std::move(more);
    }
    if (!linked.empty()) out_.push_back(link(linked, target_));
  }

  // Emits the items' pieces with the same memory declarations and, where possible, the same
  // workgroup size.
  std::vector<Piece> agreed(const std::vector<Item>& items) {
    Terms terms;
    std::int64_t invocations = 0;
    for (const Item& item : items) {
      const Piece& piece = alone(*item.kernel)[item.piece];
      invocations = std::max(invocations, piece.invocations);
      terms.quads = terms.quads || piece.quads;
      add(terms.memory, piece.memory);
    }
    std::vector<Piece> out;
    for (const Item& item : items) {
      terms.scratch_at = item.scratch_at;
      if (items.size() == 1 && item.scratch_at == 0)
        out.push_back(alone(*item.kernel)[item.piece]);
      else
        out.push_back(
            emit_pieces({*item.kernel, target_, guarded_, terms, invocations})[item.piece]);
      if (out.back().scratch_elements) out.back().scratch_elements += item.scratch_at;
    }
    return out;
  }

  std::span<const Kernel> kernels_;
  const Target& target_;
  const bool guarded_;
  std::vector<Shader> out_;
  std::map<const Kernel*, std::vector<Piece>> alone_;
  std::vector<Item> late_;  // second pieces of the previous stage that nothing depends on yet
};

}  // namespace

std::vector<Shader> emit(std::span<const Kernel> kernels, const Target& target, bool guarded) {
  return Packer(kernels, target, guarded).run();
}

}  // namespace tensorgrad::wgsl
