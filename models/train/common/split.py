"""Decides whether a sentence is for training or for evaluation. The generator of the training text outputs only sentences for training,
the tools that make evaluation sets use only sentences for evaluation, and models/test/Disjoint.test.ts checks the result by the same rule.

The rule takes the words alone: in lower case, with everything but letters, digits, apostrophes and spaces removed, and with single spaces. A
sentence is for evaluation, and never trained, if the first byte of its SHA-256 is below EVALUATION_BYTES.
"""
import hashlib
import re
import unicodedata

EVALUATION_BYTES = 64  # of 256: a quarter. Large, so that hand-written evaluation sentences need few rewordings.
# Bytes of each sentence's digest that a manifest keeps. With 10^5 sentences in it, a sentence that is not one of them matches by chance
# with probability 10^-7.
MANIFEST_BYTES = 5


def normalised(sentence: str) -> str:
    letters = re.sub(r"[^\w' ]|_", " ", unicodedata.normalize("NFC", sentence).lower())
    return re.sub(r"\s+", " ", letters).strip()


def digest(sentence: str) -> bytes:
    return hashlib.sha256(normalised(sentence).encode()).digest()


def is_evaluation(sentence: str) -> bool:
    return digest(sentence)[0] < EVALUATION_BYTES


def manifest(sentences) -> bytes:
    """The sorted, distinct digest beginnings of all sentences, one after the other."""
    return b"".join(sorted({digest(s)[:MANIFEST_BYTES] for s in sentences}))
