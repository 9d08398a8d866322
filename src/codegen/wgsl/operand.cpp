#include "codegen/wgsl/operand.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::Reg;

namespace {

Reg last(const ir::ScalarProgram& program) { return static_cast<Reg>(program.code.size()) - 1; }

// The load, if the operand's program is a single load from memory; otherwise null.
const ir::Load* plain_load(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program) {
  if (program.code.size() != 1 || program.code[0].op != ir::ScalarOp::load) return nullptr;
  const ir::Load& load = loads[usize(program.code[0].slot)];
  return load.source == ir::Load::Source::memory && load.dtype == DType::f32 ? &load : nullptr;
}

// Whether the operand [rows, columns] is made of several adjacent matrices [columns, n], each
// transposed: four adjacent rows are then contiguous.
bool is_turned_in_pieces(const ir::Load& load, std::int64_t rows, std::int64_t columns) {
  const std::vector<ir::Layer>& layers = load.map.layers();
  if (layers.size() != 2 || !layers[0].guards.empty() || !layers[1].guards.empty()) return false;
  const ir::Layer outer = ir::coarsen(layers[0]), &inner = layers[1];
  const bool row_major = outer.shape == Shape{rows * columns} && outer.address.coef[0] == 1 &&
                         outer.address.offset == 0;
  if (!row_major || inner.shape.rank() != 3 || inner.shape[2] != columns || inner.shape[1] % 4 != 0)
    return false;
  const auto& coef = inner.address.coef;
  return coef[1] == 1 && coef[0] % 4 == 0 && coef[2] % 4 == 0 && coef[0] >= 0 && coef[2] >= 0 &&
         (inner.address.offset + load.place.offset) % 4 == 0;
}

}  // namespace

int Side::quad_axis() const {
  const ir::Load* load = plain_load(loads, program);
  if (!load) return -1;
  if (!load->map.is_strided()) return is_turned_in_pieces(*load, rows, columns) ? 0 : -1;
  const int rank = load->map.shape().rank();
  const ir::Affine& form = load->map.layers()[0].address;
  if ((form.offset + load->place.offset) % 4 != 0) return -1;
  for (const int axis : {rank - 1, rank - 2}) {
    if (load->map.stride(axis) != 1 || load->map.shape()[axis] % 4 != 0) continue;
    bool fits = true;
    for (int d = 0; d < rank; ++d)
      fits = fits && (d == axis || load->map.shape()[d] == 1 ||
                      (load->map.stride(d) % 4 == 0 && load->map.stride(d) >= 0));
    if (fits) return axis == rank - 1 ? 1 : 0;
  }
  return -1;
}

void Side::declare(Source& source) const {
  source.function(fmt::format("fn {}(batch: u32, row: u32, column: u32) -> f32", name), [&] {
    ProgramWriter writer(source, loads, program);
    writer.write({.linear = "",
                  .line = "0u",
                  .width = 1,
                  .batch = "batch",
                  .row = "row",
                  .column = "column",
                  .is_matrix = true});
    source.line("return {};", writer.value(last(program)));
  });
  if (quad_axis() < 0) return;
  const ir::Load& load = *plain_load(loads, program);
  source.function(
      fmt::format("fn {}_4(batch: u32, row: u32, column: u32) -> vec4<f32>", name), [&] {
        const Address at = address(source, load.map, "batch", "row", "column", load.place.offset);
        source.line("return {};", source.quad(region(load.place.space),
                                              fmt::format("({}) >> 2u", at.text), DType::f32));
      });
}

TileLoad::TileLoad(const ir::MatmulTiles& tiles, const Side& side, const char* tile, int X,
                   bool rows, const char* x0, std::int64_t limit)
    : side_(side),
      tile_(tile),
      x0_(x0),
      X_(X),
      TK_(tiles.TK),
      rows_(rows),
      threads_(tiles.threads()),
      limit_(limit),
      K_(rows ? side.columns : side.rows) {
  const int axis = side.quad_axis();
  turned_ = axis >= 0 && axis != (rows ? 0 : 1);  // contiguous along k: 4 x 4 blocks, transposed
  quads_ = axis >= 0;
  count_ = turned_ ? TK_ * X_ / 16 : TK_ * X_ / 4;
  turns_ = ceil_div(count_, threads_);
}

void TileLoad::declare(Source& source) const {
  for (std::int64_t i = 0; i < turns_ * (turned_ ? 4 : 1); ++i)
    source.line("var {} = vec4<f32>();", slot(i));
}

void TileLoad::fetch(Source& source, const std::string& k0) const {
  for (std::int64_t i = 0; i < turns_; ++i) {
    begin(source, i);
    const std::string q = at(i);
    if (turned_) {
      const std::string x = source.let(fmt::format("{} + 4u * ({})", x0_, turned_x(q)), "x");
      const std::string k = source.let(fmt::format("{} + 4u * ({})", k0, turned_k(q)), "k");
      for (int j = 0; j < 4; ++j)
        read(source, slot(4 * i + j), side_.name + std::string("_4"), fmt::format("{} + {}u", x, j),
             k, "vec4<f32>()");
    } else {
      const std::string x = source.let(fmt::format("{} + 4u * ({} % {}u)", x0_, q, X_ / 4), "x");
      const std::string k = source.let(fmt::format("{} + {} / {}u", k0, q, X_ / 4), "k");
      if (quads_)
        read(source, slot(i), side_.name + std::string("_4"), x, k, "vec4<f32>()");
      else
        for (int j = 0; j < 4; ++j)
          read(source, fmt::format("{}.{}", slot(i), "xyzw"[j]), side_.name,
               fmt::format("{} + {}u", x, j), k, "0.0f");
    }
    source.close();
  }
}

void TileLoad::stash(Source& source) const {
  for (std::int64_t i = 0; i < turns_; ++i) {
    begin(source, i);
    const std::string q = at(i);
    if (!turned_) source.line("{}[{}] = {};", tile_, q, slot(i));
    for (int j = 0; j < 4 && turned_; ++j)
      source.line(
          "{0}[(4u * ({1}) + {2}u) * {3}u + {4}] = vec4<f32>({5}.{9}, {6}.{9}, {7}.{9}, {8}.{9});",
          tile_, turned_k(q), j, X_ / 4, turned_x(q), slot(4 * i), slot(4 * i + 1), slot(4 * i + 2),
          slot(4 * i + 3), "xyzw"[j]);
    source.close();
  }
}

// In small tiles, eight adjacent threads take adjacent blocks along x, so that their writes are
// contiguous. In large tiles adjacent threads read along k instead, because memory reads matter
// more there.
std::string TileLoad::turned_x(const std::string& q) const {
  if (X_ == 32) return fmt::format("{} % 8u", q);
  return X_ == 64 ? fmt::format("{0} % 8u + 8u * ({0} / {1}u)", q, 2 * TK_)
                  : fmt::format("{} / {}u", q, TK_ / 4);
}
std::string TileLoad::turned_k(const std::string& q) const {
  if (X_ == 32) return fmt::format("{} / 8u", q);
  return X_ == 64 ? fmt::format("({} / 8u) % {}u", q, TK_ / 4)
                  : fmt::format("{} % {}u", q, TK_ / 4);
}
std::string TileLoad::slot(std::int64_t i) const {
  return fmt::format("{}_{}", rows_ ? "next_a" : "next_b", i);
}
std::string TileLoad::at(std::int64_t i) const {
  return i == 0 ? "thread" : fmt::format("(thread + {}u)", i * threads_);
}
void TileLoad::begin(Source& source, std::int64_t i) const {
  source.open((i + 1) * threads_ > count_ ? fmt::format("if ({} < {}u) {{", at(i), count_) : "{");
}

// Reads the value where it exists, zero elsewhere; never reads out of bounds.
void TileLoad::read(Source& source, const std::string& to, const std::string& function,
                    const std::string& x, const std::string& k, const char* zero) const {
  std::vector<std::string> holds;
  if (limit_ % X_ != 0) holds.push_back(fmt::format("{} < {}u", x, limit_));
  if (K_ % TK_ != 0) holds.push_back(fmt::format("{} < {}u", k, K_));
  const std::string value = rows_ ? fmt::format("{}(batch, {}, {})", function, x, k)
                                  : fmt::format("{}(batch, {}, {})", function, k, x);
  if (holds.empty())
    source.line("{} = {};", to, value);
  else
    source.line("if ({}) {{ {} = {}; }} else {{ {} = {}; }}", fmt::join(holds, " && "), to, value,
                to, zero);
}

}  // namespace tensorgrad::wgsl
