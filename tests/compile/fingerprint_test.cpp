// Fingerprints: SHA-256 test vectors, an independent implementation over downloaded bytes, and
// equality for any number of threads.
#include <fmt/format.h>

#include "support/sha256.h"
#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {
namespace {

std::string sha256(const std::string& text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text.data(), text.size())));
  return sha.finish();
}

// FIPS 180-2, appendix B, and the digest of nothing.
const std::vector<std::pair<std::string, std::string>> kVectors = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

TEST(Sha256, KnownDigests) {
  for (const auto& [text, digest] : kVectors) EXPECT_EQ(sha256(text), digest) << text.substr(0, 60);
}

TEST(Sha256, PiecesMakeTheWhole) {
  const std::string text(300, 'x');
  for (const std::size_t piece : {1u, 3u, 55u, 56u, 63u, 64u, 65u, 128u}) {
    Sha256 sha;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      const std::string part = text.substr(at, piece);
      sha.update(std::as_bytes(std::span(part.data(), part.size())));
    }
    EXPECT_EQ(sha.finish(), sha256(text)) << piece;
  }
}

// Written independently from the standard: bits in a vector, constants from the roots of primes.
std::string plain_sha256(const std::string& text) {
  std::vector<int> primes;
  for (int n = 2; primes.size() < 64; ++n) {
    bool prime = true;
    for (const int p : primes) prime = prime && n % p != 0;
    if (prime) primes.push_back(n);
  }
  const auto fraction = [](long double root) {
    return static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
  };
  std::uint32_t h[8], k[64];
  for (std::size_t i = 0; i < 8; ++i)
    h[i] = fraction(std::sqrt(static_cast<long double>(primes[i])));
  for (std::size_t i = 0; i < 64; ++i)
    k[i] = fraction(std::cbrt(static_cast<long double>(primes[i])));
  std::string padded = text + '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8)
    padded += static_cast<char>((static_cast<std::uint64_t>(text.size()) * 8) >> shift);
  const auto turn = [](std::uint32_t x, int n) { return (x >> n) | (x << (32 - n)); };
  for (std::size_t at = 0; at < padded.size(); at += 64) {
    std::uint32_t w[64], v[8];
    for (std::size_t i = 0; i < 16; ++i) {
      w[i] = 0;
      for (std::size_t b = 0; b < 4; ++b)
        w[i] = w[i] << 8 | static_cast<unsigned char>(padded[at + 4 * i + b]);
    }
    for (std::size_t i = 16; i < 64; ++i)
      w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3)) + w[i - 7] +
             (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10));
    std::copy(h, h + 8, v);
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t one = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
                                ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
      const std::uint32_t two = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) +
                                ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      for (std::size_t j = 7; j > 0; --j) v[j] = v[j - 1];
      v[4] += one, v[0] = one + two;
    }
    for (std::size_t i = 0; i < 8; ++i) h[i] += v[i];
  }
  std::string out;
  for (const std::uint32_t word : h) out += fmt::format("{:08x}", word);
  return out;
}

TEST(Fingerprint, IsTheDigestOfNamesAndBytesInFieldOrder) {
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(plain_sha256(kVectors[i].first), kVectors[i].second);  // tests the reference itself
  auto train = compile_mlp();
  for (std::uint32_t i = 0; i < 3; ++i) {
    const NamedArrays values = train.download();
    std::string bytes;
    for (const ParamInfo& info : train.parameters()) {
      const auto own = std::as_bytes(values.at(info.name).floats());
      bytes += info.name + '\0';
      bytes.append(reinterpret_cast<const char*>(own.data()), own.size());
    }
    EXPECT_EQ(train.fingerprint(), plain_sha256(bytes));
    train.step(Batch(i).feed());
  }
}

TEST(Fingerprint, NamesEverySmallChange) {
  auto train = compile_mlp();
  const std::string before = train.fingerprint();
  NamedArrays values = train.download();
  float& last = values.at("l3.b").floats()[1];
  const float kept = last;
  last = std::nextafter(last, 2.0f);
  train.upload(values);
  EXPECT_NE(train.fingerprint(), before);
  last = kept;
  train.upload(values);
  EXPECT_EQ(train.fingerprint(), before);
}

struct Classifier {
  Linear l1{64, 128}, l2{128, 128}, l3{128, 10};
};

TEST(Fingerprint, IsTheSameForAnyNumberOfThreads) {
  const auto after = [](int threads, std::uint32_t seed = 0) {
    auto train = compile(Classifier{},
                         {.inputs = {{"x", {96, 64}}, {"y", {96}, i32}},
                          .clip_grad_norm = 1,
                          .seed = seed,
                          .threads = threads},
                         [](const Classifier& m, const Inputs& in) {
                           return cross_entropy(
                               m.l3(gelu(m.l2(dropout(relu(m.l1(in["x"])), 0.1f)))), in["y"]);
                         });
    for (std::uint32_t i = 0; i < 50; ++i)
      train.step({{"x", numbers(96 * 64, i + 1)}, {"y", tokens(96, 10, i + 1)}});
    return train.fingerprint();
  };
  const std::string one = after(1);
  EXPECT_EQ(after(2), one);
  EXPECT_EQ(after(3), one);
  EXPECT_EQ(after(1), one);
  EXPECT_NE(after(1, 1), one);
}

TEST(Fingerprint, OfATransformerIsTheSameForAnyNumberOfThreads) {
  const auto after = [](int threads) {
    auto train =
        compile(Transformer({.vocab = 31, .dim = 32, .context = 16, .layers = 2, .heads = 4}),
                {.inputs = {{"ids", {8, 16}, i32}, {"next", {8, 16}, i32}},
                 .optimizer = AdamW{.lr = 0.003},
                 .threads = threads},
                [](const Transformer& m, const Inputs& in) {
                  return cross_entropy(m(in["ids"]), in["next"]);
                });
    float first = 0, last = 0;
    for (std::uint32_t i = 0; i < 50; ++i) {
      const Ints ids = tokens(8 * 16, 31, i % 3 + 1), next = tokens(8 * 16, 31, i % 3 + 11);
      last = train.step({{"ids", ids}, {"next", next}}).loss();
      if (i == 0) first = last;
    }
    EXPECT_LT(last, first - 0.1f);  // training changed the values
    return train.fingerprint();
  };
  EXPECT_EQ(after(2), after(1));
}

}  // namespace
}  // namespace tensorgrad::compile_tests
