// Throws the three kinds of errors with formatted text. Op functions throw a BrokenRule; the op
// call adds the op's name, the module and the user's line.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tensorgrad/error.h"
#include "tensorgrad/site.h"

namespace tensorgrad {

// The broken rule with the real values, without the op's name; and the likely fix.
struct BrokenRule {
  std::string rule;
  std::string hint;
};

[[noreturn]] void break_rule_text(std::string hint, std::string rule);

template <class... Args>
[[noreturn]] void break_rule(std::string hint, fmt::format_string<Args...> format, Args&&... args) {
  break_rule_text(std::move(hint), fmt::format(format, std::forward<Args>(args)...));
}

// "op: rule\n  hint: ...   in layers.0, at train.cpp:41"; empty parts are left out.
std::string user_message(std::string_view op, std::string_view rule, std::string_view hint,
                         std::string_view scope, std::string_view file, int line);

[[noreturn]] void user_error_text(const std::string& what);

template <class... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> format, Args&&... args) {
  user_error_text(fmt::format(format, std::forward<Args>(args)...));
}

// Throws an error with the name and the line of the user's op call that is running. Code below the
// ops uses it to report errors. Null outside such calls. Ops set it, per thread.
using CallFails = void (*)(const std::string& rule);
extern thread_local CallFails call_fails;

// Throws the error of the running op call; outside a call, throws "what: rule" with `site`.
[[noreturn]] void fail_in_call(std::string_view what, const std::string& rule, Site site);

[[noreturn]] void internal_error_text(const std::string& what);

template <class... Args>
[[noreturn]] void internal_error(fmt::format_string<Args...> format, Args&&... args) {
  internal_error_text(fmt::format(format, std::forward<Args>(args)...));
}

// The last component of a path.
std::string_view base_name(std::string_view path);

}  // namespace tensorgrad
