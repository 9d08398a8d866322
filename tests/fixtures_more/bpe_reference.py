#!/usr/bin/env python3
"""Writes bpe/: byte-level BPE of GPT-2, in the simplest way, as the reference for tests/io.

    python3 tests/fixtures_more/bpe_reference.py        # seconds; writes beside itself, the same bytes each time

    bpe/text.txt                    what is learned from
    bpe/vocab.json, merges.txt      what was learned, 380 tokens, of which two are special
    bpe/scrambled_*                 merges in random order, as no training gives them
    bpe/cases.json                  texts (in hexadecimal) with their words and ids; trainings; kinds of characters

Needs nothing but Python. The splitting is GPT-2's regular expression, run by Python's `re` with the classes of
characters written out; training counts all pairs anew after each merge.
"""
import collections
import hashlib
import json
import pathlib
import random
import re
import unicodedata

HERE = pathlib.Path(__file__).parent / "bpe"
END, PAD = "<|endoftext|>", "<|pad|>"

TEXT = """\
The lighthouse keeper's daughter didn't believe in ghosts. She'd counted the steps every night since she was seven:
one hundred and ninety-nine up, one hundred and ninety-nine down. They've always been the same, she said, and they'll
be the same when I'm gone. "What're you looking for?" her father asked. "Nothing that wasn't there yesterday."

On the 3rd of March 1987 the count was 200. She went down and up again; it was 199. Later, in 2011, she'd write:
    if (steps != 199) { return steps - 199; }   // never reached
\tand below it, with a tab:  "Der Nebel über der Straße war größer als ich.  Où étaient les phares ?"
<|endoftext|>The keeper's log, in part:

1.  wind north, sea rough; lamp lit at 17:45.
2.  wind north-west, sea rough; lamp lit at 17:43.
3.  wind west, sea calm;   lamp lit at 17:41.

Что-то шумело внизу. 灯台の明かりが海の上を照らしていた。光 光 光. The light, the light, the lightest light!
The rough sea, the rougher wind, the roughest night. They're counting, we're counting, you're counting: 1 2 3 ½ ¾ ⅷ ٣.
<|endoftext|>"""


# ---- splitting

def character_class(prefix):
    """The characters whose category starts with this, as the inside of a regex character class."""
    codes = [c for c in range(0x110000) if unicodedata.category(chr(c)).startswith(prefix)]
    parts, begin = [], codes[0]
    for this, following in zip(codes, codes[1:] + [None]):
        if following != this + 1:
            parts.append(f"{re.escape(chr(begin))}-{re.escape(chr(this))}")
            begin = following
    return "".join(parts)


L, N = character_class("L"), character_class("N")
S = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # White_Space in Unicode's PropList.txt
WORD = re.compile(rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{L}]+| ?[{N}]+| ?[^{S}{L}{N}]+|[{S}]+(?![^{S}])|[{S}]+")


def cut(text, special):
    """Pieces of text and special tokens, alternating."""
    if not special:
        return [text]
    longest_first = sorted(special, key=len, reverse=True)
    return re.split(b"(" + b"|".join(re.escape(s) for s in longest_first) + b")", text)


def words(text):
    # A byte that is not UTF-8 becomes a lone surrogate, which is neither letter, number nor space.
    found = WORD.findall(text.decode("utf-8", "surrogateescape"))
    return [word.encode("utf-8", "surrogateescape") for word in found]


# ---- merging

def merged(parts, pair):
    out, i = [], 0
    while i < len(parts):
        if tuple(parts[i:i + 2]) == pair:
            out.append(parts[i] + parts[i + 1])
            i += 2
        else:
            out.append(parts[i])
            i += 1
    return out


def encode_word(word, ranks):
    parts = [word[i:i + 1] for i in range(len(word))]
    while True:
        known = [pair for pair in zip(parts, parts[1:]) if pair in ranks]
        if not known:
            return parts
        parts = merged(parts, min(known, key=ranks.get))


class Model:
    def __init__(self, merges, special=()):
        self.merges, self.special = merges, list(special)
        self.tokens = [bytes([b]) for b in range(256)]
        for left, right in merges:
            if left + right not in self.tokens:
                self.tokens.append(left + right)
        self.tokens += self.special
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}

    def encode(self, text):
        ids = []
        for i, piece in enumerate(cut(text, self.special)):
            if i % 2:
                ids.append(self.ids[piece])
            else:
                ids += [self.ids[part] for word in words(piece) for part in encode_word(word, self.ranks)]
        return ids


def train(text, vocab, special=()):
    counts = collections.Counter(word for piece in cut(text, special)[::2] for word in words(piece))
    split = {word: [word[i:i + 1] for i in range(len(word))] for word in counts}
    merges = []
    while len(Model(merges, special).tokens) < vocab:
        pairs = collections.Counter()
        for word, parts in split.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += counts[word]
        if not pairs or max(pairs.values()) < 2:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        split = {word: merged(parts, best) for word, parts in split.items()}
    return merges


# ---- files

def byte_characters():
    """The table of GPT-2: byte -> printable character."""
    kept = [b for first, last in ("!~", "¡¬", "®ÿ") for b in range(ord(first), ord(last) + 1)]
    table, others = {b: chr(b) for b in kept}, 0
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + others)
            others += 1
    return table


TABLE = byte_characters()


def printable(token):
    return "".join(TABLE[b] for b in token)


def merge_lines(merges):
    return [f"{printable(left)} {printable(right)}" for left, right in merges]


def write_model(model, prefix):
    vocab = {printable(token): i for i, token in enumerate(model.tokens)}
    (HERE / f"{prefix}vocab.json").write_text(json.dumps(vocab))
    lines = ["#version: 0.2"] + merge_lines(model.merges)
    (HERE / f"{prefix}merges.txt").write_text("".join(f"{line}\n" for line in lines))


# ---- texts

def random_texts(rng):
    nasty = ["'", "s", "t", "re", "ve", "m", "ll", "d", " ", "  ", "\n", "\t", "\r\n", "\xa0", "\u2028", "\u3000",
             "\x1c", "\x85", "\u200b", "a", "B", "é", "ß", "光", "ǅ", "ʰ", "ª", "1", "²", "½", "Ⅷ", "٣", "𝟘", "𝔘", "😀",
             "e\u0301", ".", "!?", "\0", END, PAD, "<|end", "<|", "|>", "the", " the", " light", "199"]
    texts = ["".join(rng.choice(nasty) for _ in range(rng.randrange(1, 40))).encode() for _ in range(150)]
    stray = b"\x80\xbf\xc0\xc3\xe2\xe3\xed\xa0\xf0\x9f\xf4\x90\xff '"
    for _ in range(60):  # cut characters, stray bytes
        text = bytearray("".join(rng.choice(nasty) for _ in range(rng.randrange(1, 20))).encode())
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(text) + 1)
            length = rng.randrange(2)
            text[place:place + length] = bytes(rng.choice(stray) for _ in range(rng.randrange(3)))
        texts.append(bytes(text))
    texts += [rng.randbytes(rng.randrange(1, 60)) for _ in range(60)]
    # Random characters of the assigned planes.
    for _ in range(60):
        codes = [rng.choice([rng.randrange(0x3000), rng.randrange(0x11000), rng.randrange(0x20000)]) for _ in range(25)]
        texts.append("".join(chr(c) for c in codes if not 0xd800 <= c < 0xe000).encode())
    return texts


WRITTEN = [b"", b"a", b" ", b"\n", b"Hello world", b"Hello  world", b"  two", b"two  ", b"a\n b", b"a\n\nb", b"a \n b",
           b"don't they'll we've I'm you're he'd it's", b"'S 'T DON'T", b"''s", b"'re'", b"'r", b"' s", b" 's", b"x'sy",
           b"3.14159 v2 2x x2 1,000", b"a\t\tb\t", b" \xc2\xa0 x", b"\xc2\xa0x", b"x\x1c\x1dy \x1cz", b"\xff\xfe \xff",
           b"\xe5\x85\x89\xe5\x85", b"e\xcc\x81 \xcc\x81", b"<|endoftext|>", b"<|endoftext|><|pad|>",
           b" <|endoftext|> x", b"the\n\n<|endoftext|>\n\nthe", b"<|endoftext", b"<<|pad|>>", b"a" * 300,
           b" " * 50, b"ab" * 100]


def scrambled(rng):
    """Merges over a and b in random order: a pair may be stronger than the merges that make its parts."""
    tokens, merges = [b"a", b"b"], []
    while len(merges) < 30:
        left, right = rng.choice(tokens), rng.choice(tokens)
        if (left, right) not in merges and len(left + right) < 7:
            merges.append((left, right))
            if left + right not in tokens:
                tokens.append(left + right)
    rng.shuffle(merges)
    return Model(merges)


def case(model, text):
    return {"text": text.hex(), "ids": model.encode(text)}


def training_case(text, vocab, special=()):
    merges = train(text, vocab, special)
    return {"text": text.hex(), "vocab": vocab, "special": [s.decode() for s in special], "merges": merge_lines(merges)}


def kinds_of_characters():
    """SHA-256 of one letter per code point: L letter, N number, S white space, o other."""
    space = re.compile(f"[{S}]")
    def kind(code):
        first = unicodedata.category(chr(code))[0]
        return first if first in "LN" else "S" if space.match(chr(code)) else "o"
    kinds = "".join(map(kind, range(0x110000)))
    return {"unicode": unicodedata.unidata_version, "sha256": hashlib.sha256(kinds.encode()).hexdigest()}


def main():
    rng = random.Random(1337)
    special = [END.encode(), PAD.encode()]
    model = Model(train(TEXT.encode(), 380, special), special)
    (HERE / "text.txt").write_text(TEXT)
    write_model(model, "")
    other = scrambled(rng)
    write_model(other, "scrambled_")

    def letters(alphabet):
        return "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 80))).encode()

    few = [letters("abc" if i % 2 else "ab ") for i in range(100)]
    trainings = [training_case(text, vocab) for text, vocab in (
        (TEXT.encode(), 400), (b"", 300), (b"a", 300), (b"aa aa", 256), (b"aaaa aaaa aaaaa", 300),
        (b"ab ab abc abc", 259), (bytes(range(256)) * 3, 700))]
    trainings.append(training_case(b"x<|pad|>x x<|pad|>x", 300, [PAD.encode()]))
    trainings += [training_case(text, 256 + rng.randrange(40)) for text in few[:40]]
    cases = {
        "characters": kinds_of_characters(),
        "words": [{"text": t.hex(), "words": [w.hex() for w in words(t)]} for t in WRITTEN + random_texts(rng)],
        "learned": [case(model, t) for t in WRITTEN + random_texts(rng) + [TEXT.encode()]],
        "scrambled": [case(other, t) for t in few],
        "trainings": trainings,
    }
    # One case per line.
    (HERE / "cases.json").write_text(json.dumps(cases).replace(', {"text"', ',\n{"text"') + "\n")


if __name__ == "__main__":
    main()
