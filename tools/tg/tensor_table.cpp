#include "tensor_table.h"

#include <algorithm>
#include <array>

#include "command.h"
#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad::tool {

namespace {

// Counts characters, not bytes.
std::size_t width_of(std::string_view text) {
  return usize(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string left(std::string_view text, std::size_t width) {
  return std::string(text) + std::string(width - std::min(width, width_of(text)), ' ');
}

std::string right(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + std::string(text);
}

// Formats three digits; "1.23e-5" rather than "1.23e-05".
std::string short_number(double value) {
  std::string text = fmt::format("{:.3g}", value);
  const std::size_t e = text.find('e');
  if (e == text.npos) return text;
  if (text[e + 2] == '0') text.erase(e + 2, 1);
  if (text[e + 1] == '+') text.erase(e + 1, 1);
  return text;
}

std::string share(std::int64_t part, std::int64_t whole) {
  if (part == 0 || whole == 0) return whole == 0 ? "-" : "0%";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (part == whole) return "100%";
  return percent < 0.1 ? "<0.1%" : fmt::format("{:.1f}%", std::min(percent, 99.9));
}

constexpr std::size_t kCells = 9;
using Cells = std::array<std::string, kCells>;
constexpr std::size_t kFirstNumber = 3;  // a narrow row breaks before this cell

Cells heading() { return {"type", "shape", "count", "min", "max", "mean", "std", "norm", "zeros"}; }

Cells cells_of(const TensorRow& tensor) {
  const TensorStats& s = tensor.stats;
  const auto number = [&](double value) {
    return s.finite ? short_number(value) : std::string("-");
  };
  return {tensor.dtype,        tensor.shape,   grouped(tensor.count),
          number(s.min),       number(s.max),  number(s.mean),
          number(s.deviation), number(s.norm), share(s.zeros, tensor.count)};
}

class Table {
 public:
  Table(const std::vector<const TensorRow*>& tensors, std::size_t width) {
    constexpr std::size_t kLongName = 48, kNarrowName = 36;
    cells_.push_back(heading());
    std::size_t longest = 4;
    for (const TensorRow* tensor : tensors) {
      cells_.push_back(cells_of(*tensor));
      longest = std::max(longest, width_of(plain(tensor->name)));
    }
    std::size_t rest = 0;
    for (std::size_t i = 0; i < kCells; ++i) {
      for (const Cells& row : cells_) widths_[i] = std::max(widths_[i], row[i].size());
      rest += widths_[i] + 2;
    }
    name_ = std::min(longest, kLongName);
    narrow_ = width > 0 && name_ + rest > width;
    if (narrow_) name_ = std::min(longest, kNarrowName);
    text_ = line("name", cells_[0], "");
    for (std::size_t i = 0; i < tensors.size(); ++i)
      text_ += line(plain(tensors[i]->name), cells_[i + 1], bad_words(tensors[i]->stats));
  }

  const std::string& text() const { return text_; }

 private:
  std::string line(const std::string& name, const Cells& row, const std::string& bad) const {
    std::string out = left(name, name_);
    if (width_of(name) > name_) out += "\n" + std::string(name_, ' ');
    for (std::size_t i = 0; i < kCells; ++i) {
      if (narrow_ && i == kFirstNumber) out += "\n  ";
      out += "  " + (i < 2 ? left(row[i], widths_[i]) : right(row[i], widths_[i]));
    }
    if (!bad.empty()) out += fmt::format("{}!! {}", narrow_ ? "\n    " : "  ", bad);
    return out + "\n";
  }

  std::vector<Cells> cells_;
  std::array<std::size_t, kCells> widths_{};
  std::size_t name_ = 0;
  bool narrow_ = false;
  std::string text_;
};

}  // namespace

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f)
      out += fmt::format("\\x{:02x}", code);
    else
      out += c;
  }
  return out;
}

std::string bad_words(const TensorStats& stats) {
  std::vector<std::string> words;
  if (stats.nans) words.push_back(grouped(stats.nans) + " NaN");
  if (stats.infs) words.push_back(grouped(stats.infs) + " inf");
  return join(words, ", ");
}

std::string tensor_table(const std::vector<const TensorRow*>& tensors, std::size_t width) {
  return Table(tensors, width).text();
}

}  // namespace tensorgrad::tool
