// Layout: where named tensors lie in a space that outlives a run. Offsets are multiples of 64
// elements (256 bytes), what the strictest device asks of a binding.
#pragma once

#include <cstdint>
#include <string>
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
  };

  // The offset of that tensor, added at the end when it is new.
  std::int64_t place(const std::string& name, const ir::Type& type);
  const Entry* find(std::string_view name) const;

  const std::vector<Entry>& entries() const { return entries_; }
  std::int64_t elements() const { return elements_; }

 private:
  std::vector<Entry> entries_;
  std::int64_t elements_ = 0;
};

}  // namespace tensorgrad::schedule
