// Graph -> text, one line per node. The text is exact: the parser reads it back bit for bit. It
// also prints invalid graphs, because verify() shows the node that it reports.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/primitive.h"
#include "ir/syntax.h"
#include "support/bits.h"
#include "support/integers.h"
#include "tensorgrad/reflect.h"

namespace tensorgrad::ir {

namespace {

std::string text(bool value) { return value ? "true" : "false"; }
std::string text(int value) { return fmt::format("{}", value); }
std::string text(std::int64_t value) { return fmt::format("{}", value); }
std::string text(const std::string& value) { return quote(value); }
std::string text(DType value) { return name(value); }
std::string text(const Shape& value) { return value.text(); }
std::string text(const std::vector<int>& value) {
  return fmt::format("[{}]", fmt::join(value, ","));
}
std::string text(double value) {
  if (std::isnan(value) && bits(value) != kPlainNan) return fmt::format("nan({:x})", bits(value));
  return fmt::format("{}", value);  // the shortest text that parses to the same value
}

std::string bare_or_quoted(std::string_view text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), is_bare_char);
  return bare ? std::string(text) : quote(text);
}

// "  @ train.cpp:12 in l1 via mean"; empty for the unknown site.
std::string site_text(const CallSite& site) {
  if (site == CallSite{}) return "";
  std::string out = fmt::format("  @ {}:{}", bare_or_quoted(site.file), site.line);
  if (!site.scope.empty()) out += " in " + bare_or_quoted(site.scope);
  if (!site.composite.empty()) out += " via " + bare_or_quoted(site.composite);
  return out;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string print(const Attrs& attrs) {
  std::string out;
  std::visit(
      [&](const auto& own) {
        for_each_field(own, [&](std::string_view name, const auto& field) {
          out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name, text(field));
        });
      },
      attrs);
  return out.empty() ? "" : fmt::format("{{{}}}", out);
}

std::string print(const Result& result) {
  return fmt::format("{} {} = %{}", kResultWords[usize(result.kind)], quote(result.name),
                     result.node);
}

std::string print(const FlatRange& range) {
  return fmt::format("{} {} = [{},{}]", kRangeWord, quote(range.parameter), range.offset,
                     range.elements);
}

std::string print_node(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  std::string out = fmt::format("%{} = {}", id, node.op ? node.op->name : "?");
  if (!node.inputs.empty()) out += fmt::format("(%{})", fmt::join(node.inputs, ", %"));
  if (const std::string attrs = print(node.attrs); !attrs.empty()) out += ' ' + attrs;
  out += " : " + node.type.text();
  if (node.site >= 0 && usize(node.site) < graph.sites.size())
    out += site_text(graph.sites[usize(node.site)]);
  return out;
}

std::string print(const Graph& graph) {
  std::string out = "graph {\n";
  for (const FlatRange& range : graph.flat) out += "  " + print(range) + '\n';
  for (NodeId id = 0; id < graph.size(); ++id) out += "  " + print_node(graph, id) + '\n';
  for (const Result& result : graph.results) out += "  " + print(result) + '\n';
  return out + "}\n";
}

}  // namespace tensorgrad::ir
