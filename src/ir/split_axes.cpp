#include "ir/split_axes.h"

#include <algorithm>
#include <utility>

#include "support/integers.h"

namespace tensorgrad::ir {

namespace {

using Digit = SplitMap::Digit;
using Form = SplitMap::Form;

Form composed(const Affine& outer, const std::vector<Form>& position, std::size_t digits) {
  Form form{std::vector<std::int64_t>(digits), outer.offset};
  for (std::size_t d = 0; d < position.size(); ++d) {
    form.offset += outer.coef[d] * position[d].offset;
    for (std::size_t i = 0; i < digits; ++i) form.coef[i] += outer.coef[d] * position[d].coef[i];
  }
  return form;
}

// Makes digit `i` two digits, the inner one of this size.
void split(std::vector<Digit>& digits, std::size_t i, std::int64_t inner, Form& linear,
           std::vector<Form>& forms) {
  digits.insert(digits.begin() + static_cast<std::ptrdiff_t>(i) + 1, {digits[i].axis, inner});
  digits[i].size /= inner;
  const auto widen = [&](Form& form) {
    form.coef.insert(form.coef.begin() + static_cast<std::ptrdiff_t>(i) + 1, form.coef[i]);
    form.coef[i] *= inner;
  };
  widen(linear);
  for (Form& form : forms) widen(form);
}

// The position in `shape` of the element with row-major index `linear`, whose digits are split
// where they cross an axis. Nothing if positions would need a division.
std::optional<std::vector<Form>> positions(Form linear, const Shape& shape,
                                           std::vector<Digit>& digits) {
  const int rank = shape.rank();
  if (linear.offset < 0 || linear.offset >= shape.count()) return {};
  std::vector<Form> out(usize(rank), Form{std::vector<std::int64_t>(digits.size()), 0});
  std::vector<std::int64_t> weight(usize(rank), 1), most(usize(rank));
  std::int64_t rest = linear.offset;
  for (int d = rank - 1; d >= 0; --d) {
    if (d + 1 < rank) weight[usize(d)] = weight[usize(d) + 1] * shape[d + 1];
    out[usize(d)].offset = most[usize(d)] = rest % shape[d];
    rest /= shape[d];
  }
  for (std::size_t i = digits.size(); i-- > 0;) {
    const std::int64_t step = linear.coef[i];
    if (step == 0 || digits[i].size == 1) continue;
    std::size_t d = 0;
    while (d < weight.size() && (weight[d] > step || shape[static_cast<int>(d)] == 1)) ++d;
    if (d == weight.size() || step < 0 || step % weight[d] != 0) return {};
    const std::int64_t length = shape[static_cast<int>(d)], by = step / weight[d];
    std::size_t inner = i;
    if (most[d] + by * (digits[i].size - 1) >= length) {
      const std::int64_t size = length / by;
      if (length % by != 0 || size < 2 || digits[i].size % size != 0) return {};
      split(digits, i, size, linear, out);
      inner = i + 1;
    }
    most[d] += by * (digits[inner].size - 1);
    if (most[d] >= length) return {};
    out[d].coef[inner] += by;
    if (inner != i) ++i;  // the outer digit is next
  }
  return out;
}

// Drops digits of size 1, and joins neighbours of one axis that are as one.
void tidy(SplitMap& map) {
  std::vector<Form*> forms{&map.address};
  for (SplitMap::Guard& guard : map.guards) forms.push_back(&guard.form);
  const auto drop = [&](std::size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    map.digits.erase(map.digits.begin() + at);
    for (Form* form : forms) form->coef.erase(form->coef.begin() + at);
  };
  for (std::size_t i = map.digits.size(); i-- > 0;)
    if (map.digits[i].size == 1) drop(i);
  for (std::size_t i = map.digits.size(); i-- > 1;) {
    Digit &outer = map.digits[i - 1], &inner = map.digits[i];
    const bool joins =
        outer.axis == inner.axis && std::all_of(forms.begin(), forms.end(), [&](const Form* form) {
          return form->coef[i - 1] == form->coef[i] * inner.size;
        });
    if (!joins) continue;
    inner.size *= outer.size;
    drop(i - 1);
  }
}

}  // namespace

std::optional<SplitMap> split_axes(const IndexMap& map) {
  SplitMap out;
  std::vector<Form> position;
  const Shape& shape = map.shape();
  if (shape.count() == 0) return {};
  for (int d = 0; d < shape.rank(); ++d) {
    out.digits.push_back({d, shape[d]});
    position.push_back({std::vector<std::int64_t>(usize(shape.rank())), 0});
    position.back().coef[usize(d)] = 1;
  }
  for (std::size_t l = 0; l < map.layers().size(); ++l) {
    const Layer& layer = map.layers()[l];
    const bool last = l + 1 == map.layers().size();
    // Behind a guard that fails, the index into the next layer may have no position there.
    if (!last && !layer.guards.empty()) return {};
    Form linear = composed(layer.address, position, out.digits.size());
    if (!last) {
      auto next = positions(std::move(linear), map.layers()[l + 1].shape, out.digits);
      if (!next) return {};
      position = std::move(*next);
      continue;
    }
    out.address = std::move(linear);
    for (const Guard& guard : layer.guards)
      out.guards.push_back(
          {composed(guard.form, position, out.digits.size()), guard.extent, guard.fill});
  }
  tidy(out);
  return out;
}

std::vector<Layer> joined_layers(const IndexMap& map) {
  std::vector<Layer> layers;
  if (map.layers().size() > 1) {
    const auto joined = split_axes(map);
    if (joined && joined->digits.size() <= usize(kMaxRank)) {
      const auto affine = [](const Form& form) {
        Affine out;
        std::copy(form.coef.begin(), form.coef.end(), out.coef.begin());
        out.offset = form.offset;
        return out;
      };
      Layer layer;
      for (const Digit& digit : joined->digits) layer.shape.push_back(digit.size);
      layer.address = affine(joined->address);
      for (const SplitMap::Guard& guard : joined->guards)
        layer.guards.push_back({affine(guard.form), guard.extent, guard.fill});
      return {coarsen(layer)};
    }
  }
  for (const Layer& layer : map.layers()) layers.push_back(coarsen(layer));
  return layers;
}

}  // namespace tensorgrad::ir
