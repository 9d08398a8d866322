#include "codegen/cpu/reader.h"

#include <algorithm>
#include <cstring>

namespace tensorgrad::cpu {

namespace {

float int_bits(std::int32_t value) {
  float bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

float element(double value, DType dtype) {
  if (dtype == DType::f32) return static_cast<float>(value);
  if (dtype == DType::boolean) return int_bits(value != 0);
  return int_bits(static_cast<std::int32_t>(value));
}

Reader::Reader(const ir::Load& load) : load_(load), walk_(load.map) {
  if (!load.map.is_strided()) return;
  coarse_ = ir::coarsen(load.map.layers()[0]);
  const int rank = coarse_.shape.rank();
  const auto& coef = coarse_.address.coef;
  if (std::all_of(coef.begin(), coef.begin() + rank, [](std::int64_t c) { return c == 0; }))
    form_ = Form::splat;
  else if (rank == 1 && coef[0] == 1 && load.source == ir::Load::Source::memory)
    form_ = Form::direct;
  else
    form_ = Form::strided;
}

template <class F>
void Reader::each_run(std::int64_t begin, int n, F f) const {
  const int rank = coarse_.shape.rank();
  const auto& coef = coarse_.address.coef;
  std::int64_t position[kMaxRank];
  std::int64_t rest = begin, address = coarse_.address.offset;
  for (int d = rank - 1; d >= 0; --d) {
    position[d] = rest % coarse_.shape[d];
    rest /= coarse_.shape[d];
    address += position[d] * coef[static_cast<std::size_t>(d)];
  }
  const std::int64_t inner = coarse_.shape[rank - 1];
  const std::int64_t stride = coef[static_cast<std::size_t>(rank - 1)];
  while (n > 0) {
    const int run = static_cast<int>(std::min<std::int64_t>(n, inner - position[rank - 1]));
    f(address, stride, run);
    n -= run;
    if (n == 0) return;
    address -= position[rank - 1] * stride;
    position[rank - 1] = 0;
    for (int d = rank - 2; d >= 0; --d) {
      address += coef[static_cast<std::size_t>(d)];
      if (++position[d] < coarse_.shape[d]) break;
      address -= coef[static_cast<std::size_t>(d)] * coarse_.shape[d];
      position[d] = 0;
    }
  }
}

void Reader::addresses(std::int64_t begin, int n, std::int64_t* out) const {
  if (coarse_.shape.rank() == 0) {
    std::fill_n(out, n, coarse_.address.offset);
    return;
  }
  each_run(begin, n, [&](std::int64_t address, std::int64_t stride, int run) {
    for (int i = 0; i < run; ++i) *out++ = address + i * stride;
  });
}

void Reader::copy_run(const float* base, std::int64_t address, std::int64_t stride, int n, float* to) const {
  switch (load_.source) {
    case ir::Load::Source::memory: {
      const float* from = base + address;
      if (stride == 1)
        std::copy_n(from, n, to);
      else if (stride == 0)
        std::fill_n(to, n, *from);
      else
        for (int i = 0; i < n; ++i) to[i] = from[i * stride];
      return;
    }
    case ir::Load::Source::iota:
      for (int i = 0; i < n; ++i) to[i] = int_bits(static_cast<std::int32_t>(address + i * stride));
      return;
    case ir::Load::Source::constant: std::fill_n(to, n, element(load_.value, load_.dtype)); return;
  }
}

const float* Reader::read(const Memory& memory, std::int64_t begin, int n, float* out) const {
  if (n == 0) return out;
  const float* base = load_.source == ir::Load::Source::memory ? memory.at(load_.place) : nullptr;
  switch (form_) {
    case Form::direct: return base + coarse_.address.offset + begin;
    case Form::splat: copy_run(base, coarse_.address.offset, 0, n, out); return out;
    case Form::strided: {
      float* to = out;
      each_run(begin, n, [&](std::int64_t address, std::int64_t stride, int run) {
        copy_run(base, address, stride, run, to);
        to += run;
      });
      return out;
    }
    case Form::general:
      walk_.each(
          begin, n,
          [&](int at, std::int64_t address, std::int64_t stride, int run) { copy_run(base, address, stride, run, out + at); },
          [&](int at, double fill, int run) { std::fill_n(out + at, run, element(fill, load_.dtype)); });
      return out;
  }
  return out;
}

}  // namespace tensorgrad::cpu
