// Checkpoints as bytes, for the folder of checkpoints, the tests and the fuzzers. A checkpoint is a
// safetensors file whose header begins with kCheckpointFront and 64 digits: the SHA-256 of the
// whole file with zeros in their place. Parameters keep their own names, so that other programs can
// read them. Entries of the optimizer are named "optimizer/NAME".
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "tensorgrad/checkpoint.h"
#include "tensorgrad/safetensors.h"

namespace tensorgrad::io {

inline constexpr std::string_view kCheckpointFront =
    R"({"__metadata__":{"format":"tensorgrad checkpoint","version":"1","sha256":")";
inline constexpr std::size_t kDigestDigits = 64;

// `name` is the file name to use in errors.
std::string format_checkpoint(const Checkpoint& checkpoint, std::string_view name);
Checkpoint parse_checkpoint(std::string_view bytes, std::string_view name);

// All tensors of a safetensors file as stored, and the error that load_checkpoint() would report.
// Throws if the file is not a safetensors file.
struct TensorsAndDamage {
  TensorFile file;
  std::string damage;  // empty: none
};
TensorsAndDamage read_with_damage(const std::filesystem::path& path);

// Position of the digits if the bytes begin like a checkpoint of ours; npos otherwise.
std::size_t digest_place(std::string_view bytes);
// Computes the digits that belong there.
std::string checkpoint_digest(std::string_view bytes);

}  // namespace tensorgrad::io
