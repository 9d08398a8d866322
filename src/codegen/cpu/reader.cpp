#include "codegen/cpu/reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codegen/cpu/vector_loops.h"
#include "ir/split_axes.h"
#include "support/integers.h"

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

Reader::Reader(const ir::Load& load) : Reader(load, ir::joined_layers(load.map)) {}

Reader::Reader(const ir::Load& load, std::vector<ir::Layer> layers) : load_(load), walk_(layers) {
  if (layers.size() > 1) return;
  coarse_ = std::move(layers[0]);
  if (!coarse_.guards.empty()) return;
  const int rank = coarse_.shape.rank();
  const auto& coef = coarse_.address.coef;
  if (std::all_of(coef.begin(), coef.begin() + rank, [](std::int64_t c) { return c == 0; }))
    form_ = Form::splat;
  else if (rank == 1 && coef[0] == 1 && load.source == ir::Load::Source::memory)
    form_ = Form::direct;
  else
    form_ = Form::strided;
}

std::int64_t Reader::period() const {
  const int rank = coarse_.shape.rank();
  if (form_ == Form::direct || form_ == Form::splat || rank < 2) return 0;
  const auto repeats = [&](const ir::Affine& form) {
    return std::all_of(form.coef.begin(), form.coef.begin() + rank - 1,
                       [](std::int64_t c) { return c == 0; });
  };
  const bool all =
      repeats(coarse_.address) && std::all_of(coarse_.guards.begin(), coarse_.guards.end(),
                                              [&](const ir::Guard& g) { return repeats(g.form); });
  return all ? coarse_.shape[rank - 1] : 0;
}

bool Reader::overlaps(const ir::Store& store) const {
  const ir::Place& place = store.place;
  if (load_.source != ir::Load::Source::memory || load_.place.space != place.space) return false;
  if (form_ == Form::general) return true;
  std::int64_t low = load_.place.offset + coarse_.address.offset, high = low;
  for (int d = 0; d < coarse_.shape.rank(); ++d) {
    const std::int64_t far = coarse_.address.coef[usize(d)] * (coarse_.shape[d] - 1);
    (far < 0 ? low : high) += far;
  }
  return low < place.offset + store.elements && place.offset <= high;
}

void Reader::copy_run(const float* base, std::int64_t address, std::int64_t stride, int n,
                      float* to) const {
  switch (load_.source) {
    case ir::Load::Source::memory: {
      const float* from = base + address;
      if (stride == 1)
        copy_floats(from, n, to);
      else if (stride == 0)
        std::fill_n(to, n, *from);
      else if (stride == 2)
        every_second(from, 0, 1, n, to);
      else
        for (int i = 0; i < n; ++i) to[i] = from[i * stride];
      return;
    }
    case ir::Load::Source::iota:
      iota_loop(static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(stride), to, n);
      return;
    case ir::Load::Source::constant:
      std::fill_n(to, n, element(load_.value, load_.dtype));
      return;
  }
}

const float* Reader::read(const Memory& memory, std::int64_t begin, int n, float* out) const {
  if (n == 0) return out;
  const float* base = load_.source == ir::Load::Source::memory ? memory.at(load_.place) : nullptr;
  switch (form_) {
    case Form::direct:
      return base + coarse_.address.offset + begin;
    case Form::splat:
      copy_run(base, coarse_.address.offset, 0, n, out);
      return out;
    case Form::strided: {
      float* to = out;
      const float* whole = nullptr;
      each_rectangle(begin, n, [&](const Rectangle& r) {
        if (base && r.stride == 1 && r.width == n)
          whole = base + r.address;
        else if (base && r.stride == 1)
          for (int i = 0; i < r.height; ++i)
            copy_floats(base + r.address + i * r.down, r.width, to + i * r.width);
        else if (base && r.stride == 2)
          every_second(base + r.address, r.down, r.height, r.width, to);
        else
          for (int i = 0; i < r.height; ++i)
            copy_run(base, r.address + i * r.down, r.stride, r.width, to + i * r.width);
        to += r.width * r.height;
      });
      return whole ? whole : out;
    }
    case Form::general: {
      const float* whole = nullptr;
      walk_.each(
          begin, n,
          [&](int at, std::int64_t address, std::int64_t stride, int run) {
            if (run == n && stride == 1 && base)
              whole = base + address;
            else
              copy_run(base, address, stride, run, out + at);
          },
          [&](int at, double fill, int run) {
            std::fill_n(out + at, run, element(fill, load_.dtype));
          });
      return whole ? whole : out;
    }
  }
  return out;
}

}  // namespace tensorgrad::cpu
