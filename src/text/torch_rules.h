// The names and layouts that PyTorch programs use for the weights of language models: GPT-2 as in
// Hugging Face, Mamba and Mamba-2 as in state-spaces. One table of rules per kind serves both
// directions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/integers.h"
#include "tensorgrad/shape.h"
#include "tensorgrad/text_model.h"

namespace tensorgrad::text::torch {

enum class Form {
  same,
  matrix,  // ours is [in, out]; theirs is [in, out] or [out, in], depending on the program
  taps,    // ours is [C, K], theirs [C, 1, K]
};

struct Rule {
  const char* ours;  // one name, or several separated by spaces and concatenated along the outputs
  const char* theirs;
  Form form = Form::same;
};

struct Kind {
  const char* name;
  std::span<const Rule> rules;  // the first is the embedding, which the output head shares
  const char* telling;          // name of a tensor that identifies the kind
  bool out_in;                  // matrices are written as [out, in]
};
std::span<const Kind> kinds();

inline constexpr const char* kHead = "lm_head.weight";

using Shapes = std::map<std::string, Shape>;
Shapes parameters_of(const TextModelConfig& config);

// Replaces each # by the number of the layer.
std::string for_layer(std::string name, int layer);

// A rule applied to one layer, or to no layer, with the shapes of one model.
struct Place {
  std::vector<std::string> ours;
  std::vector<Shape> shapes;
  std::string theirs;
  Shape shape;
  Form form;
};

// All of their tensors, in the order of the rules. PyTorch's GPT-2 always has biases; ours may lack
// them.
std::vector<Place> places_of(const Kind& kind, TextModelConfig config, bool out_in);

// Calls each(part, index in that part of ours, index in theirs) for every element.
template <class F>
void for_each_number(const Place& place, bool out_in, F&& each) {
  const bool matrix = place.form == Form::matrix;
  const std::int64_t in = matrix ? place.shapes[0][0] : 1, all = place.shape.count() / in;
  std::int64_t first = 0;
  for (std::size_t part = 0; part < place.shapes.size(); ++part) {
    const std::int64_t out = place.shapes[part].count() / in;
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t j = 0; j < out; ++j) {
        const std::int64_t theirs = out_in ? (first + j) * in + i : i * all + first + j;
        each(part, usize(i * out + j), usize(theirs));
      }
    first += out;
  }
}

}  // namespace tensorgrad::text::torch
