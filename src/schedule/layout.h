// Layout: the offsets of named tensors in a space that outlives a run. Offsets are multiples of 64
// elements (256 bytes), the alignment that the strictest device requires for a binding.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

inline constexpr std::int64_t kAlignment = 64;

inline std::int64_t aligned(std::int64_t elements) { return round_up(elements, kAlignment); }

class Layout {
 public:
  struct Entry {
    std::string name;
    ir::Type type;
    std::int64_t offset = 0;
    bool flat = false;  // one element per element of the flat parameters
  };

  // Returns the offset of the tensor. Appends it if it is new.
  std::int64_t place(const std::string& name, const ir::Type& type) {
    return place(name, type, false);
  }
  std::int64_t place_flat(const std::string& name, const ir::Type& type) {
    return place(name, type, true);
  }
  const Entry* find(std::string_view name) const { return find(name, false); }
  const Entry* find_flat(std::string_view name) const { return find(name, true); }

  const std::vector<Entry>& entries() const { return entries_; }
  std::int64_t elements() const { return elements_; }

 private:
  std::int64_t place(const std::string& name, const ir::Type& type, bool flat);
  const Entry* find(std::string_view name, bool flat) const;

  std::vector<Entry> entries_;
  std::map<std::pair<bool, std::string>, std::size_t> index_;  // into entries_, by flat and name
  std::int64_t elements_ = 0;
};

}  // namespace tensorgrad::schedule
