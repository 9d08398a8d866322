// Every rule of vocabularies, merges and our own JSON, broken once, with the text of its error.
#include <gtest/gtest.h>

#include <functional>

#include "io/byte_characters.h"
#include "tensorgrad/tokenizer.h"
#include "tests/io/bpe_cases.h"
#include "tests/support/error_of.h"

namespace tensorgrad {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::string_literals;

// The 256 bytes, then these.
Json vocab_with(const std::vector<std::string>& more) {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[io::printable(std::string(1, static_cast<char>(byte)))] = byte;
  for (const std::string& token : more) vocab[token] = vocab.size();
  return vocab;
}

std::string vocab_error(const std::string& vocab, const std::vector<std::string>& special = {}) {
  return error_of([&] { Tokenizer::parse_bpe(vocab, "", special, "v.json"); });
}

std::string vocab_error(const std::function<void(Json&)>& change) {
  Json vocab = vocab_with({"ab"});
  change(vocab);
  return vocab_error(vocab.dump());
}

TEST(BpeErrors, OfTheVocabulary) {
  struct Row {
    std::string error, expected;
  };
  const Row kRows[] = {
      {vocab_error(""), "not JSON: line 1, column 1: expected a value, found the end"},
      {vocab_error("{\"a\":1"), "not JSON: line 1, column 7: expected ',' or '}', found the end"},
      {vocab_error("{}\0{}"s), "not JSON: line 1, column 3: expected the end, found \"\\u0000{}\""},
      {vocab_error("[1]"), "not an object of ids: [1]"},
      {vocab_error("7"), "not an object of ids: 7"},
      {vocab_error("{\"a\":{\"b\":1}}"), "nested too deeply"},
      {vocab_error(std::string(100'000, '[')), "nested too deeply"},
      {vocab_error("{\"a\":1,\"b\":2,\"a\":3}"), "\"a\" occurs twice"},
      {vocab_error([](Json& v) { v["ab"] = -1; }),
       "the id of \"ab\" must be a non-negative integer: -1"},
      {vocab_error([](Json& v) { v["ab"] = 1.0; }),
       "the id of \"ab\" must be a non-negative integer: 1.0"},
      {vocab_error([](Json& v) { v["ab"] = "256"; }),
       "the id of \"ab\" must be a non-negative integer: \"256\""},
      {vocab_error([](Json& v) { v["ab"] = nullptr; }),
       "the id of \"ab\" must be a non-negative integer: null"},
      {vocab_error([](Json& v) { v["ab"] = 257; }),
       "257 tokens must have the ids 0 to 256, but \"ab\" has 257"},
      {vocab_error([](Json& v) { v["ab"] = 18446744073709551615u; }),
       "257 tokens must have the ids 0 to 256, but \"ab\" has 18446744073709551615"},
      {vocab_error([](Json& v) { v["ab"] = 99; }), "\"c\" and \"ab\" have the same id 99"},
      {vocab_error([](Json& v) { v.erase("ab"), v[""] = 256; }), "the token with id 256 is empty"},
      {vocab_error([](Json& v) { v["a b"] = 257; }),
       "\"a b\" has a character that represents no byte: U+0020\n  hint: if it is a special token, "
       "name it as one"},
      {vocab_error([](Json& v) { v["a\n"] = 257; }),
       "\"a\\n\" has a character that represents no byte: U+000A\n  hint: if it is a special "
       "token, name it as one"},
      {vocab_error([](Json& v) { v["光"] = 257; }),
       "\"光\" has a character that represents no byte: U+5149\n  hint: if it is a special token, "
       "name it as one"},
      {vocab_error([](Json& v) { v.erase("ab"), v.erase("ÿ"), v["ab"] = 255; }),
       "byte 0xff has no token: \"ÿ\" is missing"},
      {vocab_error("{}"), "byte 0x00 has no token: \"Ā\" is missing"},
      {vocab_error(vocab_with({"ab"}).dump(), {"ab", "ab"}), "special token \"ab\" is given twice"},
      {vocab_error(vocab_with({"ab"}).dump(), {""}), "a special token is empty"},
      // A special token as it is, and the same one as printable characters.
      {vocab_error(vocab_with({"<光>", io::printable("<光>")}).dump(), {"<光>"}),
       "ids 256 and 257 are the same token: \"<åħī>\""},
      {vocab_error(std::string(100'000'001, ' ')),
       "100000001 bytes, at most 100000000 are allowed"},
  };
  for (const Row& row : kRows) EXPECT_EQ(row.error, "v.json: " + row.expected);
}

TEST(BpeErrors, OfMerges) {
  const std::string vocab = vocab_with({"ab", "Ġa", "abc"}).dump();
  struct Row {
    std::string merges, expected;
  };
  const Row kRows[] = {
      {"", "no error"},
      {"#version: 0.2", "no error"},
      {"#version: 0.2\n", "no error"},
      {"a b\nĠ a\nab c", "no error"},
      {"a b\nĠ a\nab c\n", "no error"},
      {"ab", "line 1: not two tokens: \"ab\""},
      {"a b c", "line 1: not two tokens: \"a b c\""},
      {"a  b", "line 1: not two tokens: \"a  b\""},
      {"a ", "line 1: not two tokens: \"a \""},
      {" b", "line 1: not two tokens: \" b\""},
      {"a b\n\nab c\n", "line 2: not two tokens: \"\""},
      {"a b\n\n", "line 2: not two tokens: \"\""},
      {"#version: 0.2\na b\nab", "line 3: not two tokens: \"ab\""},
      {"a b\n#version: 0.2\n", "line 2: \"#version:\" is not in the vocabulary"},
      {"a b\nxy a", "line 2: \"xy\" is not in the vocabulary"},
      {"a b\na xy", "line 2: \"xy\" is not in the vocabulary"},
      {"b a", "line 1: \"ba\", the merge of \"b a\", is not in the vocabulary"},
      {"a b\nĠ a\na b", "line 3: \"a b\" repeats line 1"},
      {"#version\na b\nĠ a\na b", "line 4: \"a b\" repeats line 2"},
      {"a b\r\n", "line 1: \"b\\r\" has a character that represents no byte: U+000D"},
      {"光 b", "line 1: \"光\" has a character that represents no byte: U+5149"},
      {"a\xff b", "line 1: \"a\xef\xbf\xbd\" has a character that represents no byte: 0xff"},
      {"a \0"s, "line 1: \"\\u0000\" has a character that represents no byte: U+0000"},
      {std::string(1000, 'a') + " b",
       "line 1: \"" + std::string(59, 'a') + "... is not in the vocabulary"},
      {std::string(100'000'001, '\n'), "100000001 bytes, at most 100000000 are allowed"},
  };
  for (const Row& row : kRows) {
    const std::string error =
        error_of([&] { Tokenizer::parse_bpe(vocab, row.merges, {}, "m.txt"); });
    EXPECT_EQ(error, row.expected == "no error" ? row.expected : "m.txt: " + row.expected)
        << row.merges.substr(0, 100);
  }
  EXPECT_EQ(error_of([&] { Tokenizer::parse_bpe(vocab, "x"); }),
            "bpe: line 1: not two tokens: \"x\"");
}

TEST(BpeErrors, OfOurJson) {
  const auto changed = [](const std::function<void(Json&)>& change) {
    Json json = {{"kind", "bpe"},
                 {"tokens", Json::array()},
                 {"merges", {"a b"}},
                 {"special", Json::array()}};
    const Json vocab = vocab_with({"ab"});
    for (const auto& [token, id] : vocab.items()) json["tokens"].push_back(token);
    change(json);
    return json.dump();
  };
  struct Row {
    std::string json, expected;
  };
  const Row kRows[] = {
      {changed([](Json&) {}), "no error"},
      {"", "not JSON: line 1, column 1: expected a value, found the end"},
      {"{\"kind\":\"bytes\"}\0"s,
       "not JSON: line 1, column 17: expected the end, found \"\\u0000\""},
      {"[]", "not an object: []"},
      {"{\"kind\":[[]]}", "nested too deeply"},
      {"{\"kind\":\"bytes\",\"kind\":\"bytes\"}", "\"kind\" occurs twice"},
      {"{}", "kind is missing"},
      {"{\"kind\":\"words\"}",
       "unknown kind \"words\": known are \"bytes\", \"chars\" and \"bpe\""},
      {"{\"kind\":1}", "unknown kind 1: known are \"bytes\", \"chars\" and \"bpe\""},
      {"{\"kind\":\"bytes\",\"size\":256}", "unknown field \"size\""},
      {"{\"kind\":\"chars\"}", "characters is missing"},
      {"{\"kind\":\"chars\",\"characters\":[]}", "characters must be a string: []"},
      {"{\"kind\":\"chars\",\"characters\":\"ab\",\"x\":1}", "unknown field \"x\""},
      {"{\"kind\":\"chars\",\"characters\":\"ba\"}",
       "characters must be in order, each once: U+0061 follows U+0062"},
      {"{\"kind\":\"chars\",\"characters\":\"aa\"}",
       "characters must be in order, each once: U+0061 follows U+0061"},
      {"{\"kind\":\"chars\",\"characters\":\"a\\ufffd\"}",
       "characters must not contain U+FFFD, which represents all others"},
      {changed([](Json& j) { j["more"] = 1; }), "unknown field \"more\""},
      {changed([](Json& j) { j.erase("tokens"); }), "tokens is missing"},
      {changed([](Json& j) { j.erase("merges"); }), "merges is missing"},
      {changed([](Json& j) { j.erase("special"); }), "special is missing"},
      {changed([](Json& j) { j["tokens"] = "abc"; }), "tokens must be a list: \"abc\""},
      {changed([](Json& j) { j["tokens"][5] = 5; }), "tokens must contain strings: 5"},
      {changed([](Json& j) { j["tokens"][5] = "a b"; }),
       "\"a b\" has a character that represents no byte: U+0020"},
      {changed([](Json& j) { j["tokens"][256] = "a"; }),
       "ids 97 and 256 are the same token: \"a\""},
      {changed([](Json& j) { j["tokens"][256] = ""; }), "the token with id 256 is empty"},
      {changed([](Json& j) { j["tokens"][10] = "xyz"; }),
       "byte 0x0a has no token: \"Ċ\" is missing"},
      {changed([](Json& j) { j["merges"] = Json::object(); }), "merges must be a list: {}"},
      {changed([](Json& j) { j["merges"][0] = 7; }), "merges must contain strings: 7"},
      {changed([](Json& j) { j["merges"][0] = "ab"; }), "merge 1: not two tokens: \"ab\""},
      {changed([](Json& j) { j["merges"].push_back("a b"); }), "merge 2: \"a b\" repeats merge 1"},
      {changed([](Json& j) { j["merges"].push_back("b a"); }),
       "merge 2: \"ba\", the merge of \"b a\", is not in the vocabulary"},
      {changed([](Json& j) { j["special"] = 256; }), "special must be a list: 256"},
      {changed([](Json& j) { j["special"] = {257}; }), "special must contain ids below 257: 257"},
      {changed([](Json& j) { j["special"] = {-1}; }), "special must contain ids below 257: -1"},
      {changed([](Json& j) { j["special"] = {"ab"}; }),
       "special must contain ids below 257: \"ab\""},
      {changed([](Json& j) {
         j["special"] = {256, 256};
       }),
       "special token \"ab\" is given twice"},
  };
  for (const Row& row : kRows)
    EXPECT_EQ(error_of([&] { Tokenizer::from_json(row.json); }),
              row.expected == "no error" ? row.expected : "tokenizer: " + row.expected);
}

TEST(BpeErrors, AreShortWhateverTheFile) {
  EXPECT_EQ(vocab_error("{}" + std::string(100'000, 'a')),
            "v.json: not JSON: line 1, column 3: expected the end, found \"" +
                std::string(20, 'a') + "\"");
  // Cut between characters.
  const std::string cut = vocab_error("[\"" + std::string(57, 'a') + "光光\"]");
  EXPECT_EQ(cut, "v.json: not an object of ids: [\"" + std::string(57, 'a') + "...");
}

}  // namespace
}  // namespace tensorgrad
