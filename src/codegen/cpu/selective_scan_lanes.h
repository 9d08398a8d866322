// The innermost loops of the selective scan, compiled for every SIMD target and chosen at run time.
// Lanes are channels: no sum over states crosses them, and those over channels do so once per
// block.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Channels of a block. Arrays below have rows of that many floats; beyond `width` they are zeros
// (delta, A_log too).
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
  const float* slope;  // [T, channels]: the derivative of softplus at delta
  const float* h;      // [N, channels]: before the first step
  float* later;   // [N, channels]: the gradient of the state behind the last step; on return, of h
  float* dA;      // [N, channels], added to
  float* du;      // [T, channels]
  float* ddelta;  // [T, channels]
  float* dB;      // [T, N]: sums over the block
  float* dC;      // [T, N]
  float* work;    // scan_work(T) floats
};

// Three rows of channels per step, and for up to 8 states of a vector (16 floats) four more of
// those.
inline std::int64_t scan_work(std::int64_t T) {
  return 3 * T * kScanChannels + (4 * T + 1) * 8 * 16;
}

// dl = softplus(delta), and its derivative unless that is null.
void scan_softplus(const float* delta, std::int64_t count, float* dl, float* derivative);
// A = -exp(A_log), at most -1e-30: divided by, it gives the limit for A = 0.
void scan_decay(const float* A_log, std::int64_t count, float* A);
// to[c][r] = from[r][c]
void scan_turn(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               float* to, std::int64_t to_stride);
// y [T, channels]; h [N, channels] is the state before, and after.
void scan_forward(const ScanSteps& steps, float* h, float* y);
void scan_backward(const ScanSteps& steps, const ScanGradient& gradient);

}  // namespace tensorgrad::cpu
