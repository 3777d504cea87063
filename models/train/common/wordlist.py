"""Words of a list with one a line (Debian's /usr/share/dict/american-english, package wamerican), so that the transcription model hears more
than the written vocabulary. The words of ../eval/unheard.txt and the vocabulary's section "never trained" are left out.
"""
import re
from pathlib import Path

from common.sentences import NEVER_TRAINED

UNHEARD = Path(__file__).resolve().parents[2] / "eval" / "unheard.txt"
_WORD = re.compile("[a-z]{2,14}")  # no names, no possessives, no accents


def unheard():
    lines = UNHEARD.read_text(encoding="utf8").splitlines()
    return {word for line in lines if not line.startswith("#") for word in re.findall("[a-z']+", line.lower())}


def words_of(path):
    left_out = NEVER_TRAINED | unheard()
    return [word for word in Path(path).read_text(encoding="utf8").split() if _WORD.fullmatch(word) and word not in left_out]
