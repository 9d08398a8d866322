// Checkpoints: everything that training needs to resume, in one safetensors file. A file is
// complete or missing. A checksum detects a file that was truncated or changed later.
//   tg::save_checkpoint("model.safetensors", {.parameters = train.download(),
//                                             .optimizer = train.optimizer_state(),
//                                             .step = train.steps()});
//   const tg::Checkpoint last = tg::load_checkpoint("model.safetensors");
//   train.restore(last.parameters, last.optimizer);
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/array.h"

namespace tensorgrad {

// The contents of a checkpoint file.
struct Checkpoint {
  NamedArrays parameters;      // stored under their own names, so that other programs can read them
  NamedArrays optimizer = {};  // stored as optimizer/NAME; empty: no state, e.g. for inference only
  std::int64_t step = 0;
  std::uint32_t seed = 0;
  std::int64_t position = 0;                     // position in the data: examples seen
  std::string tokenizer = {};                    // Tokenizer::to_json()
  std::string config = {};                       // model config as JSON
  std::map<std::string, std::string> more = {};  // any other texts to keep
};

// Writes a checkpoint: to a temporary file, which is synced to the disk and then renamed. The same
// checkpoint gives the same bytes.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

// Which part of a checkpoint to load.
enum class CheckpointPart : std::uint8_t {
  everything,
  model,  // without the optimizer state, which takes twice the memory of the parameters
};
// Reads a checkpoint. Throws a UserError that names the file if it is truncated, changed or not a
// checkpoint. A safetensors file that holds only parameters is accepted: no optimizer state, no
// config, step 0. The file is read once, directly into the arrays.
Checkpoint load_checkpoint(const std::filesystem::path& path,
                           CheckpointPart part = CheckpointPart::everything);

// A folder with the last few checkpoints of a run: step-00001500.safetensors.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder, int keep = 3);

  // Saves a checkpoint and returns its path. Once it is safe on the disk, removes old ones: of this
  // step and earlier steps, the last `keep` stay. Also removes unfinished files of writers that
  // were killed.
  std::filesystem::path save(const Checkpoint& checkpoint) const;

  struct Found {
    std::filesystem::path path;
    Checkpoint checkpoint;
    std::vector<std::string> unreadable;  // errors of newer files, which were skipped
  };
  // Returns the newest checkpoint that is valid, or nothing if there are no checkpoints. Throws if
  // all of them are damaged. Also throws if the system cannot read one: that file may be valid, so
  // an older one would be the wrong choice.
  std::optional<Found> newest(CheckpointPart part = CheckpointPart::everything) const;
  // Lists the checkpoints, the oldest first.
  std::vector<std::filesystem::path> files() const;

 private:
  std::filesystem::path folder_;
  int keep_;
};

}  // namespace tensorgrad
