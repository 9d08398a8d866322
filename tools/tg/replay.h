// Replays reference values (the format is in tests/fixtures/README.md) through the public
// interface: compile, step, read. Each case gives one verdict.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "compare.h"
#include "tensorgrad/safetensors.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::tool {

enum class CaseKind : std::uint8_t { op, train };

struct ReferenceCase {
  std::string name;
  CaseKind kind = CaseKind::op;
  Json description;
  std::string prefix;  // of its tensors in the file
  std::shared_ptr<const TensorFile> file;

  // The tensor with that name, without the prefix. Throws a UserError if it is missing.
  const Array& tensor(const std::string& own_name) const;
  // All tensors whose names start with `start`, keyed by the rest of their names.
  NamedArrays tensors(const std::string& start) const;
};

struct Verdict {
  bool ok = false;
  bool skipped = false;
  double worst = 0;                // largest error divided by the allowed error
  std::string reason;              // why it failed or was skipped
  std::vector<std::string> notes;  // information that does not affect the verdict
};

// Reads all cases of a directory: ops.json first, then train_*.json in the order of names. Throws a
// UserError if a file cannot be read or has another format.
std::vector<ReferenceCase> read_reference_directory(const std::string& directory);

// Never throws: any error becomes a failed case with the text of the error.
Verdict replay(const ReferenceCase& reference, const DeviceOptions& where,
               const Tolerance& tolerance);

// ---- the two kinds of cases. They throw; Unsupported skips the case.

struct Unsupported {
  std::string reason;
};

void replay_op(const ReferenceCase& reference, const DeviceOptions& where,
               const Tolerance& tolerance, Comparison& comparison);
void replay_training(const ReferenceCase& reference, const DeviceOptions& where,
                     const Tolerance& tolerance, Comparison& comparison,
                     std::vector<std::string>& notes);

// compile() for models whose parameters are named at run time: `rename` maps paths in the model to
// names.
template <class M, class Rename, class F>
Training<M> compile_renamed(M model, const Rename& rename, const TrainingOptions& options,
                            F&& function) {
  auto shared = std::make_shared<M>(std::move(model));
  detail::FoundParams params = detail::find_params(*shared);
  for (auto& [name, param] : params) name = rename(std::as_const(name));
  return Training<M>(
      shared,
      detail::compile_training(params, options, detail::bind_model(shared, function)).take());
}

}  // namespace tensorgrad::tool
