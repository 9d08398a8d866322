// Scalar programs as WGSL: one named value per instruction, for one element or for four at a time.
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
  // How the elements of the iteration space are found.
  struct Point {
    std::string linear;  // number of the element, or of the quad where the width is 4; u32
    std::string line;    // number of the line, for values per line
    int width = 1;
    // Instead of a number: a position in [batch..., rows, columns], for the operands of a product.
    std::string batch, row, column;
    bool is_matrix = false;
  };

  ProgramWriter(Source& source, const std::vector<ir::Load>& loads,
                const ir::ScalarProgram& program)
      : source_(source), loads_(loads), program_(program), values_(program.code.size()) {}

  // Notes the memory that the program reads.
  static void note(Source& source, const std::vector<ir::Load>& loads,
                   const ir::ScalarProgram& program);

  // Writes instructions [begin, end); `wanted` chooses among them.
  void write(const Point& point, const std::function<bool(std::size_t)>& wanted);
  void write(const Point& point) {
    write(point, [](std::size_t) { return true; });
  }

  // Given from outside: the product's element, the result of a reduction.
  void set(ir::Reg r, std::string text) { values_[usize(r)] = std::move(text); }
  const std::string& value(ir::Reg r) const { return values_[usize(r)]; }
  bool known(ir::Reg r) const { return !value(r).empty(); }
  // Values of elements are another pass's; values per line stay.
  void forget_elements();

  // The value as one of `width`: lines are the same for all elements.
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

// The element of a load at that address: memory, a position or a number; the fill where a guard
// fails.
std::string read(Source& source, const ir::Load& load, const Address& address);

// a joined with b.
std::string combined(Source& source, ir::Combine combine, DType dtype, int width,
                     const std::string& a, const std::string& b);
// The four elements of a quad joined.
std::string combined_quad(Source& source, ir::Combine combine, DType dtype,
                          const std::string& quad);

}  // namespace tensorgrad::wgsl
