// Counts the places in src/ that throw to the user, file by file, so that nobody adds a message
// without a test of its text.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>

namespace tensorgrad::errors {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = fs::path(TENSORGRAD_SOURCE_DIR) / "src";

// Messages per file. Their texts are tested in ops_test.cpp for ops/ and nn/,
// sequence_models_test.cpp for sequence models and their ops, rules_test.cpp for break_rule,
// ids_test.cpp and non_finite_test.cpp for errors while a step runs, compile_test.cpp and
// run_test.cpp for the rest, tests/webgpu and tests/tool for devices, tests/wgsl for codegen/wgsl,
// and tests/io for files and JSON. No test can cause some of them: WebGPU creates no instance, it
// does not open an adapter, an adapter cannot time its kernels, and the system lacks memory for a
// library.
const std::map<std::string, int> kMessages = {
    {"compile/diagnose.cpp", 2},
    {"compile/pipeline.cpp", 3},
    {"compile/feed.cpp", 7},
    {"compile/handles.cpp", 8},
    {"compile/initialise.cpp", 2},
    {"codegen/cpu/simd_native.cpp", 1},
    {"codegen/wgsl/emit.cpp", 1},
    {"codegen/wgsl/link.cpp", 1},
    {"compile/driver.cpp", 1},
    {"compile/model_state.cpp", 9},
    {"compile/options.cpp", 7},
    {"compile/profile.cpp", 1},
    {"compile/program.cpp", 2},
    {"compile/run.cpp", 1},
    {"compile/training.cpp", 2},
    {"nn/language_model.cpp", 2},
    {"nn/layers.cpp", 1},
    {"nn/mamba.cpp", 2},
    {"nn/mamba2.cpp", 3},
    {"nn/registry.cpp", 1},
    {"nn/sizes.cpp", 2},
    {"nn/state.cpp", 2},
    {"nn/transformer.cpp", 6},
    {"ops/builder.cpp", 12},
    {"ops/compare.cpp", 4},
    {"ops/attention.cpp", 13},
    {"ops/composite.cpp", 15},
    {"ops/conv1d.cpp", 2},
    {"ops/elementwise.cpp", 5},
    {"ops/gather.cpp", 11},
    {"ops/leaf.cpp", 8},
    {"ops/matmul.cpp", 4},
    {"ops/movement.cpp", 24},
    {"ops/random.cpp", 5},
    {"ops/reduce.cpp", 9},
    {"ops/registry.cpp", 2},
    {"ops/ssd.cpp", 3},
    {"ops/state_space.cpp", 3},
    {"ops/window.cpp", 13},
    {"optim/schedule.cpp", 1},
    {"optim/update.cpp", 2},
    {"runtime/cpu/cpu_device.cpp", 1},
    {"runtime/devices.cpp", 3},
    {"runtime/own_device_native.cpp", 2},
    {"runtime/webgpu/webgpu_backend.cpp", 2},
    {"runtime/webgpu/webgpu_device.cpp", 1},
    {"runtime/webgpu/adapters_native.cpp", 1},
    {"runtime/webgpu/connection.cpp", 4},
    {"runtime/webgpu/dawn_node_native.cpp", 13},
    {"runtime/webgpu/gpu.cpp", 4},
    {"runtime/webgpu/library_native.cpp", 3},
    {"runtime/webgpu/pipelines.cpp", 2},
    {"runtime/webgpu/tuner.cpp", 1},
    {"runtime/webgpu/wgsl_device.cpp", 1},
    {"support/array.cpp", 7},
    {"support/fail.cpp", 1},
    {"support/file.cpp", 4},
    {"support/json_reader.cpp", 9},
    {"support/shape.cpp", 6},
    {"support/turn.h", 1},
    {"support/wait_browser.cpp", 1},
    {"support/wait_native.cpp", 1},
    {"support/words.cpp", 2},
    {"trace/trace.cpp", 9},
};

// Folders whose messages are tested beside their readers.
const std::map<std::string, std::string> kElsewhere = {{"ir", "tests/ir"},
                                                       {"reference", "tests/reference"},
                                                       {"io", "tests/io"},
                                                       {"text", "tests/text"},
                                                       {"c", "tests/c"}};

int messages_in(const std::string& text) {
  static const std::regex site(
      R"(\b(user_error|break_rule|user_message|fail|fail_in_call|refuse)\(|throw (Device|OutOfMemory)Error\(|UserError\(\s*")");
  // Declarations: "void user_error(", "std::string user_message(", "void fail(".
  static const std::regex declaration(
      R"(\b(void|std::string) (user_error|break_rule|user_message|fail|fail_in_call|refuse)\()");
  const auto count = [&](const std::regex& what) {
    return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), what),
                                          std::sregex_iterator()));
  };
  return count(site) - count(declaration);
}

std::map<std::string, int> messages_per_file() {
  std::map<std::string, int> found;
  for (const auto& entry : fs::recursive_directory_iterator(kSource)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cpp" && extension != ".h") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::string file = entry.path().lexically_relative(kSource).generic_string();
    if (const int count = messages_in(text); count > 0) found[file] = count;
  }
  return found;
}

TEST(Census, EveryMessageHasATest) {
  std::map<std::string, int> found = messages_per_file();
  ASSERT_GT(found.size(), 20u) << "no source below " << kSource;
  for (const auto& [file, count] : kMessages) found.emplace(file, 0);
  for (const auto& [file, count] : found) {
    if (kElsewhere.count(file.substr(0, file.find('/')))) continue;
    const auto recorded = kMessages.find(file);
    const int expected = recorded == kMessages.end() ? 0 : recorded->second;
    EXPECT_EQ(count, expected)
        << "src/" << file << " has " << count << " messages that a user can cause, and " << expected
        << " have a test.\nAdd a row with the exact text of each new one to a table in "
        << "tests/errors, then set {\"" << file << "\", " << count << "} in " << __FILE__;
  }
}

TEST(Census, KnowsAMessageWhenItSeesOne) {
  EXPECT_EQ(
      messages_in("if (x) user_error(\"a\"); else call.fail(\"\", \"b\");\n fail(\"\", \"c\");"),
      3);
  EXPECT_EQ(messages_in("break_rule(\"\", \"d\"); throw UserError(user_message(\"e\", \"\")); "
                        "throw DeviceError(f);"),
            3);
  EXPECT_EQ(messages_in("[[noreturn]] void fail(std::string hint); std::string "
                        "user_message(std::string_view op,"),
            0);
  EXPECT_EQ(messages_in("internal_error(\"g\"); fail_text(rule, hint); infail(1);"), 0);
}

TEST(Census, TheOtherTestsExist) {
  for (const auto& [folder, tests] : kElsewhere)
    EXPECT_EQ(fs::exists(kSource / folder), fs::exists(fs::path(TENSORGRAD_SOURCE_DIR) / tests))
        << tests;
}

}  // namespace
}  // namespace tensorgrad::errors
