"""Which side of the fence a sentence is on: training or evaluation. The generator of the training text asks here before it lets a
sentence out, the tools that make evaluation sets ask the opposite, and a test of the TypeScript side repeats the rule.

The rule looks at the words alone: lower case, everything but a-z, digits, apostrophes and spaces dropped, spaces collapsed. A sentence
whose first SHA-256 byte is below EVALUATION_BYTES is for evaluation and never trained.
"""
import hashlib
import re

EVALUATION_BYTES = 64  # of 256: a quarter. Large, so that hand-written evaluation sentences need few rewordings.
MANIFEST_BYTES = 5     # of every digest in a manifest: among 10^5 sentences a false meeting has a chance of 10^-7


def normalised(sentence: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"[^a-z0-9' ]", " ", sentence.lower())).strip()


def digest(sentence: str) -> bytes:
    return hashlib.sha256(normalised(sentence).encode()).digest()


def is_evaluation(sentence: str) -> bool:
    return digest(sentence)[0] < EVALUATION_BYTES


def manifest(sentences) -> bytes:
    """The sorted, distinct digest beginnings of all sentences, one after the other."""
    return b"".join(sorted({digest(s)[:MANIFEST_BYTES] for s in sentences}))
