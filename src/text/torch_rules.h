// How PyTorch programs name and lay out the weights of language models: GPT-2 as Hugging Face has it, Mamba and Mamba-2
// as state-spaces has them. One table of rules per kind serves both directions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/shape.h"
#include "tensorgrad/text_model.h"

namespace tensorgrad::text::torch {

enum class Form {
  same,
  matrix,  // ours are [in, out]; theirs is [in, out] or [out, in], whichever its program has
  taps,    // ours is [C, K], theirs [C, 1, K]
};

struct Rule {
  const char* ours;  // several, with spaces between, lie side by side along the outputs of theirs
  const char* theirs;
  Form form = Form::same;
};

struct Kind {
  const char* name;
  std::span<const Rule> rules;  // the first is the embedding, to which the head is tied
  const char* telling;          // no other kind has a tensor of that name
  bool out_in;                  // matrices are [out, in] when written
};
std::span<const Kind> kinds();

inline constexpr const char* kHead = "lm_head.weight";

using Shapes = std::map<std::string, Shape>;
Shapes parameters_of(const TextModelConfig& config);

// The name with that number for each #.
std::string for_layer(std::string name, int layer);

// A rule for one layer, or for none, with the shapes of one model.
struct Place {
  std::vector<std::string> ours;
  std::vector<Shape> shapes;
  std::string theirs;
  Shape shape;
  Form form;
};

// Every tensor of theirs, in the order of the rules. PyTorch's GPT-2 always has biases: ours may lack them.
std::vector<Place> places_of(const Kind& kind, TextModelConfig config, bool out_in);

// Calls each(part, index in that part of ours, index in theirs) for every number.
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
        each(part, static_cast<std::size_t>(i * out + j), static_cast<std::size_t>(theirs));
      }
    first += out;
  }
}

}  // namespace tensorgrad::text::torch
