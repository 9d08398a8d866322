#include "codegen/wgsl/link.h"

#include <algorithm>
#include <cctype>

#include "support/integers.h"
#include "tensorgrad/error.h"

namespace tensorgrad::wgsl {

namespace {

using Names = std::map<std::string, std::string>;

// The text with identifiers replaced.
std::string renamed(const std::string& text, const Names& names) {
  if (names.empty()) return text;
  std::string out;
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end == i) {
      out += text[i++];
      continue;
    }
    const std::string word = text.substr(i, end - i);
    const auto found = names.find(word);
    out += found == names.end() ? word : found->second;
    i = end;
  }
  return out;
}

// The name in "fn name(...".
std::string function_name(const std::string& text) { return text.substr(3, text.find('(') - 3); }

// The declarations of all pieces, and the new names of each piece's own declarations.
struct Declarations {
  std::map<std::string, WorkgroupArray> workgroup;
  std::vector<std::string> functions;
  std::vector<Names> names;

  explicit Declarations(std::span<const Piece> pieces) {
    Names common;  // text by name
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const Piece& piece = pieces[p];
      Names own;
      const auto rename = [&](const std::string& name) {
        own[name] = fmt::format("{}_in_{}", name, p);
      };
      for (const auto& [name, array] : piece.workgroup) {
        const auto [found, is_new] = workgroup.emplace(name, array);
        if (is_new) continue;
        if (found->second.type == array.type) {
          found->second.count = std::max(found->second.count, array.count);
        } else {
          rename(name);
          workgroup.emplace(own[name], array);
        }
      }
      for (const std::string& text : piece.own)
        if (p > 0) rename(function_name(text));
      std::vector<const std::string*> kept;
      for (const std::string& text : piece.common) {
        const auto [found, is_new] = common.emplace(function_name(text), text);
        if (!is_new && found->second == text) continue;
        if (!is_new) rename(function_name(text));
        kept.push_back(&text);
      }
      for (const std::string* text : kept) functions.push_back(renamed(*text, own));
      for (const std::string& text : piece.own) functions.push_back(renamed(text, own));
      names.push_back(std::move(own));
    }
  }
};

Memories all_memory(std::span<const Piece> pieces) {
  Memories out;
  for (const Piece& piece : pieces) add(out, piece.memory);
  return out;
}

}  // namespace

std::string why_not(std::span<const Piece> pieces, const Target& target) {
  const Memories memory = all_memory(pieces);
  std::int64_t bytes = 0, groups = 0;
  for (const auto& [name, array] : Declarations(pieces).workgroup) bytes += array.bytes();
  for (const Piece& piece : pieces) groups += piece.groups;
  for (const Piece& piece : pieces) {
    if (piece.invocations != pieces[0].invocations) return "workgroups differ in size";
    if (piece.quads != pieces[0].quads || piece.memory != memory)
      return "memory is seen in different ways";
  }
  if (static_cast<std::int64_t>(memory.size()) > target.bindings) return "too many bindings";
  if (bytes > target.workgroup_bytes) return "too much workgroup memory";
  if (groups > target.workgroups) return "too many workgroups";
  return "";
}

Shader link(std::span<const Piece> pieces, const Target& target) {
  const Memories memories = all_memory(pieces);
  if (static_cast<std::int64_t>(memories.size()) > target.bindings)
    throw DeviceError(
        fmt::format("webgpu: a kernel needs {} buffers at once, and the device allows {}: {}\n  "
                    "hint: a smaller batch, so that temporaries need fewer",
                    memories.size(), target.bindings, pieces[0].name));
  Shader out;
  std::int64_t groups = 0;
  for (const Piece& piece : pieces) {
    out.name += (out.name.empty() ? "" : " + ") + piece.name;
    out.scratch_elements = std::max(out.scratch_elements, piece.scratch_elements);
    groups += piece.groups;
  }
  // A row of workgroups up to the device limit; several rows when there are more.
  const std::int64_t x = std::min(groups, target.workgroups), y = ceil_div(groups, x);
  out.workgroups = {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), 1};

  std::string text;
  for (const Piece& piece : pieces) text += fmt::format("// {}\n", piece.name);
  const bool quads = pieces[0].quads;
  for (const auto& [region, memory] : memories) {
    const char* one = memory.dtypes.size() > 1               ? "u32"
                      : *memory.dtypes.begin() == DType::f32 ? "f32"
                                                             : "i32";
    std::string element = quads ? fmt::format("vec4<{}>", one) : one;
    if (region == Region::faults) element = memory.writable ? "atomic<i32>" : one;
    text +=
        fmt::format("@group(0) @binding({}) var<storage, {}> {}: array<{}>;\n", out.bindings.size(),
                    memory.writable ? "read_write" : "read", wgsl::name(region), element);
    out.bindings.push_back({region, memory.writable});
  }
  text += '\n';
  const Declarations declared(pieces);
  for (const auto& [name, array] : declared.workgroup)
    text += fmt::format("var<workgroup> {}: array<{}, {}>;\n", name, array.type, array.count);
  for (const std::string& function : declared.functions) text += function + "\n";
  for (std::size_t p = 0; p < pieces.size() && pieces.size() > 1; ++p)
    text += fmt::format("fn piece_{}(group: u32, thread: u32) {{\n{}}}\n", p,
                        renamed(pieces[p].body, declared.names[p]));
  text += fmt::format("@compute @workgroup_size({})\n", pieces[0].invocations);
  text +=
      "fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) "
      "thread: u32) {\n";
  text += y > 1 ? fmt::format("  let group = group_id.x + {}u * group_id.y;\n", x)
                : "  let group = group_id.x;\n";
  if (y > 1 && x * y != groups) text += fmt::format("  if (group >= {}u) {{ return; }}\n", groups);
  if (pieces.size() == 1) {
    text += pieces[0].body;
  } else {
    std::int64_t first = 0;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const std::string call = fmt::format("piece_{}({}, thread);", p,
                                           first ? fmt::format("group - {}u", first) : "group");
      first += pieces[p].groups;
      if (p + 1 == pieces.size())
        text += fmt::format(" else {{\n    {}\n  }}\n", call);
      else
        text += fmt::format("{}if (group < {}u) {{\n    {}\n  }}", p == 0 ? "  " : " else ", first,
                            call);
    }
  }
  out.wgsl = text + "}\n";
  return out;
}

}  // namespace tensorgrad::wgsl
