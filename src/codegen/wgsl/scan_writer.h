// Shared by the shaders of the selective scan and of its gradient. A workgroup walks along one
// sequence with a block of channels. A thread keeps four states of one channel in registers (more
// where a channel has more than 512). Sums over states or channels go through workgroup memory, for
// several steps at once, in a fixed order.
#pragma once

#include <algorithm>
#include <string>

#include "codegen/wgsl/emitters.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

class ScanWriter {
 public:
  ScanWriter(const Emitting& in, const ir::SelectiveScanCore& core, bool gradient);

 protected:
  // Loads, in the order of the kernel.
  enum Operand : std::size_t { kU, kDelta, kALog, kB, kC, kD, kStates, kG };

  std::int64_t threads() const { return Q_ * CH_; }
  std::int64_t quads() const { return Q_ * W_; }  // quads of states per channel
  // Floats of a tile, plus the values that are read once per block.
  std::int64_t tile_floats() const {
    return T_ * ((gradient_ ? 3 : 2) * CH_ + (staged_ ? 8 * quads() : 0)) + CH_;
  }

  // Declares memory, the functions that read operands, and tiles. Must come first.
  void begin(Source& source) const;
  // Computes which states a thread owns, and their A. Beyond the last channel and the last state,
  // all operands except A are zero.
  void place_thread(Source& source) const;

  // A tile holds the operands of T steps from `begin` on, in workgroup memory. Steps after `end`
  // have size 0 and do not change the state. Where a thread loads few elements, fetch_tile
  // prefetches them into registers while another tile is processed, and load_tile copies them from
  // there.
  void declare_tile(Source& source) const;
  void fetch_tile(Source& source, const std::string& begin, const std::string& end) const;
  void load_tile(Source& source) const;

  // Step i of the tile: its inputs, the values that do not depend on the state, and the new state
  // as text. Names end in the quad index of the thread.
  void read_step(Source& source, bool forward_only = false) const;
  void discretise(Source& source, std::int64_t w) const;
  std::string advanced(std::int64_t w) const;

  // Emits var name = the sum over the threads of a channel of `array`, at step j / CH, channel j %
  // CH.
  void sum_states(Source& source, const char* name, const char* array, const char* j) const;

  // Stores at `part` elements after the start of the result; four along n, as far as they exist.
  void store(Source& source, const std::string& address, std::int64_t part,
             const std::string& value) const;
  void store_quad(Source& source, const std::string& address, std::int64_t w, std::int64_t part,
                  const std::string& value) const;
  // A piece that fills a part of the result with zeros, or with an operand [B, L, E] times D.
  Piece fill(std::int64_t part, std::int64_t count, const ir::Load* operand) const;

  template <class F>
  void each_quad(F f) const {
    for (std::int64_t w = 0; w < W_; ++w) f(w);
  }

  const Emitting& in_;
  const std::vector<ir::Load>& loads_;
  const ir::SelectiveScanCore& k_;
  const ir::SelectiveScanShape& s_;
  const bool gradient_;
  std::int64_t Q_ = 1, W_ = 1;        // threads per channel, quads per thread
  std::int64_t CH_ = 1, blocks_ = 0;  // channels per workgroup, and blocks of them in E
  bool staged_ = true;                // B and C go through workgroup memory
  bool ragged_ = false;               // some threads have padding states
  std::int64_t T_ = 1;                // steps per tile

 private:
  void note(Source& source, const ir::Load& load) const;
  void declare_reader(Source& source, std::size_t operand) const;
  // Iterations that the threads need to read a tile: its elements [T, CH], and quads of B and C [T,
  // quads].
  std::int64_t wide_turns() const { return ceil_div(T_ * CH_, threads()); }
  std::int64_t narrow_turns() const { return staged_ ? ceil_div(T_ * quads(), threads()) : 0; }
  bool fetches() const { return std::max(wide_turns(), narrow_turns()) <= 4; }
};

}  // namespace tensorgrad::wgsl
