// Fuser: the state shared by the parts of fusing. Each part is one file of this folder: join,
// inline, merge, side_by_side, order. fuse.cpp calls them in turn. For use inside src/schedule
// only.
#pragma once

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/device_model.h"
#include "schedule/dependencies.h"
#include "schedule/fuse.h"
#include "schedule/operand.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

class Fuser {
 public:
  Fuser(const ir::Graph& graph, const ir::DeviceModel& model,
        const std::vector<std::string>& without)
      : graph_(graph), model_(model), on_(parts_without(without)) {}
  Fused run();

 private:
  struct Use {
    ir::NodeId reader = -1;
    std::size_t operand = 0;
  };

  static constexpr std::size_t kMostNodes = 96;  // per group, so that programs stay readable

  // join.cpp
  void place(ir::NodeId id);
  int start(ir::NodeId id);
  void join(ir::NodeId id, int g);
  bool may_join(ir::NodeId id, int g);
  bool joins_product(ir::NodeId id, int g);
  bool joins_lines(ir::NodeId id, int g);
  bool reduction_joins(ir::NodeId id, int g);

  // inline.cpp
  void find_numbers(const std::vector<bool>& live);
  void evict_kept_twice();
  bool is_kept_twice(ir::NodeId id, int g);
  void find_dependencies();
  ir::NodeId only_value_read_outside(int g) const;
  void inline_producers();
  bool takes_program(ir::NodeId reader, std::size_t index, const Group& from);
  // The readers outside of that group.
  std::vector<Use> uses_outside(ir::NodeId id, int own) const;

  // merge.cpp
  // The shape of two merged groups of rows, and whether the members of each become values per line.
  struct Merged {
    std::int64_t lines = 1, length = 1;
    bool reduces = false, a_lines = false, b_lines = false;
  };
  void merge_rows();
  bool merged_shape(const Group& a, const Group& b, Merged& out) const;
  bool plain_rows(const Group& g) const;
  bool edges_fit(int a, int b, const Merged& m) const;
  ir::NodeId final_reader(ir::NodeId id) const;
  bool reads(int b, int a) const;
  bool try_to_merge(int a, int b);
  // Groups that may merge even if neither reads the other.
  struct SingleValues {
    std::set<int> plain, reductions;
  };
  bool is_single_value(const Group& g) const;
  int next_to_merge(int a, int after, const std::set<int>& neighbours,
                    const SingleValues& singles) const;

  // side_by_side.cpp
  void merge_side_by_side();
  void ride_with_products();
  bool shares_operand(const Group& a, const Group& b) const;
  bool may_be_beside(const Group& g) const;
  bool same_lines(const Group& a, const Group& b) const;
  bool same_left(const Group& a, const Group& b) const;
  ir::NodeId first_product(const Group& g) const;
  std::vector<ir::NodeId> shared_bases(const Group& g) const;
  bool is_column_sum(const Group& g) const;
  ir::NodeId matching_product(const Group& g, ir::NodeId base, const ir::IndexMap& wanted) const;

  // order.cpp
  void order();
  void link_updates();
  void number_groups(const std::vector<std::vector<int>>& stages);
  bool is_small(const Group& g) const;

  // fuse.cpp
  void find_operands(const std::vector<bool>& live);
  void find_joined();
  bool reads_joined_part(const Operand& operand, int g) const;
  void absorb(int a, int b);
  Group& group(int g) { return out_.groups[usize(g)]; }
  std::int64_t count(ir::NodeId id) const { return counts_[usize(id)]; }
  // Whether the operand is the whole memory of its base, in order, with that many elements.
  bool alias(const Operand& operand, std::int64_t elements) const {
    return count(operand.base) == elements && operand.map.shape().count() == elements &&
           operand.map.is_contiguous();
  }

  // Visits the groups whose memory the operand reads.
  template <class F>
  void each_source(const Operand& operand, F f) const {
    if (out_.joined[usize(operand.base)]) {
      for (const ir::NodeId part : graph_[operand.base].inputs)
        f(out_.group[usize(base_of(graph_, part))]);
    } else {
      f(out_.group[usize(operand.base)]);
    }
  }

  const ir::Graph& graph_;
  const ir::DeviceModel& model_;
  const Parts on_;
  Fused out_;
  Dependencies dependencies_;
  std::vector<std::int64_t> counts_;            // elements of each node
  std::vector<std::vector<Operand>> operands_;  // of each node that computes a value
  std::vector<std::vector<Use>> users_;  // readers that compute a value, through views, in order
  std::vector<bool> held_;               // results of the graph
};

// Whether a value per line, seen through the map, is constant along each row.
bool spreads_lines(const ir::IndexMap& map, std::int64_t lines, std::int64_t length);

}  // namespace tensorgrad::schedule
