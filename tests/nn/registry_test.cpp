// The registry says what the headers say: every function of ops.h, nn.h and mamba.h and every layer
// is in it, with the names and the defaults of its parameters.
#include "nn/registry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "support/text.h"

namespace tensorgrad::nn {
namespace {

// A header without comments, its lines joined.
std::string header(const std::string& name) {
  std::ifstream in(TENSORGRAD_SOURCE_DIR "/include/tensorgrad/" + name);
  std::string text;
  for (std::string line; std::getline(in, line);)
    text += (line.empty() || line[0] == ' ' ? " " : "\n") + line.substr(0, line.find("//"));
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \n"), last = text.find_last_not_of(" \n");
  return first == text.npos ? "" : text.substr(first, last - first + 1);
}

// Splits at commas that are in no brackets.
std::vector<std::string> at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (std::string_view("<({").find(c) != std::string_view::npos) ++depth;
    if (std::string_view(">)}").find(c) != std::string_view::npos) --depth;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// A parameter or a field: "softmax axis = -1" has the default -1.
struct Declared {
  std::string type, name, otherwise;
};

Declared declared(const std::string& text) {
  Declared one;
  const auto equals = text.find('=');
  const std::string left = trimmed(text.substr(0, equals));
  if (equals != text.npos) one.otherwise = trimmed(text.substr(equals + 1));
  const auto space = left.find_last_of(" &");
  if (space != left.npos) one.type = trimmed(left.substr(0, space + 1));
  one.name = space == left.npos ? left : left.substr(space + 1);
  return one;
}

// The default as the registry prints it: "none" for {}, "mean" for Reduction::mean.
std::string shown(const std::string& otherwise) {
  if (otherwise == "{}") return "none";
  const std::string word =
      otherwise.substr(otherwise.rfind(':') == otherwise.npos ? 0 : otherwise.rfind(':') + 1);
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (end != word.c_str() && (*end == '\0' || *end == 'f')) return fmt::format("{}", number);
  return word;
}

// The fields of all structs of the headers that are plain data.
std::map<std::string, std::vector<Declared>> structs(const std::string& text) {
  std::map<std::string, std::vector<Declared>> all;
  static const std::regex pattern(R"(struct (\w+(?:Options|Config)) \{([^\n]*)\n\};)");
  for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
       match != std::sregex_iterator(); ++match) {
    std::vector<Declared>& fields = all[(*match)[1]];
    for (const std::string& line : split((*match)[2].str(), ';')) {
      std::string type;
      for (const std::string& part : at_commas(line)) {
        Declared field = declared(part);
        if (field.type.empty()) field.type = type;
        type = field.type;
        fields.push_back(field);
      }
    }
  }
  return all;
}

// "softmax(x, axis = -1)", with the fields of an options struct in its place and without a Site.
std::string signature(const std::string& name, const std::string& parameters,
                      const std::map<std::string, std::vector<Declared>>& options) {
  std::vector<std::string> parts;
  const auto add = [&](const Declared& one) {
    parts.push_back(one.otherwise.empty() ? one.name : one.name + " = " + shown(one.otherwise));
  };
  for (const std::string& text : at_commas(parameters)) {
    const Declared one = declared(text);
    if (one.type == "Site") continue;
    const auto fields = options.find(one.type);
    if (fields == options.end())
      add(one);
    else
      for (const Declared& field : fields->second) add(field);
  }
  return fmt::format("{}({})", name, join(parts, ", "));
}

using Signatures = std::map<std::string, std::set<std::string>>;  // by name: overloads

Signatures functions() {
  Signatures all;
  const std::string ops = header("ops.h"), nn = header("nn.h"), mamba = header("mamba.h");
  const auto options = structs(ops);
  static const std::regex pattern(R"(\n(?:Tensor|std::vector<Tensor>) (\w+)\(([^;]*)\);)");
  for (const std::string& text : {ops, nn, mamba})
    for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
         match != std::sregex_iterator(); ++match)
      all[(*match)[1]].insert(signature((*match)[1], (*match)[2], options));
  return all;
}

TEST(Registry, TheHeadersAreReadRight) {
  const Signatures all = functions();
  EXPECT_GT(all.size(), 100u);
  EXPECT_EQ(all.at("conv2d"), (std::set<std::string>{"conv2d(x, w, stride = 1, padding = 0, "
                                                     "dilation = 1, groups = 1)"}));
  EXPECT_EQ(all.at("split").size(), 2u);
  EXPECT_EQ(all.at("activate"), (std::set<std::string>{"activate(x, activation)"}));
}

TEST(Registry, HasEveryFunctionWithItsParameters) {
  // One record has the parameters of several overloads, or a default where C++ has none.
  const std::map<std::string, std::string> merged = {
      {"arange", "arange(stop, start = 0, step = 1, dtype = i32)"},
      {"attention", "attention(q, k, v, causal = true, scale = none, start = none)"},
      {"clamp", "clamp(x, min = -inf, max = inf)"},
      {"layer_norm", "layer_norm(x, gain, bias = none, eps = 1e-05)"},
      {"rope", "rope(x, base = 10000, offset = 0)"},
      {"split", "split(x, sections = none, sizes = none, axis = -1)"}};
  const Signatures all = functions();
  for (const auto& [name, signatures] : all) {
    const ops::PublicOp* op = find_op(name);
    if (!op) {
      ADD_FAILURE() << name << " is not in the registry";
      continue;
    }
    const std::string own = ops::signature(op->name, op->parameters());
    const auto special = merged.find(name);
    const std::set<std::string> want =
        special != merged.end() ? std::set<std::string>{special->second} : signatures;
    EXPECT_EQ(want, std::set<std::string>{own}) << name;
  }
  for (const std::string& name : op_names()) EXPECT_EQ(all.count(name), 1u) << name;
}

TEST(Registry, HasEveryLayerWithItsDefaults) {
  std::set<std::string> found;
  for (const char* file : {"nn.h", "mamba.h", "language_model.h"}) {
    const std::string text = header(file);
    auto options = structs(text);
    static const std::regex pattern(
        R"(struct (\w+) \{([^\n]*Tensor operator\(\)\(Operand[^\n]*)\n\};)");
    for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
         match != std::sregex_iterator(); ++match) {
      const std::string name = (*match)[1], body = (*match)[2];
      found.insert(name);
      const PublicLayer* layer = find_layer(name);
      if (!layer) {
        ADD_FAILURE() << name << " is not in the registry";
        continue;
      }
      // The options or the config of its first constructor.
      std::smatch made;
      ASSERT_TRUE(std::regex_search(body, made, std::regex(name + R"(\(([^;]*?)\);)"))) << name;
      std::map<std::string, std::string> defaults;
      for (const std::string& parameter : at_commas(made[1]))
        for (const Declared& field :
             options[std::regex_replace(declared(parameter).type, std::regex("const |&"), "")])
          if (!field.type.ends_with("Options"))  // those of a layer inside
            defaults[field.name] = field.otherwise.empty() ? "" : shown(field.otherwise);
      for (const ops::Parameter& parameter : layer->parameters()) {
        const auto of_header = defaults.find(std::string(parameter.name));
        if (of_header == defaults.end() || !parameter.optional) continue;
        std::string own = ops::text(parameter);
        own = own.substr(own.rfind("= ") + 2);
        EXPECT_TRUE(own == of_header->second || of_header->second == '"' + own + '"')
            << name << " " << parameter.name << ": " << own << ", not " << of_header->second;
      }
    }
  }
  const auto names = layer_names();
  EXPECT_EQ(found, std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace tensorgrad::nn
