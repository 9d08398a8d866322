// The inner loops of the selective scan, compiled for every SIMD target and chosen at run time.
// Lanes are channels: sums over states never cross lanes, and sums over channels cross them once
// per block.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Channels per block. The arrays below have rows of that many floats; elements beyond `width` are
// zero (also in delta and A_log).
inline constexpr std::int64_t kScanChannels = 64;

// T steps of one block of channels.
struct ScanSteps {
  std::int64_t T, N, width;
  bool zoh;
  const float* u;   // [T, channels]
  const float* dl;  // [T, channels]: softplus(delta)
  const float* A;   // [N, channels]
  const float* B;   // [T, N]
  const float* C;   // [T, N]
  const float* D;   // [channels]
};

struct ScanGradient {
  const float* dy;     // [T, channels]
  const float* slope;  // [T, channels]: derivative of softplus at delta
  const float* h;      // [N, channels]: state before the first step
  float* later;        // [N, channels]: gradient of the state after the last step; on return, of h
  float* dA;           // [N, channels], accumulated
  float* du;           // [T, channels]
  float* ddelta;       // [T, channels]
  float* dB;           // [T, N]: sum over the block
  float* dC;           // [T, N]
  float* work;         // scan_work(T) floats
};

// Per step: three rows of channels, plus four vectors (16 floats) for each of up to 8 states.
inline std::int64_t scan_work(std::int64_t T) {
  return 3 * T * kScanChannels + (4 * T + 1) * 8 * 16;
}

// dl = softplus(delta), and its derivative unless `derivative` is null.
void scan_softplus(const float* delta, std::int64_t count, float* dl, float* derivative);
// A = -exp(A_log), clamped to at most -1e-30, so that dividing by A gives the limit for A = 0.
void scan_decay(const float* A_log, std::int64_t count, float* A);
// to[c][r] = from[r][c]
void scan_turn(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               float* to, std::int64_t to_stride);
// Writes y [T, channels]. h [N, channels] is the state before the steps, and after them on return.
void scan_forward(const ScanSteps& steps, float* h, float* y);
void scan_backward(const ScanSteps& steps, const ScanGradient& gradient);

}  // namespace tensorgrad::cpu
