// Properties of any bytes that are read as a checkpoint. Random bytes never have a valid digest, so
// they are also tried with the right one.
#pragma once

#include <string>
#include <string_view>

#include "io/checkpoint_bytes.h"
#include "tests/fuzzers/safetensors_check.h"

namespace tensorgrad::fuzzers {

inline std::string check_checkpoint_as_it_is(std::string_view bytes) {
  Checkpoint checkpoint;
  try {
    checkpoint = io::parse_checkpoint(bytes, "input");
  } catch (const UserError& error) {
    return check_error(error.what());
  }
  // Files of other programs may have parameters with names of optimizer state.
  for (const auto& [name, array] : checkpoint.parameters)
    if (name.starts_with("optimizer/")) return "";
  const std::string written = io::format_checkpoint(checkpoint, "input");
  const Checkpoint again = io::parse_checkpoint(written, "input");
  if (!same(again, checkpoint)) return "what was written is not what was read";
  if (io::format_checkpoint(again, "input") != written) return "written again, the bytes differ";
  return "";
}

// The failure; empty if there is none.
inline std::string check_checkpoint(std::string_view bytes) {
  const std::string wrong = check_checkpoint_as_it_is(bytes);
  if (!wrong.empty()) return wrong;
  std::string right = with_right_length(bytes);
  const std::size_t place = io::digest_place(right);
  if (place != right.npos) right.replace(place, io::kDigestDigits, io::checkpoint_digest(right));
  return check_checkpoint_as_it_is(right);
}

}  // namespace tensorgrad::fuzzers
