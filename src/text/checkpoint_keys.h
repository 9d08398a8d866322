// Keys of a trainer's entries in Checkpoint::more.
#pragma once

namespace tensorgrad::text {

inline constexpr const char* kData = "data";        // TextData::fingerprint() of the training text
inline constexpr const char* kOptions = "options";  // options that must not change on resuming

}  // namespace tensorgrad::text
