// Text -> Graph. The type rules of the ops compute the types again. A type in the text is optional,
// but must agree if it is present. Blank lines and comments (# to the end of the line) are ignored.
// Malformed text is a UserError with the line number.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/check.h"
#include "ir/line.h"
#include "ir/primitive.h"
#include "ir/syntax.h"
#include "support/fail.h"
#include "tensorgrad/reflect.h"

namespace tensorgrad::ir {

namespace {

template <std::size_t... I>
Attrs default_attrs(std::size_t kind, std::index_sequence<I...>) {
  Attrs attrs;
  ((kind == I ? static_cast<void>(attrs.emplace<I>()) : static_cast<void>(0)), ...);
  return attrs;
}

// "{axis=1, start=2}", in any order, each field once.
template <class Own>
void read_fields(Line& line, const Primitive& op, Own& own) {
  std::vector<std::string_view> seen;
  const auto is_seen = [&](std::string_view name) {
    return std::find(seen.begin(), seen.end(), name) != seen.end();
  };
  if (line.accept('{')) {
    do {
      const std::string_view wanted = line.word("an attribute");
      if (is_seen(wanted)) line.fail("the attribute {} occurs twice", wanted);
      line.expect('=');
      for_each_field(own, [&](std::string_view name, auto& field) {
        if (name != wanted) return;
        line.read(field);
        seen.push_back(wanted);
      });
      if (!is_seen(wanted)) line.fail("{} has no attribute {}", op.name, wanted);
    } while (line.accept(','));
    line.expect('}');
  }
  for_each_field(own, [&](std::string_view name, const auto&) {
    if (!is_seen(name)) line.fail("{} needs the attribute {}", op.name, name);
  });
}

class Parser {
 public:
  explicit Parser(FindPrimitive find) : find_(find) {}

  void statement(Line& line) {
    if (line.peek('%'))
      node(line);
    else if (line.accept(kRangeWord))
      range(line);
    else
      result(line);
    line.expect_end();
  }
  Graph take() { return std::move(graph_); }

 private:
  NodeId id(Line& line) {
    line.expect('%');
    NodeId value = 0;
    line.read(value);
    return value;
  }
  NodeId defined_id(Line& line) {
    const NodeId value = id(line);
    if (value < 0 || value >= graph_.size()) line.fail("%{} is not defined above", value);
    return value;
  }

  void node(Line& line) {
    if (const NodeId own = id(line); own != graph_.size())
      line.fail("%{} is out of order: the next node is %{}", own, graph_.size());
    line.expect('=');
    const std::string_view name = line.word("an op");
    const Primitive* op = find_(name);
    if (!op) line.fail("no such op: {}", name);
    std::vector<NodeId> inputs;
    if (line.accept('(')) {
      do inputs.push_back(defined_id(line));
      while (line.accept(','));
      line.expect(')');
    }
    if (const std::string fault = arity_fault(*op, inputs.size()); !fault.empty())
      line.fail("{} {}", name, fault);
    Attrs attrs = default_attrs(op->attrs, std::make_index_sequence<std::variant_size_v<Attrs>>{});
    std::visit([&](auto& own) { read_fields(line, *op, own); }, attrs);
    append(line, *op, std::move(inputs), std::move(attrs));

    Node& made = graph_.nodes.back();
    if (line.accept(':')) {
      Type written;
      line.read(written.dtype);
      line.read(written.shape);
      if (written != made.type)
        line.fail("the type is {}, and by {}'s rule {}", written.text(), name, made.type.text());
    }
    if (line.accept('@')) made.site = graph_.intern(site(line));
    if (const std::string fault = checker_.node(graph_.size() - 1); !fault.empty())
      line.fail("{}", fault);
  }

  void append(const Line& line, const Primitive& op, std::vector<NodeId> inputs, Attrs attrs) {
    try {
      graph_.append(op, std::move(inputs), std::move(attrs));
    } catch (const BrokenRule& broken) {
      line.fail("{}", user_message(op.name, broken.rule, broken.hint, "", "", 0));
    } catch (const UserError& error) {
      line.fail("{}: {}", op.name, error.what());
    }
    const Type& type = graph_.nodes.back().type;
    if (too_large(type.shape)) line.fail("{}: {} is too large", op.name, type.text());
  }

  static CallSite site(Line& line) {
    CallSite site;
    line.read_bare(site.file);
    line.expect(':');
    line.read(site.line);
    if (line.accept("in")) line.read_bare(site.scope);
    if (line.accept("via")) line.read_bare(site.composite);
    return site;
  }

  void range(Line& line) {
    if (graph_.size() > 0) line.fail("ranges stand before the nodes");
    FlatRange range;
    line.read(range.parameter);
    line.expect('=');
    line.expect('[');
    line.read(range.offset);
    line.expect(',');
    line.read(range.elements);
    line.expect(']');
    if (const std::string fault = checker_.range(range); !fault.empty())
      line.fail("{} {}: {}", kRangeWord, quote(range.parameter), fault);
    graph_.flat.push_back(std::move(range));
  }

  void result(Line& line) {
    const std::string_view word = line.word("a node, a result or '}'");
    const auto kind = std::find(kResultWords.begin(), kResultWords.end(), word);
    if (kind == kResultWords.end())
      line.fail("{} is not a kind of result ({})", word, fmt::join(kResultWords, ", "));
    Result result;
    result.kind = static_cast<Result::Kind>(kind - kResultWords.begin());
    line.read(result.name);
    line.expect('=');
    result.node = defined_id(line);
    if (const std::string fault = checker_.result(result); !fault.empty())
      line.fail("{} {}: {}", word, quote(result.name), fault);
    graph_.results.push_back(std::move(result));
  }

  FindPrimitive find_;
  Graph graph_;
  Checker checker_{graph_};
};

}  // namespace

Graph parse(std::string_view text, FindPrimitive find) {
  enum class At { before, inside, after } at = At::before;
  Parser parser(find);
  int number = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, length), ++number);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.at_end()) continue;
    if (at == At::before) {
      if (!line.accept("graph")) line.fail_expected("\"graph {\"");
      line.expect('{');
      line.expect_end();
      at = At::inside;
    } else if (at == At::after) {
      line.fail_expected("nothing after the graph's '}'");
    } else if (line.accept('}')) {
      line.expect_end();
      at = At::after;
    } else {
      parser.statement(line);
    }
  }
  if (at == At::before) user_error("graph text, line {}: there is no graph", number);
  if (at == At::inside) user_error("graph text, line {}: the closing '}}' is missing", number);
  return parser.take();
}

}  // namespace tensorgrad::ir
