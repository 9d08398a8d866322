// Arguments and options of the C interface: JSON by name, read as the registry or the C++ structs
// declare them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/registry.h"
#include "support/json.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::c {

inline constexpr int kDeepestJson = 16;
// For calls without a line: errors must not name one of ours.
inline constexpr Site kNowhere{"", 0};

// Strict JSON. Throws a UserError that begins with `what`.
JsonDocument read_json(std::string_view text, std::string_view what, Site site = kNowhere);
// The same for an object. `text` may be null: an empty object.
JsonDocument read_object(const char* text, std::string_view what, Site site = kNowhere);

// The value of an integer, also if it is written as 2.0 or 1e3; otherwise nothing.
std::optional<std::int64_t> integer_of(const Json& value);

// Makes the operand of a JSON object, which names a tensor or a parameter. Throws a UserError.
using ReadOperand = std::function<Operand(const Json&)>;

// The arguments of an op or a layer in the order of its parameters. Errors have its name and the
// caller's line.
std::vector<ops::Argument> read_arguments(std::string_view what,
                                          std::span<const ops::Parameter> parameters,
                                          const Json& given, Site site, const ReadOperand& read);

// ---- options. Unknown names are errors.

TrainingOptions read_training(const Json& json);
ForwardOptions read_forward(const Json& json);
AttachOptions read_attach(const Json& json);
// A number, or {"kind": "linear", "peak", "last", "steps"}.
Schedule read_schedule(const Json& json);
Init read_init(const Json& json, std::span<const float> values);

}  // namespace tensorgrad::c
