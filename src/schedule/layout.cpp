#include "schedule/layout.h"

namespace tensorgrad::schedule {

const Layout::Entry* Layout::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::int64_t Layout::place(const std::string& name, const ir::Type& type) {
  if (const Entry* entry = find(name)) return entry->offset;
  entries_.push_back({name, type, elements_});
  elements_ += aligned(type.shape.count());
  return entries_.back().offset;
}

}  // namespace tensorgrad::schedule
