// Source: the text of one piece of a shader while it is written. It knows which memory is bound and
// as what, and gives equal expressions one name.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/wgsl/shader.h"

namespace tensorgrad::wgsl {

// What a piece does with a region.
struct Memory {
  std::set<DType> dtypes;
  bool writable = false;
  friend bool operator==(const Memory&, const Memory&) = default;
};
using Memories = std::map<Region, Memory>;
void add(Memories& to, const Memories& more);

// An array that the threads of a workgroup share.
struct WorkgroupArray {
  std::string type;
  std::int64_t count = 0;
  std::int64_t bytes() const { return count * (type.starts_with("vec4") ? 16 : 4); }
};

// A shader before it is linked with others, or alone.
struct Piece {
  std::string name;
  Memories memory;
  bool quads = false;
  std::map<std::string, WorkgroupArray> workgroup;
  std::vector<std::string> common;  // functions that mean the same wherever they stand
  std::vector<std::string> own;     // functions of this piece
  std::string body;                 // reads `group` and `thread`
  std::int64_t invocations = 0, groups = 0, scratch_elements = 0;
};

// What a piece has to agree on with those that it is linked with.
struct Terms {
  Memories memory;
  bool quads = false;
  std::int64_t scratch_at =
      0;  // where its part of that region begins, in elements; a multiple of 4
};

// Memory in shaders is declared as vectors of four where `quads` is set; single elements are
// reached through them all the same.
class Source {
 public:
  Source(std::string name, const Target& target, const Terms& terms)
      : name_(std::move(name)),
        target_(target),
        memory_(terms.memory),
        quads_(terms.quads),
        scratch_at_(terms.scratch_at) {}

  const Target& target() const { return target_; }

  // ---- memory. All places of a region that a shader touches must be noted before the first
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

  // ---- bad ids. Only the first is noted, by whoever comes first.
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
  void open(const std::string& head);  // "if (x) {": what follows is inside
  void close(const std::string& tail = "");
  // The name of a constant with this value, made at its first use in the current block or one
  // around it.
  std::string let(const std::string& expression, const char* hint = "x");
  // A name that was not given before.
  std::string fresh(const char* hint) { return fmt::format("{}_{}", hint, names_++); }

  // A function that means the same in all shaders; each text once.
  void declare(const std::string& text);
  // var<workgroup> name: array<type, count>
  void workgroup(const std::string& name, const std::string& type, std::int64_t count) {
    workgroup_[name] = {type, count};
  }
  // Declares a function whose lines `write` writes: "fn name(a: u32)".
  template <class F>
  void function(const std::string& head, F write) {
    std::string body = std::exchange(body_, "");
    auto known = std::exchange(known_, {{}});
    write();
    const std::string text = head + " {\n" + std::exchange(body_, std::move(body)) + "}";
    known_ = std::move(known);
    own_.push_back(text);
  }

  // That many workgroups, numbered by `group`.
  Piece finish(std::int64_t invocations, std::int64_t groups, std::int64_t scratch_elements = 0);

 private:
  bool typed(Region region) const;  // declared with the type of its only elements
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

// The type of a value in a shader.
std::string type_name(DType dtype, int width);
// A number as text of that type.
std::string number(double value, DType dtype, int width = 1);
std::string u32_text(std::int64_t value);
// "at + 12u"; `at` alone for 0.
std::string moved(const std::string& at, std::int64_t offset);

inline Region region(ir::Space space) { return static_cast<Region>(space); }
}  // namespace tensorgrad::wgsl
