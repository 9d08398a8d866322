// What a trainer's checkpoint keeps beside the rest, in Checkpoint::more.
#pragma once

namespace tensorgrad::text {

inline constexpr const char* kData = "data";        // TextData::fingerprint() of what it was trained on
inline constexpr const char* kOptions = "options";  // how, as far as going on must not change it

}  // namespace tensorgrad::text
