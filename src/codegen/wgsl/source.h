// Source: builds the text of one piece of a shader. It tracks which memory is bound and with which
// type, and gives equal expressions one name.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/wgsl/shader.h"

namespace tensorgrad::wgsl {

// How a piece uses a region.
struct Memory {
  std::set<DType> dtypes;
  bool writable = false;
  bool operator==(const Memory&) const = default;
};
using Memories = std::map<Region, Memory>;
void add(Memories& to, const Memories& more);

// An array in workgroup memory.
struct WorkgroupArray {
  std::string type;
  std::int64_t count = 0;
  std::int64_t bytes() const { return count * (type.starts_with("vec4") ? 16 : 4); }
};

// A shader before linking.
struct Piece {
  std::string name;
  Memories memory;
  bool quads = false;
  std::map<std::string, WorkgroupArray> workgroup;
  std::vector<std::string> common;  // functions that are identical in all pieces
  std::vector<std::string> own;     // functions private to this piece
  std::string body;                 // reads `group` and `thread`
  std::int64_t invocations = 0, groups = 0, scratch_elements = 0;
};

// Properties that linked pieces must agree on.
struct Terms {
  Memories memory;
  bool quads = false;
  std::int64_t scratch_at = 0;  // start of its part of that region, in elements; a multiple of 4
};

// Memory is declared as vec4 where `quads` is set; single elements are then accessed as components.
class Source {
 public:
  Source(std::string name, const Target& target, const Terms& terms)
      : name_(std::move(name)),
        target_(target),
        memory_(terms.memory),
        quads_(terms.quads),
        scratch_at_(terms.scratch_at) {}

  const Target& target() const { return target_; }

  // ---- memory. All places of a region that a shader accesses must be noted before the first
  // access.
  void note(Region region, DType dtype, bool writes);
  void use_quads() { quads_ = true; }
  bool quads() const { return quads_; }

  // Element `address` (u32) of a region.
  std::string element(Region region, const std::string& address, DType dtype) const;
  // Elements 4 * `quad` .. + 3.
  std::string quad(Region region, const std::string& quad, DType dtype) const;
  void store_element(Region region, const std::string& address, DType dtype,
                     const std::string& value);
  void store_quad(Region region, const std::string& quad, DType dtype, const std::string& value);

  // ---- bad ids. Only the first one is recorded; threads race for it.
  std::string no_fault() const {
    return memory_.at(Region::faults).writable ? "atomicLoad(&faults[0]) == 0" : "faults[0] == 0";
  }
  std::int32_t fault_code(ir::NodeId node) const { return (target_.tag << 24) + node + 1; }
  void declare_fault_note() {
    declare(
        "fn note_fault(node: i32, id: i32) {\n  if (atomicCompareExchangeWeak(&faults[0], 0, "
        "node).exchanged) { atomicStore(&faults[1], id); }\n}");
  }

  // ---- lines
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    add_line(fmt::format(format, std::forward<Args>(args)...));
  }
  void open(const std::string& head);  // "if (x) {": opens a block
  void close(const std::string& tail = "");
  // The name of a constant with this value. It is declared at its first use in the current block or
  // an enclosing one.
  std::string let(const std::string& expression, const char* hint = "x");
  // A new unique name.
  std::string fresh(const char* hint) { return fmt::format("{}_{}", hint, names_++); }

  // Declares a function that is identical in all shaders; each text appears once.
  void declare(const std::string& text);
  // var<workgroup> name: array<type, count>
  void workgroup(const std::string& name, const std::string& type, std::int64_t count) {
    workgroup_[name] = {type, count};
  }
  // Declares a function whose body `write` emits: "fn name(a: u32)".
  template <class F>
  void function(const std::string& head, F write) {
    std::string body = std::exchange(body_, "");
    auto known = std::exchange(known_, {{}});
    write();
    const std::string text = head + " {\n" + std::exchange(body_, std::move(body)) + "}";
    known_ = std::move(known);
    own_.push_back(text);
  }

  // Finishes the piece: that many workgroups, indexed by `group`.
  Piece finish(std::int64_t invocations, std::int64_t groups, std::int64_t scratch_elements = 0);

 private:
  bool typed(Region region) const;  // declared with its only element type
  std::string placed(Region region, const std::string& address, int width) const;
  void add_line(const std::string& text);

  std::string name_;
  const Target& target_;
  Memories memory_;
  bool quads_ = false;
  std::int64_t scratch_at_ = 0;
  std::string body_;
  std::vector<std::map<std::string, std::string>> known_{
      {}};  // names by expression, per open block
  std::vector<std::string> common_, own_;
  std::map<std::string, WorkgroupArray> workgroup_;
  int names_ = 0;
};

// The WGSL type of a value.
std::string type_name(DType dtype, int width);
// A scalar literal of that type.
std::string number(double value, DType dtype, int width = 1);
std::string u32_text(std::int64_t value);
// "at + 12u"; `at` alone for 0.
std::string moved(const std::string& at, std::int64_t offset);

inline Region region(ir::Space space) { return static_cast<Region>(space); }
}  // namespace tensorgrad::wgsl
