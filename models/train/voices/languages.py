"""The languages of the cloning model: who speaks them in the clips, and how eSpeak's IPA becomes symbols of the table. The symbols are those that
the product feeds at run time (engines/clone/Languages.ts and Inventory.ts); models/test/Inventory.test.ts compares the two.
"""
import re
import unicodedata
from pathlib import Path

from common.grammar import Grammar
from common.sentences import Sentences

# Language -> voices of espeak-ng. Debian's has no dictionary of Chinese characters: the text is in pinyin.
ACCENTS = {
    "en": ["en-us", "en"], "fr": ["fr"], "de": ["de"], "es": ["es", "es-419"], "it": ["it"], "pt": ["pt-br"], "pl": ["pl"], "ja": ["ja"],
    "ar": ["ar"], "zh": ["cmn-latn-pinyin"],
}
LANGUAGE_OF = {accent: language for language, accents in ACCENTS.items() for accent in accents}
_NEAREST = Path(__file__).parent / "nearest.txt"


def _nearest():
    rows = [line.split() for line in _NEAREST.read_text(encoding="utf8").splitlines() if line and not line.startswith("#")]
    return {sound: near for near, sounds in rows for sound in sounds}


NEAREST = _nearest()
_VOICED = {"t": "d", "p": "b", "k": "ɡ", "ts": "dz", "tɕ": "dʑ", "tʂ": "dʐ"}


def _mandarin(ipa):
    """Tones stand behind the vowel: "ɜ" rises, "2" is low; "5" is high or falls, "1" and "4" have none. "h" behind a stop is its breath, and a stop
    without it is nearest to a voiced one."""
    ipa = re.sub("[145]", "", ipa).replace("ɜ", "↗").replace("2", "↓")
    return re.sub("(?<!s)(t[sɕʂ]?|p|k)(h?)", lambda m: m[1] if m[2] else _VOICED.get(m[1], m[1]), ipa)


def symbols_of(ipa, language, table):
    """IPA of a clause, or of one sound -> symbols of the table."""
    ipa = re.sub("[_.-]", "", ipa)
    if language == "zh":
        ipa = _mandarin(ipa)
    out = ""
    for c in unicodedata.normalize("NFC", ipa):
        if c in table:
            out += c
        elif c in NEAREST:
            out += NEAREST[c]
        else:
            out += "".join(p if p in table else NEAREST.get(p, "") for p in unicodedata.normalize("NFD", c))
    return out


class Texts:
    """Sentences of every language, of one side of the split."""

    def __init__(self, languages, seed, side):
        self.sources = {language: Sentences(seed, side) if language == "en" else Grammar(language, seed, side) for language in languages}

    def draw(self, language, framed):
        kind = None if not framed else "pattern" if language == "en" else "frame"
        return self.sources[language].draw(kind)
