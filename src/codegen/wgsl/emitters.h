// One emitter per kind of kernel, one file each.
#pragma once

#include "codegen/wgsl/program.h"
#include "codegen/wgsl/shader.h"

namespace tensorgrad::wgsl {

struct Emitting {
  const ir::Kernel& kernel;
  const Target& target;
  bool guarded;  // kernels that write parameters or state check for faults first
  const Terms& terms;
  std::int64_t least_invocations = 64;  // per workgroup, unless the kernel chooses its own

  std::string title(const char* what = "") const;
  Source source(const char* what = "") const { return {title(what), target, terms}; }
};

// The pieces of a kernel, in execution order.
std::vector<Piece> emit_pieces(const Emitting& in);

std::vector<Piece> emit_core(const Emitting& in, const ir::RowsKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::ColumnsKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::ArgReduceKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::ScanKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::MatmulKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::SegmentSumKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::ScatterAddKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::AttentionKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::AttentionGradientKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::SelectiveScanKernel& k);
std::vector<Piece> emit_core(const Emitting& in, const ir::SelectiveScanGradientKernel& k);

// Notes the memory of stores, and of faults if the kernel is guarded.
void note_stores(Source& source, const std::vector<ir::Store>& stores, bool guarded);
// The condition for a store, besides that its element exists; empty means always.
std::string store_condition(const Source& source, const ir::Store& store, bool guarded);
// Stores one element under that condition. `address` counts from the start of its space.
void store_guarded(Source& source, const ir::Store& store, bool guarded, const std::string& address,
                   const std::string& value);

// Reduces the values of `threads` adjacent threads (a power of two) in a fixed order; all of them
// get the result. `lane` is the thread's index among them, `first` the index of the first thread.
class GroupReduction {
 public:
  GroupReduction(Source& source, std::int64_t invocations, std::int64_t threads, std::string lane,
                 std::string first)
      : source_(source),
        invocations_(invocations),
        threads_(threads),
        lane_(std::move(lane)),
        first_(std::move(first)) {}
  std::string join(ir::Combine combine, DType dtype, const std::string& value);

 private:
  Source& source_;
  std::int64_t invocations_, threads_;
  std::string lane_, first_;
  int turn_ = 0;
};

std::string identity_text(Source& source, ir::Combine combine, DType dtype);

}  // namespace tensorgrad::wgsl
