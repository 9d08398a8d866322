// Equality and hash of attributes over their reflected fields, and the hash of a whole Graph. The
// hashes are the same on every machine: no pointers, no std::hash. Doubles are compared by their
// bits, so that NaN equals itself and 0 differs from -0.
#include <array>
#include <type_traits>

#include "ir/graph.h"
#include "ir/primitive.h"
#include "support/bits.h"
#include "tensorgrad/reflect.h"

namespace tensorgrad::ir {

namespace {

class Hash {
 public:
  void add(std::uint64_t value) {  // one step of splitmix64
    state_ += value + 0x9e3779b97f4a7c15u;
    state_ = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
    state_ = (state_ ^ (state_ >> 27)) * 0x94d049bb133111ebu;
    state_ ^= state_ >> 31;
  }
  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void add(T value) { add(static_cast<std::uint64_t>(value)); }
  void add(double value) { add(bits(value)); }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(const Shape& shape) {
    add(shape.rank());
    for (const std::int64_t size : shape) add(size);
  }
  template <class T>
  void add(const std::vector<T>& items) {
    add(items.size());
    for (const T& item : items) add(item);
  }
  void add(const Type& type) {
    add(type.dtype);
    add(type.shape);
  }

  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>)
    return bits(a) == bits(b);
  else
    return a == b;
}

}  // namespace

bool equal(const Attrs& a, const Attrs& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& own) {
        const auto& other = std::get<std::decay_t<decltype(own)>>(b);
        std::array<const void*, detail::kMaxFields> others{};
        std::size_t count = 0;
        for_each_field(other,
                       [&](std::string_view, const auto& field) { others[count++] = &field; });
        bool all = true;
        std::size_t i = 0;
        for_each_field(own, [&](std::string_view, const auto& field) {
          using Field = std::decay_t<decltype(field)>;
          all = all && same(field, *static_cast<const Field*>(others[i++]));
        });
        return all;
      },
      a);
}

std::uint64_t hash(const Attrs& attrs) {
  Hash hash;
  hash.add(attrs.index());
  std::visit(
      [&](const auto& own) {
        for_each_field(own, [&](std::string_view, const auto& field) { hash.add(field); });
      },
      attrs);
  return hash.value();
}

std::uint64_t structural_hash(const Graph& graph) {
  Hash hash;
  hash.add(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    hash.add(node.op->name);
    hash.add(node.inputs);
    hash.add(ir::hash(node.attrs));
    hash.add(node.type);
  }
  if (!graph.flat.empty()) hash.add(graph.flat.size());
  for (const FlatRange& range : graph.flat) {
    hash.add(range.parameter);
    hash.add(range.offset);
    hash.add(range.elements);
  }
  hash.add(graph.results.size());
  for (const Result& result : graph.results) {
    hash.add(result.kind);
    hash.add(result.name);
    hash.add(result.node);
  }
  return hash.value();
}

}  // namespace tensorgrad::ir
