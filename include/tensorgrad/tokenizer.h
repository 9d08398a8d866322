// Text to token ids and back. decode(encode(text)) returns the text, byte for byte, for `bytes` and
// byte pairs. For `characters` it does so if the tokenizer knows all characters of the text.
//   const auto tokenizer = tg::Tokenizer::read_bpe("vocab.json", "merges.txt", {"<|endoftext|>"});
//   const std::vector<std::int32_t> ids = tokenizer.encode("Hello world");
//   const std::string same = tokenizer.decode(ids);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {

// A tokenizer. Copies are cheap: they share their data, which never changes.
class Tokenizer {
 public:
  // One token for each of the 256 bytes.
  static Tokenizer bytes();
  // One token for each UTF-8 character of the text, in the order of code points. Token 0 comes
  // first: it replaces unknown characters and decodes to U+FFFD. Throws if the text is not UTF-8.
  static Tokenizer characters(std::string_view text);
  // Reads byte-level byte pair encoding (BPE), with the splits and merges of GPT-2. The vocabulary
  // is JSON {"token": id}. The merges are lines of two tokens, the strongest first. Both files
  // write bytes as printable characters. `special` tokens are matched in a text before anything
  // else, the longest first. Special tokens that the vocabulary lacks are added to it. The
  // vocabulary may hold them unescaped, with spaces.
  static Tokenizer read_bpe(const std::filesystem::path& vocab, const std::filesystem::path& merges,
                            std::vector<std::string> special = {});
  // The same from memory. `name` replaces the file names in errors.
  static Tokenizer parse_bpe(std::string_view vocab, std::string_view merges,
                             std::vector<std::string> special = {}, std::string_view name = "bpe");

  // Trains byte pairs on texts that may be larger than memory.
  class Training {
   public:
    // `special` tokens are cut out of the text: words end at them, and nothing is learned from
    // them.
    explicit Training(std::vector<std::string> special = {});
    ~Training();
    Training(Training&&) noexcept;
    Training& operator=(Training&&) noexcept;
    // Adds the next piece of the text.
    void add(std::string_view piece);
    // Ends the text and returns the tokenizer. It has `vocab` tokens (at least 256 plus the special
    // ones), or fewer if no more pairs occur twice. Order: the bytes, the learned tokens, the
    // special tokens. Of pairs that occur equally often, the first by the bytes of its left token
    // is merged first, then by those of its right token. So the result depends on the text alone.
    Tokenizer finish(std::int64_t vocab);

   private:
    struct Counts;
    std::unique_ptr<Counts> counts_;
  };

  // Reads what to_json() wrote. The JSON holds the whole tokenizer.
  static Tokenizer from_json(std::string_view text);
  std::string to_json() const;
  // Writes byte pairs in the format that other programs read. Throws for other kinds.
  void write_bpe(const std::filesystem::path& vocab, const std::filesystem::path& merges) const;

  std::string_view kind() const;    // "bytes", "chars" or "bpe"
  std::int64_t vocab_size() const;  // ids are below this
  // Returns the ids of a text.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Encodes a text that comes in pieces. Appends the ids of the beginning that no later text can
  // change, and returns its length in bytes. The rest must begin the next piece. With `last`,
  // encodes everything.
  std::size_t encode_some(std::string_view text, bool last, std::vector<std::int32_t>& ids) const;
  // Returns the text of ids. Throws if an id is out of range.
  std::string decode(std::span<const std::int32_t> ids) const;
  // Returns the bytes of one token.
  std::string token(std::int32_t id) const;
  // Returns the id of a token by its bytes, special tokens included; -1 if there is none.
  std::int32_t find(std::string_view token) const;

  // The implementation of a kind of tokenizer; internal.
  class Kind;
  explicit Tokenizer(std::shared_ptr<const Kind> own);

 private:
  std::shared_ptr<const Kind> own_;  // immutable: copies share it
};

}  // namespace tensorgrad
