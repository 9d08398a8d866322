// Checkpoints: everything that training needs to go on, in one safetensors file. A file is complete or not there; one
// that was torn or altered later is told apart by its checksum.
//   tg::save_checkpoint("model.safetensors", {.parameters = train.download(), .optimizer = train.optimizer_state(),
//                                             .step = train.steps()});
//   const tg::Checkpoint last = tg::load_checkpoint("model.safetensors");
//   train.upload(last.parameters), train.upload_optimizer_state(last.optimizer);
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/array.h"

namespace tensorgrad {

struct Checkpoint {
  NamedArrays parameters;      // in the file by their own names, for other programs to read
  NamedArrays optimizer = {};  // by optimizer/NAME; empty: none, as for a model that is only used
  std::int64_t step = 0;
  std::uint32_t seed = 0;
  std::int64_t position = 0;   // in the data: examples seen
  std::string tokenizer = {};  // Tokenizer::to_json()
  std::string config = {};     // of the model, as JSON
  std::map<std::string, std::string> more = {};  // whatever else is to be kept
};

// Written beside its place, brought to the disk, then renamed. The same checkpoint gives the same bytes.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
// A file that is torn, altered or no checkpoint is a UserError that names it. A safetensors file of parameters alone is
// read as such: no optimizer, no config, step 0.
Checkpoint load_checkpoint(const std::filesystem::path& path);

// A folder that holds the last few checkpoints of a run: step-00001500.safetensors.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder, int keep = 3);

  // Saves one and, once it is safe on the disk, removes those that are too old: of its step and those before, the last
  // `keep` stay. What killed writers left is removed, too. Returns its path.
  std::filesystem::path save(const Checkpoint& checkpoint) const;

  struct Found {
    std::filesystem::path path;
    Checkpoint checkpoint;
    std::vector<std::string> unreadable;  // what is wrong with newer ones, which were passed over
  };
  // The newest that is whole; none if there are none at all. An error when all are damaged, or when the system does not
  // let one be read: going back would be no cure.
  std::optional<Found> newest() const;
  // Those there are, the oldest first.
  std::vector<std::filesystem::path> files() const;

 private:
  std::filesystem::path folder_;
  int keep_;
};

}  // namespace tensorgrad
