// Checkpoints as bytes, for the folder of checkpoints, the tests and the fuzzers.
// A checkpoint is a safetensors file whose header begins with kCheckpointFront and 64 digits: the
// SHA-256 of the whole file with zeros in their place. Parameters go by their own names, so that
// other programs can read them; entries of the optimizer by "optimizer/NAME".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tensorgrad/checkpoint.h"

namespace tensorgrad::io {

inline constexpr std::string_view kCheckpointFront =
    R"({"__metadata__":{"format":"tensorgrad checkpoint","version":"1","sha256":")";
inline constexpr std::size_t kDigestDigits = 64;

// `name` stands for the file in errors.
std::string format_checkpoint(const Checkpoint& checkpoint, std::string_view name);
Checkpoint parse_checkpoint(std::string_view bytes, std::string_view name);

// Where the digits are, if the bytes begin like a checkpoint of ours; npos if not.
std::size_t digest_place(std::string_view bytes);
// The digits that belong there.
std::string checkpoint_digest(std::string_view bytes);

}  // namespace tensorgrad::io
