#include <algorithm>
#include <variant>

#include "codegen/wgsl/emitters.h"
#include "codegen/wgsl/functions.h"
#include "support/fail.h"

namespace tensorgrad::wgsl {

std::string Emitting::title(const char* what) const {
  return fmt::format("{} {}: {}{}", ir::kind_name(kernel), ir::space_text(kernel, "x"), kernel.name,
                     what);
}

namespace {

bool is_guarded(const ir::Store& store, bool guarded) {
  return guarded &&
         (store.place.space == ir::Space::parameters || store.place.space == ir::Space::state);
}

}  // namespace

void note_stores(Source& source, const std::vector<ir::Store>& stores, bool guarded) {
  for (const ir::Store& store : stores) {
    source.note(region(store.place.space), store.dtype, true);
    if (is_guarded(store, guarded)) source.note(Region::faults, DType::i32, false);
  }
}

std::string store_condition(const Source& source, const ir::Store& store, bool guarded) {
  return is_guarded(store, guarded) ? source.no_fault() : "";
}

void store_guarded(Source& source, const ir::Store& store, bool guarded, const std::string& address,
                   const std::string& value) {
  const std::string condition = store_condition(source, store, guarded);
  if (!condition.empty()) source.open(fmt::format("if ({}) {{", condition));
  source.store_element(region(store.place.space), address, store.dtype, value);
  if (!condition.empty()) source.close();
}

std::string identity_text(Source& source, ir::Combine combine, DType dtype) {
  if (dtype == DType::boolean)
    return combine == ir::Combine::min || combine == ir::Combine::mul ? "true" : "false";
  const double value = ir::identity(combine, dtype);
  return literal(source, value, dtype);
}

// With few threads, each reads all values. With many, sixteen threads combine their shares first.
std::string GroupReduction::join(ir::Combine combine, DType dtype, const std::string& value) {
  if (threads_ == 1) return value;
  const char* const kind = dtype == DType::f32 ? "f" : dtype == DType::i32 ? "i" : "b";
  const std::string one = type_name(dtype, 1);
  const std::string all = fmt::format("shared_{}{}", kind, turn_ % 2),
                    some = fmt::format("joined_{}{}", kind, turn_ % 2);
  ++turn_;
  source_.workgroup(all, one, invocations_);
  source_.line("{}[thread] = {};", all, value);
  source_.line("workgroupBarrier();");
  std::string from = all, first = first_;
  std::int64_t count = threads_;
  if (threads_ > 16) {
    source_.workgroup(some, one, 16 * invocations_ / threads_);
    const std::string sixteen =
        source_.let(fmt::format("{} / {}u", first_, threads_ / 16), "first");
    source_.open(fmt::format("if ({} < 16u) {{", lane_));
    source_.line("var part = {}[thread];", all);
    source_.open(fmt::format("for (var j = 16u; j < {}u; j += 16u) {{", threads_));
    source_.line("part = {};",
                 combined(source_, combine, dtype, 1, "part", fmt::format("{}[thread + j]", all)));
    source_.close();
    source_.line("{}[{} + {}] = part;", some, sixteen, lane_);
    source_.close();
    source_.line("workgroupBarrier();");
    from = some, first = sixteen, count = 16;
  }
  const std::string out = source_.fresh("r");
  source_.line("var {} = {}[{}];", out, from, first);
  source_.open(fmt::format("for (var j = 1u; j < {}u; j++) {{", count));
  source_.line("{} = {};", out,
               combined(source_, combine, dtype, 1, out, fmt::format("{}[{} + j]", from, first)));
  source_.close();
  return out;
}

bool checks_ids(const ir::Kernel& kernel) {
  bool out = kernel.is<ir::SegmentSumKernel>() || kernel.is<ir::ScatterAddKernel>();
  ir::for_each_program(kernel, [&](const ir::ScalarProgram& program) {
    for (const ir::Instr& in : program.code)
      out = out || in.op == ir::ScalarOp::gather || in.op == ir::ScalarOp::check_index;
  });
  return out;
}

namespace {

// Elements that threads index, besides those of loads and stores. No thread of a sequence kernel
// indexes all scores, or the steps of all states.
std::int64_t counted(const ir::Lines& lines) { return lines.elements(); }
std::int64_t counted(const ir::AttentionCore&) { return 0; }
std::int64_t counted(const ir::SelectiveScanCore&) { return 0; }
std::int64_t counted(const ir::MatmulKernel& k) {
  std::int64_t out = k.batches * k.M * k.K;
  for (const ir::MatmulPart& part : k.parts)
    out = std::max({out, k.batches * k.M * part.N, k.batches * k.K * part.N});
  return out;
}

// Shaders index with 32 bits, some of them signed.
void check_size(const Emitting& in) {
  std::int64_t largest = std::visit([](const auto& core) { return counted(core); }, in.kernel.core);
  ir::for_each_store(in.kernel,
                     [&](const ir::Store& store) { largest = std::max(largest, store.elements); });
  for (const ir::Load& load : in.kernel.loads)
    for (const ir::Layer& layer : load.map.layers())
      largest = std::max(largest, layer.shape.count());
  if (largest >= std::int64_t{1} << 31)
    throw DeviceError(fmt::format("webgpu: a kernel has {} elements; the limit is 2^31 - 1: {}",
                                  largest, in.title()));
}

}  // namespace

std::vector<Piece> emit_pieces(const Emitting& in) {
  check_size(in);
  return std::visit([&](const auto& core) { return emit_core(in, core); }, in.kernel.core);
}

}  // namespace tensorgrad::wgsl
