// Replays reference values (the format is in tests/fixtures/README.md) through the public
// interface: compile, step, read. One case in, one verdict out.
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
  std::string prefix;  // of its tensors' names in the file
  std::shared_ptr<const TensorFile> file;

  // The tensor of that name, without the prefix. A UserError when it is missing.
  const Array& tensor(const std::string& own_name) const;
  // All tensors whose names start so, by the rest of their names.
  NamedArrays tensors(const std::string& start) const;
};

struct Verdict {
  bool ok = false;
  bool skipped = false;
  double worst = 0;                // largest error divided by what is allowed
  std::string reason;              // why it failed or was skipped
  std::vector<std::string> notes;  // worth knowing, not counted
};

// All cases of a directory: ops.json first, then train_*.json in the order of names. A UserError
// when something cannot be read or is not of the format.
std::vector<ReferenceCase> read_reference_directory(const std::string& directory);

// Never throws: an error of any kind is a failed case with the error's text.
Verdict replay(const ReferenceCase& reference, const DeviceOptions& where,
               const Tolerance& tolerance);

// ---- the two kinds. They throw; Unsupported means that the case is skipped.

struct Unsupported {
  std::string reason;
};

void replay_op(const ReferenceCase& reference, const DeviceOptions& where,
               const Tolerance& tolerance, Comparison& comparison);
void replay_training(const ReferenceCase& reference, const DeviceOptions& where,
                     const Tolerance& tolerance, Comparison& comparison,
                     std::vector<std::string>& notes);

// compile() for models whose parameters get their names at run time: `rename` makes them from
// the paths in the model.
template <class M, class Rename, class F>
Training<M> compile_renamed(M model, const Rename& rename, const TrainingOptions& options,
                            F&& function) {
  auto shared = std::make_shared<M>(std::move(model));
  detail::FoundParams params = detail::find_params(*shared);
  for (auto& [name, param] : params) name = rename(std::as_const(name));
  auto made = detail::compile_training(params, options, detail::bind_model(shared, function));
  return Training<M>(shared, made.session, made.program);
}

}  // namespace tensorgrad::tool
