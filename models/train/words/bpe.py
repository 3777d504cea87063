"""Byte-level BPE in GPT-2's format (GGUF: tokenizer.ggml.model = gpt2, pre = gpt-2). Numbers are spelled digit by digit, so that sums are
learnt from few examples. (A tokenizer that is read from an older file may have numbers of two digits as tokens.)
"""
import collections
import re

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
_WORDS = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
_CONTROLS = re.compile("(" + "|".join(map(re.escape, CONTROL)) + ")")
FEWEST = 4      # times a pair must be seen to be merged


def _byte_alphabet():
    """GPT-2's printable stand-ins for the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + n) for n, b in enumerate(others)}}


_FROM_BYTE = _byte_alphabet()
_TO_BYTE = {c: b for b, c in _FROM_BYTE.items()}


def train(texts, size):
    """-> merges, most frequent first"""
    counts = collections.Counter(w for text in texts for w in _WORDS.findall(text))
    words = [([_FROM_BYTE[b] for b in w.encode()], n) for w, n in counts.items() if not re.search(r"\d", w)]
    merges = []
    while len(_FROM_BYTE) + len(merges) + len(CONTROL) < size:
        pairs = collections.Counter()
        for parts, n in words:
            for pair in zip(parts, parts[1:]):
                pairs[pair] += n
        (a, b), n = max(pairs.items(), key=lambda x: (x[1], x[0]))
        if n < FEWEST:
            break
        merges.append((a, b))
        words = [(_merged(parts, a, b), n) if a in parts else (parts, n) for parts, n in words]
    return merges


def _merged(parts, a, b):
    out, i = [], 0
    while i < len(parts):
        both = parts[i : i + 2] == [a, b]
        out.append(a + b if both else parts[i])
        i += 2 if both else 1
    return out


class Tokens:
    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.vocabulary = [_FROM_BYTE[b] for b in _alphabet_order()] + [a + b for a, b in self.merges] + CONTROL
        self.id = {t: i for i, t in enumerate(self.vocabulary)}
        self._known = {}

    def _word(self, word):
        if word not in self._known:
            parts = [_FROM_BYTE[b] for b in word.encode()]
            while len(parts) > 1:
                best = min(zip(parts, parts[1:]), key=lambda pair: self.rank.get(pair, 1 << 30))
                if best not in self.rank:
                    break
                i = next(i for i in range(len(parts) - 1) if (parts[i], parts[i + 1]) == best)
                parts[i : i + 2] = ["".join(best)]
            self._known[word] = [self.id[p] for p in parts]
        return self._known[word]

    def encode(self, text):
        """Control tokens inside the text become control tokens."""
        out = []
        for piece in _CONTROLS.split(text):
            if piece in CONTROL:
                out.append(self.id[piece])
            else:
                out += [i for word in _WORDS.findall(piece) for i in self._word(word)]
        return out

    def decode(self, ids):
        tokens = [self.vocabulary[i] for i in ids]
        data = b"".join(t.encode() if t in CONTROL else bytes(_TO_BYTE[c] for c in t) for t in tokens)
        return data.decode("utf8", "replace")


def _alphabet_order():
    """GPT-2's: printable bytes first."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return printable + [b for b in range(256) if b not in printable]
