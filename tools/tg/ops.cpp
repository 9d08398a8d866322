#include "ops.h"

#include <algorithm>

#include "c/registry_json.h"
#include "command.h"
#include "nn/registry.h"
#include "support/text.h"

namespace tensorgrad::tool {

namespace {

struct OpsOptions {
  std::string filter;
  bool json = false, markdown = false, primitives = false;
};

// Lines of at most 100 columns; all but the first are indented.
std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  std::string out;
  std::size_t column = indent;
  for (const std::string& word : split(std::string(text), ' ')) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) out += ' ', ++column;
    out += word;
    column += word.size();
  }
  return out;
}

// The sentence beside the signature, or below if that is long.
void print_row(const std::string& signature, std::string_view sentence) {
  constexpr std::size_t kIndent = 40;
  if (signature.size() + 4 > kIndent)
    print_out("  {}\n{:{}}{}\n", signature, "", kIndent, wrapped(sentence, kIndent));
  else
    print_out("  {:<{}}{}\n", signature, kIndent - 2, wrapped(sentence, kIndent));
}

// For a filter: also the types of the parameters.
void print_details(std::string_view sentence, std::span<const ops::Parameter> parameters) {
  print_out("  {}\n", wrapped(sentence, 2));
  for (const ops::Parameter& parameter : parameters) print_out("    {}\n", text(parameter));
}

std::string signature_of(const nn::PublicLayer& layer) {
  return ops::signature(layer.name, layer.parameters()) + ops::signature("", layer.inputs());
}

void print_record(const char* what, std::string_view name, const std::string& signature,
                  const std::string& record) {
  Json line{{what, name}, {"signature", signature}};
  line.update(Json::parse(record));
  line.erase("name");
  print_json(line);
}

bool wanted(const OpsOptions& options, std::string_view name) {
  return options.filter.empty() || matches(options.filter, name);
}

// Lists the ops of a family. Returns how many there are.
std::size_t list_family(const OpsOptions& options, const ops::PublicFamily& family) {
  std::size_t count = 0;
  for (const ops::PublicOp& op : family.ops) {
    if (!wanted(options, op.name)) continue;
    const std::string call = ops::signature(op.name, op.parameters());
    if (options.json) {
      JsonText record;
      c::write(record, family, op);
      print_record("op", op.name, call, record.text());
    } else if (!options.filter.empty()) {
      print_out("{}\n", call);
      print_details(op.sentence, op.parameters());
    } else {
      if (count == 0) print_out("{}\n", family.title);
      print_row(call, op.sentence);
    }
    ++count;
  }
  return count;
}

std::size_t list_layers(const OpsOptions& options) {
  std::size_t count = 0;
  for (const nn::PublicLayer& layer : nn::layers()) {
    if (!wanted(options, layer.name)) continue;
    if (options.json) {
      JsonText record;
      c::write(record, layer);
      print_record("layer", layer.name, signature_of(layer), record.text());
    } else if (!options.filter.empty()) {
      print_out("{}\n", signature_of(layer));
      print_details(layer.sentence, layer.parameters());
    } else {
      if (count == 0) print_out("Layers\n");
      print_row(signature_of(layer), layer.sentence);
    }
    ++count;
  }
  return count;
}

void list_ops(const OpsOptions& options) {
  std::size_t ops = 0;
  for (const ops::PublicFamily& family : nn::families()) ops += list_family(options, family);
  const std::size_t layers = list_layers(options);
  if (ops + layers == 0) {
    std::vector<std::string> names = nn::op_names();
    for (const std::string& layer : nn::layer_names()) names.push_back(layer);
    const std::string near = nearest_name(options.filter, names);
    usage_error("no op or layer is called '{}'{}", options.filter,
                near.empty() ? "" : fmt::format("\n  hint: {}?", near));
  }
  if (options.filter.empty())
    print_to(people(options.json), "{} ops and {} layers; tg ops NAME shows one with its types\n",
             ops, layers);
}

// ---- docs/ops.md

constexpr const char* kPageStart =
    R"(<!-- Written by ./tg ops --markdown > docs/ops.md from the registry of ops. -->

# Ops and layers

In C++ these are functions of `tensorgrad/ops.h` and structs of `tensorgrad/nn.h`, `mamba.h` and
`language_model.h`; some arguments are fields of an options struct there:
`conv2d(x, w, {.stride = 2})`. In [C](c.md), and in the languages that build on it, an op or a layer
is called by its name, with its arguments by name.

A *tensor* may be a tensor, a parameter of the model or a number. Elementwise ops broadcast from the
right. Axes may count from the end: -1 is the last one. `none` means that the argument may be left
out. `./tg ops NAME` prints one op or layer.
)";

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

// "stride, padding: size or [height, width]; groups: integer": of the parameters that are no
// tensors.
std::string types_of(std::span<const ops::Parameter> parameters) {
  std::vector<std::pair<std::string, std::string>> names;  // by type, in the order of the first
  for (ops::Parameter parameter : parameters) {
    if (parameter.kind == ops::Kind::tensor) continue;
    const std::string name(parameter.name);
    parameter.optional = false;
    const std::string type = ops::text(parameter).substr(name.size() + 2);
    const auto known = std::find_if(names.begin(), names.end(),
                                    [&](const auto& entry) { return entry.first == type; });
    if (known == names.end())
      names.emplace_back(type, name);
    else
      known->second += ", " + name;
  }
  std::vector<std::string> parts;
  for (const auto& [type, list] : names) parts.push_back(fmt::format("{}: {}", list, type));
  return join(parts, "; ");
}

}  // namespace

std::string ops_page() {
  std::string page = kPageStart;
  const auto section = [&](std::string_view title, const char* what) {
    page +=
        fmt::format("\n## {}\n\n| {} | what it computes | types |\n|---|---|---|\n", title, what);
  };
  const auto row = [&](const std::string& signature, std::string_view sentence,
                       const std::string& types) {
    page +=
        fmt::format("| `{}` | {} | {} |\n", signature, cell(std::string(sentence)), cell(types));
  };
  for (const ops::PublicFamily& family : nn::families()) {
    section(family.title, "op");
    for (const ops::PublicOp& op : family.ops)
      row(ops::signature(op.name, op.parameters()), op.sentence, types_of(op.parameters()));
  }
  section("Layers", "layer, and its call");
  for (const nn::PublicLayer& layer : nn::layers())
    row(signature_of(layer), layer.sentence, types_of(layer.parameters()));
  return page;
}

void add_ops_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App& command = *tg.add_subcommand("ops", "List the ops and layers");
  command.add_option("NAME", options->filter, "Only ops and layers with this name, such as conv*")
      ->type_name("GLOB");
  add_json_flag(command, options->json);
  auto* markdown =
      command.add_flag("--markdown", options->markdown, "Print the reference page, docs/ops.md");
  command
      .add_flag("--primitives", options->primitives,
                "List the primitives of the compiler, of which the ops are made")
      ->excludes(markdown);
  command.footer("Example:\n  tg ops 'conv*'");
  command.callback([options, &exit_code] {
    if (options->markdown)
      print_text(stdout, ops_page());
    else if (options->primitives)
      list_primitives(options->json);
    else
      list_ops(*options);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
