// Text to token ids and back. Whatever the bytes, decode(encode(text)) is the text: byte for byte with `bytes` and byte
// pairs; with `characters` as long as the text has no others than the tokenizer knows.
//   const tg::Tokenizer tokenizer = tg::Tokenizer::read_bpe("vocab.json", "merges.txt", {"<|endoftext|>"});
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

class Tokenizer {
 public:
  // The 256 bytes.
  static Tokenizer bytes();
  // The characters (UTF-8) of the text, each once, in the order of their code points, behind one token, 0, that stands
  // for any other and is written as U+FFFD. A text that is not UTF-8 is an error.
  static Tokenizer characters(std::string_view text);
  // Byte-level byte pairs, as GPT-2 splits and merges: the vocabulary is JSON {"token": id}, the merges are lines of
  // two tokens, the strongest first; both write bytes as printable characters. `special` tokens are found in a text
  // before anything else, the longest first; those that the vocabulary lacks are added to it. In the vocabulary they
  // may stand as they are, spaces and all.
  static Tokenizer read_bpe(const std::filesystem::path& vocab, const std::filesystem::path& merges,
                            std::vector<std::string> special = {});
  // The same from memory; `name` stands for the files in errors.
  static Tokenizer parse_bpe(std::string_view vocab, std::string_view merges, std::vector<std::string> special = {},
                             std::string_view name = "bpe");

  // Learns byte pairs from texts that may be larger than memory.
  class Training {
   public:
    // `special` tokens are cut out of the text: words end at them, and nothing is learned from them.
    explicit Training(std::vector<std::string> special = {});
    ~Training();
    Training(Training&&) noexcept;
    Training& operator=(Training&&) noexcept;
    // The next piece of the text.
    void add(std::string_view piece);
    // The end of the text. As many tokens as `vocab` (at least 256, plus the special ones), or fewer where the text has
    // no more pairs that occur twice: the bytes, then what was learned, then the special ones. Of pairs that occur
    // equally often, the one whose left token comes first by its bytes is merged first, then whose right one does; so
    // the result depends on the text alone.
    Tokenizer finish(std::int64_t vocab);

   private:
    struct Counts;
    std::unique_ptr<Counts> counts_;
  };

  // What to_json() wrote, which holds all of the tokenizer.
  static Tokenizer from_json(std::string_view text);
  std::string to_json() const;
  // As other programs read byte pairs; an error for other kinds.
  void write_bpe(const std::filesystem::path& vocab, const std::filesystem::path& merges) const;

  std::string_view kind() const;    // "bytes", "chars" or "bpe"
  std::int64_t vocab_size() const;  // ids are below
  std::vector<std::int32_t> encode(std::string_view text) const;
  // For texts that come in pieces: appends the ids of as much of the beginning as no continuation can change, and
  // returns how many bytes that is. What is left begins the next piece. With `last` it is everything.
  std::size_t encode_some(std::string_view text, bool last, std::vector<std::int32_t>& ids) const;
  // An id out of range is an error.
  std::string decode(std::span<const std::int32_t> ids) const;
  // The bytes of one token.
  std::string token(std::int32_t id) const;
  // The id of a token by its bytes, special ones too; -1: there is none.
  std::int32_t find(std::string_view token) const;

  // How a kind of tokenizer works; for the library itself.
  class Kind;
  explicit Tokenizer(std::shared_ptr<const Kind> own);

 private:
  std::shared_ptr<const Kind> own_;  // never changes, so that copies share it
};

}  // namespace tensorgrad
