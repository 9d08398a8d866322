#include "schedule/layout.h"

#include "support/fail.h"

namespace tensorgrad::schedule {

const Layout::Entry* Layout::find(std::string_view name, bool flat) const {
  const auto known = index_.find({flat, std::string(name)});
  return known == index_.end() ? nullptr : &entries_[known->second];
}

std::int64_t Layout::place(const std::string& name, const ir::Type& type, bool flat) {
  if (const Entry* entry = find(name, flat)) {
    if (!(entry->type == type))
      internal_error("{} has two types: {} and {}", name, entry->type.text(), type.text());
    return entry->offset;
  }
  index_.emplace(std::pair(flat, name), entries_.size());
  entries_.push_back({name, type, elements_, flat});
  elements_ += aligned(type.shape.count());
  return entries_.back().offset;
}

}  // namespace tensorgrad::schedule
