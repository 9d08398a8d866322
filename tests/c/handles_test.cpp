// Null, freed and wrong handles are errors for every function of the C interface.
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "tensorgrad/c_text.h"
#include "tests/c/calls.h"

namespace tensorgrad::c_tests {
namespace {

// A function called with a handle, and whether it returned its value for a failure.
struct Use {
  const char* function;
  const char* argument;  // its name in the error
  std::function<bool(void*)> fails;
};

template <class T>
T* as(void* handle) {
  return static_cast<T*>(handle);
}

const std::vector<Use>& uses() {
  static const Arrays none(tg_arrays_new());
  static std::size_t size = 0;
  static const std::int32_t* ids = nullptr;
  using A = tg_arrays;
  using B = tg_bytes;
  using C = tg_checkpoint;
  using M = tg_model;
  using G = tg_graph;
  using P = tg_program;
  using F = tg_future;
  using T = tg_trainer;
  using K = tg_tokenizer;
  using W = tg_generator;
  static const std::vector<Use> all = {
      {"tg_arrays_add", "arrays", [](void* h) { return !tg_arrays_add(as<A>(h), "x", "f32[]"); }},
      {"tg_arrays_count", "arrays", [](void* h) { return tg_arrays_count(as<A>(h)) == -1; }},
      {"tg_arrays_find", "arrays", [](void* h) { return tg_arrays_find(as<A>(h), "x") == -1; }},
      {"tg_arrays_name", "arrays", [](void* h) { return !tg_arrays_name(as<A>(h), 0); }},
      {"tg_arrays_type", "arrays", [](void* h) { return !tg_arrays_type(as<A>(h), 0); }},
      {"tg_arrays_data", "arrays", [](void* h) { return !tg_arrays_data(as<A>(h), 0); }},
      {"tg_arrays_metadata", "arrays", [](void* h) { return !tg_arrays_metadata(as<A>(h)); }},
      {"tg_arrays_save", "arrays", [](void* h) { return !tg_arrays_save(as<A>(h), nullptr); }},
      {"tg_bytes_data", "bytes", [](void* h) { return !tg_bytes_data(as<B>(h)); }},
      {"tg_bytes_size", "bytes", [](void* h) { return tg_bytes_size(as<B>(h)) == 0; }},
      {"tg_checkpoint_new", "parameters",
       [](void* h) { return !tg_checkpoint_new(as<A>(h), nullptr, nullptr); }},
      {"tg_checkpoint_save", "checkpoint", [](void* h) { return !tg_checkpoint_save(as<C>(h)); }},
      {"tg_checkpoint_parameters", "checkpoint",
       [](void* h) { return !tg_checkpoint_parameters(as<C>(h)); }},
      {"tg_checkpoint_optimizer", "checkpoint",
       [](void* h) { return !tg_checkpoint_optimizer(as<C>(h)); }},
      {"tg_checkpoint_info", "checkpoint", [](void* h) { return !tg_checkpoint_info(as<C>(h)); }},
      {"tg_model_param", "model",
       [](void* h) { return !tg_model_param(as<M>(h), "w", R"({"shape": []})", nullptr, 0); }},
      {"tg_model_layer", "model",
       [](void* h) {
         return tg_model_layer(as<M>(h), "l", "RMSNorm", R"({"size": 1})", "", 0) == -1;
       }},
      {"tg_model_share", "model", [](void* h) { return !tg_model_share(as<M>(h), "a", "b"); }},
      {"tg_model_params", "model", [](void* h) { return !tg_model_params(as<M>(h)); }},
      {"tg_begin_training", "model", [](void* h) { return !tg_begin_training(as<M>(h), "{}"); }},
      {"tg_begin_forward", "model", [](void* h) { return !tg_begin_forward(as<M>(h), "{}"); }},
      {"tg_begin_attached", "program", [](void* h) { return !tg_begin_attached(as<P>(h), "{}"); }},
      {"tg_op", "graph",
       [](void* h) { return tg_op(as<G>(h), "zeros", R"({"shape": []})", "", 0) == -1; }},
      {"tg_layer", "graph", [](void* h) { return tg_layer(as<G>(h), 0, "{}", "", 0) == -1; }},
      {"tg_tensors", "graph", [](void* h) { return tg_tensors(as<G>(h)) == -1; }},
      {"tg_tensor_type", "graph", [](void* h) { return !tg_tensor_type(as<G>(h), 0); }},
      {"tg_output", "graph", [](void* h) { return !tg_output(as<G>(h), "y", 0); }},
      {"tg_graph_text", "graph", [](void* h) { return !tg_graph_text(as<G>(h)); }},
      {"tg_compile", "graph", [](void* h) { return !tg_compile(as<G>(h)); }},
      {"tg_ready", "future", [](void* h) { return tg_ready(as<F>(h)) == -1; }},
      {"tg_future_progress", "future", [](void* h) { return !tg_future_progress(as<F>(h)); }},
      {"tg_future_arrays", "future", [](void* h) { return !tg_future_arrays(as<F>(h)); }},
      {"tg_future_captures", "future", [](void* h) { return !tg_future_captures(as<F>(h)); }},
      {"tg_future_text", "future", [](void* h) { return !tg_future_text(as<F>(h)); }},
      {"tg_future_program", "future", [](void* h) { return !tg_future_program(as<F>(h)); }},
      {"tg_future_checkpoint", "future", [](void* h) { return !tg_future_checkpoint(as<F>(h)); }},
      {"tg_future_trainer", "future", [](void* h) { return !tg_future_trainer(as<F>(h)); }},
      {"tg_future_generator", "future", [](void* h) { return !tg_future_generator(as<F>(h)); }},
      {"tg_program_info", "program", [](void* h) { return !tg_program_info(as<P>(h)); }},
      {"tg_program_show", "program", [](void* h) { return !tg_program_show(as<P>(h), "plan"); }},
      {"tg_program_plan", "program", [](void* h) { return !tg_program_plan(as<P>(h)); }},
      {"tg_profile", "program", [](void* h) { return !tg_profile(as<P>(h), none.get(), 1); }},
      {"tg_run", "program", [](void* h) { return !tg_run(as<P>(h), none.get(), 0); }},
      {"tg_set_inputs", "program", [](void* h) { return !tg_set_inputs(as<P>(h), none.get()); }},
      {"tg_download", "program", [](void* h) { return !tg_download(as<P>(h), "parameters"); }},
      {"tg_upload", "program", [](void* h) { return !tg_upload(as<P>(h), none.get(), 1); }},
      {"tg_restore", "program",
       [](void* h) { return !tg_restore(as<P>(h), none.get(), none.get()); }},
      {"tg_reset", "program", [](void* h) { return !tg_reset(as<P>(h), "{}"); }},
      {"tg_restart", "program", [](void* h) { return !tg_restart(as<P>(h), none.get()); }},
      {"tg_set_lr", "program", [](void* h) { return !tg_set_lr(as<P>(h), "0.1"); }},
      {"tg_steps", "program", [](void* h) { return tg_steps(as<P>(h)) == -1; }},
      {"tg_updates", "program", [](void* h) { return tg_updates(as<P>(h)) == -1; }},
      {"tg_tokenizer_json", "tokenizer", [](void* h) { return !tg_tokenizer_json(as<K>(h)); }},
      {"tg_tokenizer_info", "tokenizer", [](void* h) { return !tg_tokenizer_info(as<K>(h)); }},
      {"tg_tokenizer_encode", "tokenizer",
       [](void* h) { return tg_tokenizer_encode(as<K>(h), "a", 1, &ids) == -1; }},
      {"tg_tokenizer_decode", "tokenizer",
       [](void* h) { return !tg_tokenizer_decode(as<K>(h), ids, 0, &size); }},
      {"tg_trainer_new", "tokenizer",
       [](void* h) { return !tg_trainer_new(as<K>(h), "text", 4, "{}"); }},
      {"tg_trainer_step", "trainer", [](void* h) { return !tg_trainer_step(as<T>(h)); }},
      {"tg_trainer_set_lr", "trainer", [](void* h) { return !tg_trainer_set_lr(as<T>(h), "0.1"); }},
      {"tg_trainer_validate", "trainer", [](void* h) { return !tg_trainer_validate(as<T>(h), 0); }},
      {"tg_trainer_checkpoint", "trainer",
       [](void* h) { return !tg_trainer_checkpoint(as<T>(h)); }},
      {"tg_trainer_restore", "trainer",
       [](void* h) { return !tg_trainer_restore(as<T>(h), nullptr); }},
      {"tg_trainer_generate", "trainer",
       [](void* h) { return !tg_trainer_generate(as<T>(h), "", "{}"); }},
      {"tg_trainer_pieces", "trainer", [](void* h) { return !tg_trainer_pieces(as<T>(h)); }},
      {"tg_trainer_stop", "trainer", [](void* h) { return !tg_trainer_stop(as<T>(h)); }},
      {"tg_trainer_info", "trainer", [](void* h) { return !tg_trainer_info(as<T>(h)); }},
      {"tg_trainer_show", "trainer", [](void* h) { return !tg_trainer_show(as<T>(h), "plan"); }},
      {"tg_trainer_plan", "trainer", [](void* h) { return !tg_trainer_plan(as<T>(h)); }},
      {"tg_trainer_profile", "trainer", [](void* h) { return !tg_trainer_profile(as<T>(h), 1); }},
      {"tg_generator_new", "checkpoint", [](void* h) { return !tg_generator_new(as<C>(h), "{}"); }},
      {"tg_generator_generate", "generator",
       [](void* h) { return !tg_generator_generate(as<W>(h), "", "{}"); }},
      {"tg_generator_pieces", "generator", [](void* h) { return !tg_generator_pieces(as<W>(h)); }},
      {"tg_generator_stop", "generator", [](void* h) { return !tg_generator_stop(as<W>(h)); }},
      {"tg_generator_forget", "generator", [](void* h) { return !tg_generator_forget(as<W>(h)); }},
      {"tg_generator_tokenizer", "generator",
       [](void* h) { return !tg_generator_tokenizer(as<W>(h)); }},
      {"tg_generator_info", "generator", [](void* h) { return !tg_generator_info(as<W>(h)); }},
  };
  return all;
}

std::string contents(const std::string& path) {
  std::ifstream in(TENSORGRAD_SOURCE_DIR "/" + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The functions that a header declares.
std::set<std::string> declared(const std::string& header) {
  const std::string text = contents("include/tensorgrad/" + header);
  static const std::regex declaration(R"(\n[a-z][\w *]*[ *](tg_\w+)\()");
  std::set<std::string> names;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), declaration);
       match != std::sregex_iterator(); ++match)
    names.insert((*match)[1]);
  return names;
}

TEST(CHandles, EveryFunctionRefusesNull) {
  for (const Use& use : uses()) {
    EXPECT_TRUE(use.fails(nullptr)) << use.function;
    EXPECT_EQ(tg_error(), std::string(use.argument) + " is null") << use.function;
  }
}

// The handle of another kind. A freed one of the right kind is the same to the library.
TEST(CHandles, EveryFunctionRefusesAnotherHandle) {
  const Model model(tg_model_new());
  const Bytes bytes(tg_arrays_save(Arrays(tg_arrays_new()).get(), nullptr));
  for (const Use& use : uses()) {
    void* const other = std::string(use.argument) == "model" ? static_cast<void*>(bytes.get())
                                                             : static_cast<void*>(model.get());
    EXPECT_TRUE(use.fails(other)) << use.function;
    EXPECT_EQ(tg_error(), std::string(use.argument) +
                              ": this handle was freed, or it is no handle of this kind")
        << use.function;
  }
}

TEST(CHandles, AFreedHandleIsAnError) {
  tg_arrays* const gone = tg_arrays_new();
  tg_arrays_free(gone);
  EXPECT_EQ(tg_arrays_count(gone), -1);
  EXPECT_STREQ(tg_error(), "arrays: this handle was freed, or it is no handle of this kind");
  tg_arrays_free(gone);  // ignored
}

TEST(CHandles, EveryFunctionThatTakesAHandleIsTested) {
  std::set<std::string> tested;
  for (const Use& use : uses()) tested.insert(use.function);
  std::set<std::string> all = declared("c.h");
  all.merge(declared("c_text.h"));
  EXPECT_GT(all.size(), 80u);
  const std::set<std::string> without = {
      "tg_error",           "tg_error_kind", "tg_version",       "tg_registry",
      "tg_devices",         "tg_poll",       "tg_arrays_new",    "tg_arrays_load",
      "tg_checkpoint_load", "tg_model_new",  "tg_tokenizer_new", "tg_tokenizer_from_json"};
  for (const std::string& name : all)
    EXPECT_EQ(tested.count(name) == 0, name.ends_with("_free") || without.count(name) > 0)
        << name << " belongs in uses()";
  for (const std::string& name : tested) EXPECT_EQ(all.count(name), 1u) << name;
}

// tests/c_language compiles and runs the example. Indentation does not count.
TEST(CHeader, ItsExampleIsAProgram) {
  const auto lines_of = [](const std::string& text) {
    std::string lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      line.erase(0, line.find_first_not_of(" *"));
      if (!line.empty()) lines += line + "\n";
    }
    return lines;
  };
  const std::string header = contents("include/tensorgrad/c.h");
  const std::size_t begin = header.find(" *   tg_model* model");
  ASSERT_NE(begin, std::string::npos);
  const std::string example = lines_of(header.substr(begin, header.find(" */", begin) - begin));
  EXPECT_GT(example.size(), 400u);
  EXPECT_NE(lines_of(contents("tests/c_language/example.c")).find(example), std::string::npos)
      << example;
}

TEST(CHandles, FreeingNullOrAnotherHandleIsIgnored) {
  const Model model(tg_model_new());
  for (void* handle : {static_cast<void*>(nullptr), static_cast<void*>(model.get())}) {
    tg_arrays_free(as<tg_arrays>(handle));
    tg_bytes_free(as<tg_bytes>(handle));
    tg_checkpoint_free(as<tg_checkpoint>(handle));
    tg_graph_free(as<tg_graph>(handle));
    tg_future_free(as<tg_future>(handle));
    tg_program_free(as<tg_program>(handle));
    tg_tokenizer_free(as<tg_tokenizer>(handle));
    tg_trainer_free(as<tg_trainer>(handle));
    tg_generator_free(as<tg_generator>(handle));
  }
  tg_model_free(nullptr);
  EXPECT_STREQ(tg_model_params(model.get()), "[]");
}

// Arrays that belong to another handle are freed with it.
TEST(CHandles, FreeingBorrowedArraysIsIgnored) {
  const Arrays own = arrays({{"w", floats({2}, {1, 2})}});
  const Point point(tg_checkpoint_new(own.get(), nullptr, nullptr));
  tg_arrays* const parameters = tg_checkpoint_parameters(point.get());
  tg_arrays_free(parameters);
  EXPECT_EQ(tg_arrays_count(parameters), 1);
}

}  // namespace
}  // namespace tensorgrad::c_tests
