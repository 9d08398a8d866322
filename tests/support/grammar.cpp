#include "tests/support/grammar.h"

#include <cstddef>
#include <span>

namespace tensorgrad {

namespace {

using Words = std::span<const std::string_view>;

// A word with a singular and a plural form.
struct Forms {
  std::string_view one, many;
};

constexpr std::string_view kDeterminersOfOne[] = {"the", "a", "every"};
constexpr std::string_view kDeterminersOfMany[] = {"the", "some", "many", "two", "three"};
constexpr std::string_view kAdjectives[] = {"young", "small", "big", "red", "kind", "wild"};
constexpr Forms kNouns[] = {{"dog", "dogs"},     {"cat", "cats"},   {"bird", "birds"},
                            {"cow", "cows"},     {"duck", "ducks"}, {"frog", "frogs"},
                            {"horse", "horses"}, {"fox", "foxes"},  {"mouse", "mice"},
                            {"goose", "geese"}};
constexpr std::string_view kPrepositions[] = {"near", "behind", "with", "under"};
constexpr Forms kVerbs[] = {{"sees", "see"},       {"likes", "like"}, {"finds", "find"},
                            {"follows", "follow"}, {"helps", "help"}, {"hears", "hear"}};
constexpr Forms kIntransitives[] = {
    {"sleeps", "sleep"}, {"runs", "run"}, {"sings", "sing"}, {"waits", "wait"}, {"jumps", "jump"}};
constexpr Forms kHandle[] = {{"takes", "take"}, {"loses", "lose"}, {"opens", "open"}};
constexpr Forms kSay[] = {{"says", "say"}}, kCount[] = {{"counts", "count"}},
                kObject[] = {{"it", "them"}};
constexpr std::string_view kAdverbs[] = {"today", "here", "again"};
constexpr std::string_view kWomen[] = {"anna", "mary", "lucy", "ruth"};
constexpr std::string_view kMen[] = {"tom", "john", "peter", "paul"};
constexpr std::string_view kThings[] = {"bag", "box", "book", "basket"};
constexpr std::string_view kNumbers[] = {"one", "two",   "three", "four", "five",
                                         "six", "seven", "eight", "nine"};

int place_in(Words words, std::string_view word) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == word) return static_cast<int>(i);
  return -1;
}
bool is_in(Words words, std::string_view word) { return place_in(words, word) >= 0; }

struct Person {
  std::string_view pronoun, possessive;
  bool many;
};

// Parses the words of a line with one word of lookahead. The first word that does not fit sets
// failed_; results after that do not matter, because a failed parser never accepts.
class Parser {
 public:
  explicit Parser(std::string_view line) : rest_(line) { read(); }

  bool line() {
    if (is_in(kWomen, word_) || is_in(kMen, word_)) {
      const Person person = who();
      if (takes(kSay, person.many))
        speech();
      else if (takes(kCount, person.many))
        counting();
      else
        story(person);
    } else {
      clause();
    }
    expect(".");
    return !failed_ && ended_;
  }

 private:
  // The next word. Words are separated by one space; other characters become part of a word, or
  // make an empty one.
  void read() {
    ended_ = no_more_;
    const std::size_t space = rest_.find(' ');
    no_more_ = space == std::string_view::npos;
    word_ = ended_ ? std::string_view() : rest_.substr(0, space);
    if (!no_more_) rest_.remove_prefix(space + 1);
  }

  bool take_if(bool fits) {
    if (fits) read();
    return fits;
  }
  bool takes(std::string_view word) { return take_if(!ended_ && word_ == word); }
  bool takes(Words words) { return take_if(!ended_ && is_in(words, word_)); }
  bool takes(std::span<const Forms> words, bool many) {
    for (const Forms& forms : words)
      if (takes(many ? forms.many : forms.one)) return true;
    return false;
  }
  template <class... Args>
  void expect(const Args&... what) {
    if (!takes(what...)) failed_ = true;
  }

  // Returns whether it is plural, from its determiner, or from its noun if that is "the".
  bool group() {
    const bool one = is_in(kDeterminersOfOne, word_), many = is_in(kDeterminersOfMany, word_);
    expect(one ? Words(kDeterminersOfOne) : Words(kDeterminersOfMany));
    takes(kAdjectives);
    if (one && takes(kNouns, false)) return false;
    if (many && takes(kNouns, true)) return true;
    failed_ = true;
    return false;
  }

  void about(bool many) {
    if (takes(kPrepositions)) {
      group();
    } else if (takes("that")) {
      if (takes(kVerbs, many))
        group();
      else
        expect(kVerbs, group());
    }
  }

  void aside(std::string_view outer) {
    const std::string_view open = word_;
    if (open == outer || !(takes("(") || takes("["))) return;
    const bool many = group();
    if (outer.empty()) aside(open);
    expect(kIntransitives, many);
    expect(open == "(" ? ")" : "]");
  }

  void clause() {
    const bool many = group();
    about(many);
    aside("");
    if (stays(many)) return;
    expect(kVerbs, many);
    group();
  }

  bool stays(bool many) {
    if (!takes(kIntransitives, many)) return false;
    takes(kAdverbs);
    return true;
  }

  Person who() {
    const std::string_view name = word_;
    const bool woman = is_in(kWomen, name);
    if (!takes(kWomen)) expect(kMen);
    if (!takes("and")) return woman ? Person{"she", "her", false} : Person{"he", "his", false};
    if (word_ == name) failed_ = true;
    if (!takes(kWomen)) expect(kMen);
    return {"they", "their", true};
  }

  void speech() {
    expect("\"");
    if (is_in(kWomen, word_) || is_in(kMen, word_)) {
      expect(kSay, who().many);
      expect("'");
      clause();
      expect("'");
    } else {
      clause();
    }
    expect("\"");
  }

  int number() {
    const int place = place_in(kNumbers, word_);
    expect(kNumbers);
    return place;
  }

  void counting() {
    expect("from");
    const int from = number();
    expect("to");
    const int to = number();
    expect(":");
    if (from == to) failed_ = true;
    for (int at = from; !failed_; at += from < to ? 1 : -1) {
      if (number() != at) failed_ = true;
      if (at == to) break;
    }
  }

  void story(const Person& person) {
    expect(kVerbs, person.many);
    const bool many = group();
    if (takes("and")) {
      expect(kHandle, person.many);
      expect(person.possessive);
      expect(kThings);
      return;
    }
    if (!takes("because") && !takes("when")) expect(".");
    expect(person.pronoun);
    if (stays(person.many)) return;
    expect(kVerbs, person.many);
    expect(kObject, many);
  }

  std::string_view rest_, word_;
  bool no_more_ = false, ended_ = false, failed_ = false;
};

}  // namespace

bool is_sentence(std::string_view line) { return Parser(line).line(); }

double share_of_sentences(std::string_view text) {
  const std::size_t first = text.find('\n'), last = text.rfind('\n');
  int right = 0, lines = 0;
  for (std::size_t at = first; at != last; ++lines) {
    const std::size_t end = text.find('\n', at + 1);
    right += is_sentence(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return lines ? static_cast<double>(right) / lines : 0;
}

}  // namespace tensorgrad
