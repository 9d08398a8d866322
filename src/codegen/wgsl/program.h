// Emits scalar programs as WGSL: one named value per instruction, scalar or vec4.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/wgsl/index.h"
#include "codegen/wgsl/source.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

class ProgramWriter {
 public:
  // The point of the iteration space that is computed.
  struct Point {
    std::string linear;  // index of the element, or of the quad where the width is 4; u32
    std::string line;    // index of the line, for per-line values
    int width = 1;
    // Alternative to `linear`: a position in [batch..., rows, columns], for matmul operands.
    std::string batch, row, column;
    bool is_matrix = false;
  };

  ProgramWriter(Source& source, const std::vector<ir::Load>& loads,
                const ir::ScalarProgram& program)
      : source_(source), loads_(loads), program_(program), values_(program.code.size()) {}

  // Notes the memory that the program reads.
  static void note(Source& source, const std::vector<ir::Load>& loads,
                   const ir::ScalarProgram& program);

  // Emits the instructions in [begin, end) that `wanted` selects.
  void write(const Point& point, const std::function<bool(std::size_t)>& wanted);
  void write(const Point& point) {
    write(point, [](std::size_t) { return true; });
  }

  // Sets a value computed outside: a matmul element, or the result of a reduction.
  void set(ir::Reg r, std::string text) { values_[usize(r)] = std::move(text); }
  const std::string& value(ir::Reg r) const { return values_[usize(r)]; }
  bool known(ir::Reg r) const { return !value(r).empty(); }
  // Drops per-element values before another pass; per-line values stay.
  void forget_elements();

  // The value broadcast to `width`: per-line values are the same for all elements.
  std::string as(ir::Reg r, int width) const;

 private:
  std::string load(const ir::Instr& in, const Point& point);
  std::string gather(const ir::Instr& in, const Point& point);
  std::string check(const std::string& id, const ir::Instr& in, int width);
  std::string compute(const ir::Instr& in, int width);

  Source& source_;
  const std::vector<ir::Load>& loads_;
  const ir::ScalarProgram& program_;
  std::vector<std::string> values_;
};

// The element of a load at that address: memory, a position or a constant; the fill value where a
// guard fails.
std::string read(Source& source, const ir::Load& load, const Address& address);

// Combines a with b.
std::string combined(Source& source, ir::Combine combine, DType dtype, int width,
                     const std::string& a, const std::string& b);
// Combines the four elements of a quad.
std::string combined_quad(Source& source, ir::Combine combine, DType dtype,
                          const std::string& quad);

}  // namespace tensorgrad::wgsl
