// The operands of a matmul: how their elements are read, and how a tile is loaded into workgroup
// memory.
#pragma once

#include <string>

#include "codegen/wgsl/program.h"
#include "ir/variants.h"

namespace tensorgrad::wgsl {

// An operand [batch..., rows, columns].
struct Side {
  const std::vector<ir::Load>& loads;
  const ir::ScalarProgram& program;
  const char* name;
  std::int64_t rows, columns;

  // The axis along which four consecutive elements can be read at once; -1 if none.
  int quad_axis() const;
  // Declares fn NAME(batch, row, column) -> f32, and NAME_4 for four consecutive elements, if they
  // can be read at once.
  void declare(Source& source) const;
};

// Loads a tile: tile[k, x / 4] = the operand's elements at x0 + x and k0 + k; zero outside. `rows`:
// x runs over rows. Works in two halves: from memory into registers, then from registers into the
// tile.
class TileLoad {
 public:
  // x is below `limit`; a tile has X of them.
  TileLoad(const ir::MatmulTiles& tiles, const Side& side, const char* tile, int X, bool rows,
           const char* x0, std::int64_t limit);
  void declare(Source& source) const;
  void fetch(Source& source, const std::string& k0) const;
  void stash(Source& source) const;

 private:
  std::string turned_x(const std::string& q) const;
  std::string turned_k(const std::string& q) const;
  std::string slot(std::int64_t i) const;
  std::string at(std::int64_t i) const;
  void begin(Source& source, std::int64_t i) const;
  void read(Source& source, const std::string& to, const std::string& function,
            const std::string& x, const std::string& k, const char* zero) const;

  const Side side_;
  const char *tile_, *x0_;
  int X_, TK_;
  bool rows_, turned_ = false, quads_ = false;
  std::int64_t threads_, limit_, K_, count_ = 0, turns_ = 0;
};

}  // namespace tensorgrad::wgsl
