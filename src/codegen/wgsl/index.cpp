#include "codegen/wgsl/index.h"

#include <algorithm>

#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::Affine;
using ir::Layer;

namespace {

// Converts a row-major index to positions along each axis; computes only those that are used.
class Positions {
 public:
  Positions(Source& source, const Shape& shape, std::string linear)
      : source_(source), shape_(shape), linear_(std::move(linear)), given_(usize(shape.rank())) {}
  // Sets a known position; the index then covers the axes before it.
  void set(int axis, const std::string& text) {
    given_[usize(axis)] = text, last_ = std::min(last_, axis);
  }

  std::string operator[](int axis) const {
    const std::string& given = given_[usize(axis)];
    if (!given.empty()) return given;
    const int end = std::min(shape_.rank(), last_);
    std::int64_t below = 1;
    for (int d = axis + 1; d < end; ++d) below *= shape_[d];
    bool first = true;
    for (int d = 0; d < axis; ++d) first = first && shape_[d] == 1;
    std::string text = linear_;
    if (below > 1) text = source_.let(fmt::format("{} / {}u", text, below), "q");
    if (!first) text = source_.let(fmt::format("{} % {}u", text, shape_[axis]), "p");
    return text;
  }

 private:
  Source& source_;
  const Shape& shape_;
  std::string linear_;
  std::vector<std::string> given_;
  int last_ = 1 << 20;
};

bool never_negative(const Affine& form, int rank) {
  return form.offset >= 0 && std::all_of(form.coef.begin(), form.coef.begin() + rank,
                                         [](std::int64_t c) { return c >= 0; });
}

// The value of an affine form: u32 where it cannot be negative, else i32.
std::string form_text(Source& source, const Affine& form, const Shape& shape, const Positions& at,
                      bool is_signed, std::int64_t more) {
  std::vector<std::string> terms;
  for (int d = 0; d < shape.rank(); ++d) {
    const std::int64_t c = form.coef[usize(d)];
    if (c == 0 || shape[d] == 1) continue;
    const std::string p = is_signed ? fmt::format("i32({})", at[d]) : at[d];
    terms.push_back(c == 1 ? p : fmt::format("{} * {}{}", p, c, is_signed ? "" : "u"));
  }
  const std::int64_t constant = form.offset + more;
  if (constant != 0 || terms.empty())
    terms.push_back(fmt::format("{}{}", constant, is_signed ? "" : "u"));
  std::string text = fmt::format("{}", fmt::join(terms, " + "));
  return terms.size() == 1 ? text : source.let(text, is_signed ? "s" : "i");
}

Address layer_address(Source& source, const Layer& layer, const Positions& at,
                      std::int64_t offset) {
  Address out;
  const int rank = layer.shape.rank();
  for (const ir::Guard& guard : layer.guards) {
    const bool is_signed = !never_negative(guard.form, rank);
    const std::string form =
        source.let(form_text(source, guard.form, layer.shape, at, is_signed, 0), "g");
    out.guards.push_back({is_signed ? fmt::format("({0} >= 0 && {0} < {1})", form, guard.extent)
                                    : fmt::format("({} < {}u)", form, guard.extent),
                          guard.fill});
  }
  const bool is_signed = !never_negative(layer.address, rank);
  if (!is_signed && out.guards.empty()) {
    out.text = form_text(source, layer.address, layer.shape, at, false, offset);
    return out;
  }
  // The address is in range only where all guards hold.
  const std::string raw = form_text(source, layer.address, layer.shape, at, is_signed, 0);
  // Through a name: WGSL rejects a negative literal here.
  std::string safe = is_signed ? fmt::format("u32({})", source.let(raw, "s")) : raw;
  for (const Address::Guard& guard : out.guards)
    safe = fmt::format("select(0u, {}, {})", safe, guard.holds);
  out.text = source.let(offset ? fmt::format("{} + {}u", safe, offset) : safe, "i");
  return out;
}

// Each later layer takes the index that the previous one produced.
Address through(Source& source, const ir::IndexMap& map, Address first, std::int64_t offset) {
  for (std::size_t l = 1; l < map.layers().size(); ++l) {
    const bool last = l + 1 == map.layers().size();
    const Layer coarse = ir::coarsen(map.layers()[l]);
    Address next =
        layer_address(source, coarse, Positions(source, coarse.shape, source.let(first.text, "n")),
                      last ? offset : 0);
    first.text = next.text;
    first.guards.insert(first.guards.end(), next.guards.begin(), next.guards.end());
  }
  return first;
}

}  // namespace

Address address(Source& source, const ir::IndexMap& map, const std::string& linear,
                std::int64_t offset) {
  const Layer coarse = ir::coarsen(map.layers()[0]);
  const std::int64_t first_offset = map.layers().size() == 1 ? offset : 0;
  return through(
      source, map,
      layer_address(source, coarse, Positions(source, coarse.shape, linear), first_offset), offset);
}

Address address(Source& source, const ir::IndexMap& map, const std::string& batch,
                const std::string& row, const std::string& column, std::int64_t offset) {
  const Layer& layer = map.layers()[0];
  const int rank = layer.shape.rank();
  Positions at(source, layer.shape, batch);
  at.set(rank - 2, row);
  at.set(rank - 1, column);
  return through(source, map,
                 layer_address(source, layer, at, map.layers().size() == 1 ? offset : 0), offset);
}

std::optional<QuadMap> quad_map(const ir::IndexMap& map, std::int64_t offset) {
  if (!map.is_strided()) return {};
  QuadMap out{ir::coarsen(map.layers()[0]), 0};
  Layer& layer = out.layer;
  const int rank = layer.shape.rank();
  if (rank == 0) {
    layer.address.offset += offset;
    return out;
  }
  const auto inner = usize(rank - 1);
  auto& coef = layer.address.coef;
  if (layer.shape[rank - 1] % 4 != 0) {
    // A constant map is also constant in quads.
    if (!std::all_of(coef.begin(), coef.begin() + rank, [](std::int64_t c) { return c == 0; }))
      return {};
    layer = {Shape{}, {{}, layer.address.offset + offset}, {}};
    return out;
  }
  if (std::any_of(coef.begin(), coef.begin() + rank, [](std::int64_t c) { return c < 0; }) ||
      layer.address.offset < 0)
    return {};
  layer.shape[rank - 1] /= 4;
  layer.address.offset += offset;
  if (coef[inner] == 0) return out;
  if (coef[inner] != 1 || layer.address.offset % 4 != 0) return {};
  for (std::size_t d = 0; d < inner; ++d) {
    if (coef[d] % 4 != 0) return {};
    coef[d] /= 4;
  }
  layer.address.offset /= 4;
  out.step = 1;
  return out;
}

std::string quad_address(Source& source, const QuadMap& map, const std::string& linear) {
  return form_text(source, map.layer.address, map.layer.shape,
                   Positions(source, map.layer.shape, linear), false, 0);
}

}  // namespace tensorgrad::wgsl
