// Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
#pragma once

#include <array>
#include <cstdint>

namespace tensorgrad::reference {

std::array<std::uint32_t, 2> threefry(std::array<std::uint32_t, 2> key,
                                      std::array<std::uint32_t, 2> counter);

}  // namespace tensorgrad::reference
