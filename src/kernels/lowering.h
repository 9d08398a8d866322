// Lowering: the state while one step of a Plan becomes a Kernel. Used only by the files
// lower_*.cpp, one per group of kinds.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ir/kernel.h"
#include "ir/primitive.h"
#include "schedule/plan.h"

namespace tensorgrad::kernels {

// The change that a core makes to the map of an operand before its program reads it.
using Finish = std::function<ir::IndexMap(const ir::IndexMap&)>;

inline ir::IndexMap as_is(const ir::IndexMap& map) { return map; }

// The map with the axis moved to the end.
ir::IndexMap axis_last(const ir::IndexMap& map, int axis);

// Makes `value` the last register of the program.
void keep_last(ir::ScalarProgram& program, ir::Reg value);

class Lowering {
 public:
  Lowering(const schedule::Plan& plan, const schedule::Step& step)
      : plan_(plan), graph_(plan.graph), step_(step) {}

  ir::Kernel run();

 private:
  const Shape& shape_of(ir::NodeId id) const { return graph_[id].type.shape; }
  bool inlined(ir::NodeId id) const { return plan_.fused.inlined[usize(id)]; }

  // lower_operands.cpp: reading operands into a program, and stores.

  // Returns the value of an operand: a register of this program, an inlined node, or memory.
  ir::Reg value(ir::ScalarProgram& program, ir::NodeId id, const Finish& finish, bool line);
  std::vector<ir::Reg> values(ir::ScalarProgram& program, ir::NodeId id, bool line);  // operands
  ir::Reg visit(ir::ScalarProgram& program, ir::NodeId id, const Finish& finish, bool line);
  ir::Reg emit(ir::ScalarProgram& program, ir::NodeId id, const std::vector<ir::Reg>& regs,
               bool line);
  ir::IndexMap map_of(ir::NodeId id) const;
  ir::Load make_load(ir::NodeId id, ir::IndexMap map) const;
  ir::Reg load(ir::ScalarProgram& program, ir::NodeId id, const Finish& finish, bool line);
  int add(ir::Load made);
  ir::Load operand(ir::NodeId node, std::size_t i) const;
  ir::Store store_of(const schedule::Stored& stored, ir::Reg value) const;
  ir::Store only_store(ir::Reg value = 0) const;

  // lower_rows.cpp
  ir::RowsKernel rows();
  ir::ColumnsKernel columns();
  ir::RowsKernel copy();
  ir::Reg row_value(ir::ScalarProgram& p, ir::NodeId id);
  ir::Reg reduction(ir::ScalarProgram& p, ir::NodeId id, ir::Reg operand);
  void store_members(ir::LinesKernel& kernel);
  ir::Reg gather(ir::ScalarProgram& p, ir::NodeId id);
  ir::Reg take(ir::ScalarProgram& p, ir::NodeId id);
  ir::Reg indirect(ir::ScalarProgram& p, ir::NodeId id, ir::Load data, ir::Reg ids,
                   std::int64_t extent, std::int64_t stride);
  ir::Reg concat(ir::ScalarProgram& p, ir::NodeId id);

  // lower_matmul.cpp
  ir::MatmulKernel matmul();
  ir::MatmulPart part(ir::NodeId product);

  // lower_single.cpp
  ir::Kernel::Core single();
  ir::ArgReduceKernel arg_reduce(ir::NodeId id);
  ir::ScanKernel scan(ir::NodeId id);
  ir::SegmentSumKernel segment_sum(ir::NodeId id);
  ir::ScatterAddKernel scatter_add(ir::NodeId id);
  ir::ColumnsKernel fold(ir::NodeId id);

  // lower_sequence.cpp
  ir::AttentionShape attention_shape(ir::NodeId id, std::size_t operands) const;
  ir::AttentionKernel attention(ir::NodeId id);
  ir::AttentionGradientKernel attention_gradient(ir::NodeId id);
  ir::SelectiveScanShape selective_scan_shape(ir::NodeId id) const;
  ir::SelectiveScanKernel selective_scan(ir::NodeId id);
  ir::SelectiveScanGradientKernel selective_scan_gradient(ir::NodeId id);

  const schedule::Plan& plan_;
  const ir::Graph& graph_;
  const schedule::Step& step_;
  std::vector<ir::Load> loads_;
  std::map<ir::NodeId, ir::Reg> regs_;  // of the members computed so far, in the current program
  // Registers of the inlined nodes of the current operand, each seen through its views.
  std::map<std::pair<ir::NodeId, std::vector<ir::NodeId>>, ir::Reg> memo_;
  std::vector<ir::NodeId> views_;  // above the current node, the nearest last
};

}  // namespace tensorgrad::kernels
