// State spaces: the selective scan and the ops around it.
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

// u and delta [B, L, E], A_log [E, N], B and C [B, L, N], D [E]
std::vector<Arg> scan_args(std::int64_t B, std::int64_t L, std::int64_t E, std::int64_t N) {
  return {real({B, L, E}),        real({B, L, E}),        real({E, N}, -1.5, 1.5),
          real({B, L, N}, -1, 1), real({B, L, N}, -1, 1), real({E})};
}

void add_selective_scans(Samples& rows) {
  const auto add_args = [&](const std::string& variant, const std::vector<Arg>& args,
                            std::int64_t chunk, const std::function<Tensors(In)>& views = {}) {
    for (const auto& [name, rule] :
         {std::pair("", Discretisation::euler), {"_zoh", Discretisation::zoh}}) {
      const SelectiveScanOptions options{.discretisation = rule, .chunk = chunk};
      rows.push_back({"selective_scan", variant + name, args, [=](In operands) {
                        const Tensors x = views ? views(operands) : operands;
                        return selective_scan(x[0], x[1], x[2], x[3], x[4], x[5], options);
                      }});
    }
  };
  const auto add = [&](const char* variant, int B, int L, int E, int N, int chunk) {
    add_args(variant, scan_args(B, L, E, N), chunk);
  };
  add("one_of_all", 1, 1, 1, 1, 16);
  add("one_step", 3, 1, 5, 3, 16);
  add("one_channel", 1, 5, 1, 4, 7);
  add("one_state", 1, 5, 5, 1, 7);
  add("short", 2, 5, 5, 3, 16);
  add("chunk_1", 1, 5, 5, 3, 1);
  add("chunk_7", 1, 40, 5, 3, 7);
  add("chunk_of_all", 1, 40, 5, 4, 40);
  add("chunk_64", 2, 40, 5, 4, 64);
  add("chunk_256", 1, 40, 3, 17, 256);
  add("chunks_that_fit", 1, 32, 5, 4, 16);
  add("odd_states", 3, 5, 33, 17, 1);
  add("many_channels", 1, 40, 70, 4, 16);
  add("many_states", 1, 5, 70, 64, 16);
  add("long_batch", 3, 40, 33, 16, 16);
  add("two_long_chunks", 1, 300, 3, 3, 256);
  add("hundreds_of_states", 1, 5, 3, 300, 16);
  add("most_states", 1, 5, 2, 601, 4);
  // Sizes where a GPU workgroup has several blocks of channels.
  add("many_sequences", 600, 2, 70, 4, 16);
  add("most_channels", 1, 3, 40000, 1, 2);
  add("no_sequence", 0, 5, 5, 3, 16);
  add("no_steps", 2, 0, 5, 3, 16);
  add("no_channels", 2, 5, 0, 3, 16);
  add("no_states", 2, 5, 5, 0, 16);

  // Steps of almost 0 and of 30; states that decay at once and states that hardly decay.
  std::vector<Arg> args = scan_args(2, 20, 5, 4);
  args[1] = real({2, 20, 5}, -30, 30);
  args[2] = real({5, 4}, -4, -2);
  add_args("far_delta", args, 7);
  args[1] = given({2, 20, 5}, {-30, 30, 0, -10, 10, -100, -60, 3});
  args[2] = given({5, 4}, {-12, -5, -2, -1});
  add_args("given_delta", args, 7);
  args = scan_args(2, 20, 5, 4);
  args[2] = real({5, 4}, -9, 5);
  add_args("spread_decay", args, 7);

  // As in Mamba: B and C are columns of one projection, u and z of another.
  add_args("of_projections",
           {real({2, 20, 10}), real({2, 20, 5}), real({5, 4}, -1, 1), real({2, 20, 11}, -1, 1),
            real({5})},
           7, [](In x) -> Tensors {
             return {narrow(x[0], 2, 0, 5), x[1], x[2], narrow(x[3], 2, 3, 4),
                     narrow(x[3], 2, 7, 4), x[4]};
           });
  add_args("of_permuted",
           {real({5, 20, 2}), real({20, 2, 5}), real({4, 5}, -1, 1), real({4, 2, 20}, -1, 1),
            real({2, 4, 20}, -1, 1), real({5})},
           7, [](In x) -> Tensors {
             return {permute(x[0], {2, 1, 0}), permute(x[1], {1, 0, 2}), permute(x[2], {1, 0}),
                     permute(x[3], {1, 2, 0}), permute(x[4], {0, 2, 1}), x[5]};
           });
  add_args("of_broadcast",
           {real({20, 1}), real({5}), real({4}, -1, 1), real({2, 1, 4}, -1, 1), real({}, -1, 1),
            real({})},
           7, [](In x) -> Tensors {
             return {broadcast_to(x[0], {2, 20, 5}), broadcast_to(x[1], {2, 20, 5}),
                     broadcast_to(x[2], {5, 4}),     broadcast_to(x[3], {2, 20, 4}),
                     broadcast_to(x[4], {2, 20, 4}), broadcast_to(x[5], {5})};
           });
  // Maps with guards and with two layers.
  add_args("of_padded",
           {real({2, 17, 5}), real({2, 20, 5}), real({5, 4}, -1, 1), real({2, 20, 3}, -1, 1),
            real({20, 8}, -1, 1), real({5})},
           7, [](In x) -> Tensors {
             return {pad(x[0], 1, 3, 0),
                     flip(x[1], 1),
                     x[2],
                     pad(x[3], 2, 0, 1),
                     reshape(permute(x[4], {1, 0}), {2, 20, 4}),
                     x[5]};
           });
  add_args("of_numbers", {real({2, 20, 5}), real({2, 20, 5}), real({5, 4}, -1, 1)}, 7,
           [](In x) -> Tensors {
             return {x[0] * 0.5f,           x[1] - 1.0f,      x[2],
                     full({2, 20, 4}, 0.5), ones({2, 20, 4}), zeros({5})};
           });
}

}  // namespace

Samples state_space_samples() {
  Samples rows;
  add_selective_scans(rows);
  return rows;
}

}  // namespace tensorgrad::checks
