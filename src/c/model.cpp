// Models: parameters and layers by name.
#include <fmt/format.h>

#include "c/objects.h"
#include "support/fail.h"
#include "support/text.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

Model::Model(const Model& other) {
  std::map<const Param*, Param*> copies;
  for (const auto& param : other.own) {
    own.push_back(std::make_unique<Param>(*param));
    copies.emplace(param.get(), own.back().get());
  }
  for (const PlacedLayer& placed : other.layers) {
    layers.push_back({placed.type, placed.layer->copy()});
    std::vector<Param*> originals;
    placed.layer->visit([&](const std::string&, Param& param) { originals.push_back(&param); });
    auto original = originals.begin();
    layers.back().layer->visit(
        [&](const std::string&, Param& param) { copies.emplace(*original++, &param); });
  }
  for (const auto& [name, param] : other.found) add(name, *copies.at(param));
}

void Model::add(const std::string& name, Param& param) {
  if (name.empty()) user_error("param: a parameter needs a name");
  if (!by_name.emplace(name, &param).second) user_error("param: the name '{}' is taken", name);
  found.emplace_back(name, &param);
}

namespace {

// The parameter of that name with other options.
Param changed(const Param& before, const Json& options, std::span<const float> values) {
  Param after = before;
  if (const Json* init = options.find("init")) {
    after = Param(before.shape(), read_init(*init, values));
    after.decay(before.decays()).freeze(before.frozen());
  }
  const auto flag = [&](const char* key) {
    const Json* found = options.find(key);
    if (!found) return std::optional<bool>();
    if (!found->is_boolean())
      user_error("param: '{}' must be true or false: {}", key, shown(*found));
    return std::optional(found->boolean());
  };
  if (const auto on = flag("decay")) after.decay(*on);
  if (const auto on = flag("frozen")) after.freeze(*on);
  return after;
}

Shape shape_in(const Json& options) {
  const Json* found = options.find("shape");
  if (!found) user_error("param: 'shape' is missing");
  if (!found->is_list()) user_error("param: 'shape' must be a list: {}", shown(*found));
  Shape shape;
  for (const Json& size : found->items()) {
    const auto whole = integer_of(size);
    if (!whole) user_error("param: a size must be an integer: {}", shown(size));
    shape.push_back(*whole, kNowhere);
  }
  return shape;
}

Param& find(Model& model, std::string_view name) {
  const auto found = model.by_name.find(name);
  if (found != model.by_name.end()) return *found->second;
  std::vector<std::string> names;
  for (const auto& [own, param] : model.by_name) names.push_back(own);
  const std::string hint = name_hint(name, names);
  user_error("param: there is no parameter '{}'{}{}", name, hint.empty() ? "" : "\n  hint: ", hint);
}

}  // namespace

tg_model* tg_model_new(void) {
  return guarded(nullptr, []() -> tg_model* { return new tg_model; });
}
void tg_model_free(tg_model* model) { free_handle(model); }

int tg_model_param(tg_model* handle, const char* name, const char* options, const float* values,
                   size_t count) {
  return guarded(0, [&] {
    Model& model = given(handle, "model").model;
    const std::string own(text_or(name));
    const JsonDocument document = read_object(options, "param '" + own + "'");
    const Json& json = document.root();
    for (const auto& [key, value] : json.members())
      if (key != "shape" && key != "init" && key != "decay" && key != "frozen")
        user_error("param: unknown name '{}'\n  hint: shape, init, decay, frozen", key);
    const std::span<const float> literal(values, values ? count : 0);
    if (const auto known = model.by_name.find(own); known != model.by_name.end()) {
      if (json.find("shape")) user_error("param: the name '{}' is taken", own);
      *known->second = changed(*known->second, json, literal);
      return 1;
    }
    auto param = std::make_unique<Param>(changed(Param(shape_in(json)), json, literal));
    model.add(own, *param);
    model.own.push_back(std::move(param));
    return 1;
  });
}

int tg_model_layer(tg_model* handle, const char* name, const char* layer, const char* arguments,
                   const char* file, int line) {
  return guarded(-1, [&] {
    Model& model = given(handle, "model").model;
    const Site site = site_of(file, line);
    const nn::PublicLayer* type = nn::find_layer(text_or(layer));
    if (!type) {
      const std::string hint = name_hint(text_or(layer), nn::layer_names());
      throw UserError(user_message("layer", fmt::format("there is no layer '{}'", text_or(layer)),
                                   hint, "", site.file, site.line));
    }
    const auto no_tensor = [&](const Json&) -> Operand {
      user_error("{}: a layer is made of numbers, not of tensors", type->name);
    };
    std::unique_ptr<nn::Layer> made =
        type->make(read_arguments(type->name, type->parameters(),
                                  read_object(arguments, type->name, site).root(), site, no_tensor),
                   site);
    const std::string prefix = std::string(text_or(name)).empty() ? "" : std::string(name) + ".";
    made->visit([&](const std::string& path, Param&) {
      if (model.by_name.count(prefix + path))
        user_error("param: the name '{}' is taken", prefix + path);
    });
    made->visit([&](const std::string& path, Param& param) { model.add(prefix + path, param); });
    model.layers.push_back({type, std::move(made)});
    return static_cast<int>(model.layers.size()) - 1;
  });
}

int tg_model_share(tg_model* handle, const char* name, const char* of) {
  return guarded(0, [&] {
    Model& model = given(handle, "model").model;
    auto param = std::make_unique<Param>(find(model, text_or(of)).shared());
    model.add(std::string(text_or(name)), *param);
    model.own.push_back(std::move(param));
    return 1;
  });
}

const char* tg_model_params(tg_model* handle) {
  return guarded(nullptr, [&]() -> const char* {
    JsonText list;
    list.begin('[');
    std::map<const void*, std::string> tied;
    for (const auto& [name, param] : given(handle, "model").model.found) {
      list.begin('{')
          .field("name", name)
          .key("shape")
          .list(param->shape())
          .field("decay", param->decays())
          .field("frozen", param->frozen());
      if (const void* tie = ParamAccess::tie(*param))
        if (const auto [first, is_new] = tied.emplace(tie, name); !is_new)
          list.field("same_as", first->second);
      list.end('}');
    }
    handle->text = list.end(']').take();
    return handle->text.c_str();
  });
}
