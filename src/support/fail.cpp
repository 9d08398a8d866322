#include "support/fail.h"

namespace tensorgrad {

std::string_view base_name(std::string_view path) {
  const auto slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string user_message(std::string_view op, std::string_view rule, std::string_view hint,
                         std::string_view scope, std::string_view file, int line) {
  std::string text = fmt::format("{}: {}", op, rule);
  std::string where;
  if (!scope.empty()) where += fmt::format("in {}", scope);
  if (!file.empty()) {
    if (!where.empty()) where += ", ";
    where += fmt::format("at {}:{}", base_name(file), line);
  }
  if (hint.empty() && where.empty()) return text;
  text += "\n  ";
  if (!hint.empty()) text += fmt::format("hint: {}", hint);
  if (!hint.empty() && !where.empty()) text += "   ";
  return text + where;
}

thread_local CallFails call_fails = nullptr;

void fail_in_call(std::string_view what, const std::string& rule, Site site) {
  if (call_fails) call_fails(rule);
  throw UserError(user_message(what, rule, "", "", site.file, site.line));
}

void break_rule_text(std::string hint, std::string rule) {
  throw BrokenRule{std::move(rule), std::move(hint)};
}

void user_error_text(const std::string& what) { throw UserError(what); }

void internal_error_text(const std::string& what) {
  throw InternalError("internal error: " + what +
                      "\n  this is a bug in tensorgrad; please report it with the program");
}

}  // namespace tensorgrad
