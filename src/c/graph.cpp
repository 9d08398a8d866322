// Graphs: the caller calls ops one by one.
#include <fmt/format.h>

#include "c/objects.h"
#include "ir/graph.h"
#include "support/fail.h"
#include "support/text.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

struct tg_graph : Handle<tg_graph> {
  static constexpr const char* kKind = "graph";
  std::shared_ptr<Model> model;
  detail::Recording recording;
  std::shared_ptr<tg_future::State> state;  // of its compilation
  bool trains = false;
  int accumulate = 1;
  bool clips = false;
  std::vector<Tensor> tensors;
  std::vector<std::pair<std::string, Tensor>> outputs;
  std::string text;

  tg_graph(std::shared_ptr<Model> of, detail::Recording started,
           std::shared_ptr<tg_future::State> compilation)
      : model(std::move(of)), recording(std::move(started)), state(std::move(compilation)) {}

  const Tensor& tensor(std::int64_t number) const {
    if (number < 0 || number >= std::ssize(tensors))
      user_error("there is no tensor {}: there are {}", number, tensors.size());
    return tensors[static_cast<std::size_t>(number)];
  }
};

namespace {

// Begins a graph; its inputs are the first tensors.
std::unique_ptr<tg_graph> begin(const std::shared_ptr<Model>& model, detail::Recording recording,
                                const std::vector<InputSpec>& inputs,
                                const std::shared_ptr<tg_future::State>& state) {
  auto graph = std::make_unique<tg_graph>(model, std::move(recording), state);
  for (const InputSpec& input : inputs)
    graph->tensors.push_back(graph->recording.tracer().inputs()[input.name]);
  return graph;
}

// {"tensor": 3} or {"param": "name"}
ReadOperand operands_of(const tg_graph& graph, std::string_view what, Site site) {
  return [&graph, what, site](const Json& value) -> Operand {
    const auto fail = [&](const std::string& rule, const std::string& hint = "") {
      throw UserError(user_message(what, rule, hint, "", site.file, site.line));
    };
    if (const Json* tensor = value.find("tensor")) {
      const std::optional<std::int64_t> number = integer_of(*tensor);
      if (!number || *number < 0 || *number >= std::ssize(graph.tensors))
        fail(fmt::format("there is no tensor {} in this graph", shown(*tensor)));
      return {graph.tensor(*number), site};
    }
    const Json* param = value.find("param");
    if (!param || !param->is_text())
      fail(fmt::format("an operand is {{\"tensor\": number}} or {{\"param\": name}}: {}",
                       shown(value)));
    const std::string name(param->text());
    const auto found = graph.model->by_name.find(name);
    if (found == graph.model->by_name.end()) {
      std::vector<std::string> names;
      for (const auto& [own, other] : graph.model->by_name) names.push_back(own);
      fail(fmt::format("the model has no parameter '{}'", name), name_hint(name, names));
    }
    return {*found->second, site};
  };
}

// Appends the results of a call, and returns the number of the first. A call that throws leaves the
// graph as it was.
template <class Call>
int append(tg_graph& graph, Call call) {
  ops::Builder& builder = graph.recording.tracer().builder();
  const ops::Builder::Mark before = builder.mark();
  const int first = static_cast<int>(graph.tensors.size());
  try {
    const ops::BuildScope scope(builder);
    for (Tensor& result : call()) graph.tensors.push_back(std::move(result));
  } catch (...) {
    graph.tensors.resize(static_cast<std::size_t>(first));
    builder.return_to(before);
    throw;
  }
  return first;
}

}  // namespace

tg_graph* tg_begin_training(tg_model* handle, const char* options) {
  return guarded(nullptr, [&]() -> tg_graph* {
    const auto model = std::make_shared<Model>(given(handle, "model").model);
    TrainingOptions read = read_training(read_object(options, "options").root());
    const auto state = std::make_shared<tg_future::State>();
    read.progress = progress_of(state);
    auto graph =
        begin(model, detail::Recording::of_training(model->found, read), read.inputs, state);
    graph->trains = true;
    graph->accumulate = read.accumulate;
    graph->clips = read.clip_grad_norm > 0;
    return graph.release();
  });
}

tg_graph* tg_begin_forward(tg_model* handle, const char* options) {
  return guarded(nullptr, [&]() -> tg_graph* {
    const auto model = std::make_shared<Model>(given(handle, "model").model);
    ForwardOptions read = read_forward(read_object(options, "options").root());
    const auto state = std::make_shared<tg_future::State>();
    read.progress = progress_of(state);
    return begin(model, detail::Recording::of_forward(model->found, read), read.inputs, state)
        .release();
  });
}

tg_graph* tg_begin_attached(tg_program* program, const char* options) {
  return guarded(nullptr, [&]() -> tg_graph* {
    tg_program& to = given(program, "program");
    AttachOptions read = read_attach(read_object(options, "options").root());
    const auto state = std::make_shared<tg_future::State>();
    read.progress = progress_of(state);
    const auto& driver = to.training ? to.training->shared_driver() : to.forward->shared_driver();
    return begin(to.model, detail::Recording::of_attached(driver, read), read.inputs, state)
        .release();
  });
}

int tg_op(tg_graph* handle, const char* op, const char* arguments, const char* file, int line) {
  return guarded(-1, [&] {
    tg_graph& graph = given(handle, "graph");
    const Site site = site_of(file, line);
    const ops::PublicOp* record = nn::find_op(text_or(op));
    if (!record) {
      const std::string hint = name_hint(text_or(op), nn::op_names());
      throw UserError(
          user_message(text_or(op), "there is no op of this name", hint, "", site.file, site.line));
    }
    const std::vector<ops::Argument> read = read_arguments(
        record->name, record->parameters(), read_object(arguments, record->name, site).root(), site,
        operands_of(graph, record->name, site));
    return append(graph, [&] { return record->call(read, site); });
  });
}

int tg_layer(tg_graph* handle, int layer, const char* arguments, const char* file, int line) {
  return guarded(-1, [&] {
    tg_graph& graph = given(handle, "graph");
    const Site site = site_of(file, line);
    if (layer < 0 || layer >= std::ssize(graph.model->layers))
      user_error("there is no layer {}: there are {}", layer, graph.model->layers.size());
    const Model::PlacedLayer& placed = graph.model->layers[static_cast<std::size_t>(layer)];
    const std::vector<ops::Argument> read =
        read_arguments(placed.type->name, placed.type->inputs(),
                       read_object(arguments, placed.type->name, site).root(), site,
                       operands_of(graph, placed.type->name, site));
    return append(
        graph, [&] { return std::vector<Tensor>{placed.layer->call(std::get<Operand>(read[0]))}; });
  });
}

int tg_tensors(const tg_graph* graph) {
  return guarded(-1, [&] { return static_cast<int>(given(graph, "graph").tensors.size()); });
}

const char* tg_tensor_type(tg_graph* graph, int number) {
  return guarded(nullptr, [&]() -> const char* {
    const Tensor& tensor = given(graph, "graph").tensor(number);
    graph->text = type_text(tensor.dtype(), tensor.shape());
    return graph->text.c_str();
  });
}

int tg_output(tg_graph* graph, const char* name, int number) {
  return guarded(0, [&] {
    const Tensor& tensor = given(graph, "graph").tensor(number);
    graph->outputs.emplace_back(std::string(text_or(name)), tensor);
    return 1;
  });
}

const char* tg_graph_text(tg_graph* graph) {
  return guarded(nullptr, [&]() -> const char* {
    graph->text = ir::print(given(graph, "graph").recording.tracer().builder().graph);
    return graph->text.c_str();
  });
}

tg_future* tg_compile(tg_graph* handle) {
  return guarded(nullptr, [&]() -> tg_future* {
    const std::unique_ptr<tg_graph> graph(&given(handle, "graph"));
    const auto compiling = std::move(graph->recording).finish(Outputs(graph->outputs));
    return waiting(
        compiling,
        [model = graph->model, trains = graph->trains, accumulate = graph->accumulate,
         clips = graph->clips](tg_value& value, const detail::Compiled& made) {
          auto program = std::make_unique<tg_program>();
          program->model = model;
          program->accumulate = accumulate;
          program->clips = clips;
          if (trains)
            program->training = std::make_unique<OpenTraining>(made);
          else
            program->forward = std::make_unique<OpenForward>(made);
          value.program = std::move(program);
        },
        graph->state);
  });
}

void tg_graph_free(tg_graph* graph) { free_handle(graph); }
