#include "schedule/layout.h"

#include "support/fail.h"

namespace tensorgrad::schedule {

const Layout::Entry* Layout::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::int64_t Layout::place(const std::string& name, const ir::Type& type) {
  if (const Entry* entry = find(name)) {
    if (!(entry->type == type))
      internal_error("{} is {} in one place and {} in another", name, entry->type.text(),
                     type.text());
    return entry->offset;
  }
  entries_.push_back({name, type, elements_});
  elements_ += aligned(type.shape.count());
  return entries_.back().offset;
}

}  // namespace tensorgrad::schedule
