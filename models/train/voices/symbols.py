"""From espeak-ng's IPA to the symbols of Kokoro v1.0, with durations carried along. English is rewritten here; the symbols of other languages are
those of languages.py.

Two published conventions are supported and both are trained, so that either front end may drive the model:
  "characters"  espeak's IPA, one id a character, r->ɹ x->k ʲ->j ɬ->l, "nine-ti" -> "nine-di" in American (what the product uses)
  "letters"     single letters for diphthongs and affricates (A I O Q W Y ʤ ʧ), no length marks in American
"""
import json
import re
from pathlib import Path

from common import espeak

TOKENIZER = Path(__file__).resolve().parents[2] / "kokoro-demo" / "tokenizer.json"
IDS = {c: i for c, i in json.loads(TOKENIZER.read_text(encoding="utf8"))["model"]["vocab"].items() if i > 0}
SYMBOLS = 178
MARKS = "ˈˌ↓↗"     # stress and tones have no time of their own
LONG = "ː"
PUNCTUATION = ' ,.!?;:—…"()“”'
_SINGLE = {"r": "ɹ", "x": "k", "ʲ": "j", "ɬ": "l"}
_SINGLE_LETTERS = {"ɐ": "ə", "ʔ": "t", "ç": "k", "e": "A", "o": "ɔ", **_SINGLE}
_PAIRS = {"aɪ": "I", "aʊ": "W", "eɪ": "A", "ɔɪ": "Y", "dʒ": "ʤ", "tʃ": "ʧ"}
_PAIRS_BRITISH = {**_PAIRS, "əʊ": "Q", "eə": "ɛː", "iə": "ɪə"}
_PAIRS_AMERICAN = {**_PAIRS, "oʊ": "O", "ɪə": "iə"}


def ipa_of(text, language, of_clause=espeak.ipa):
    """Clause by clause, with the punctuation kept. of_clause(clause, language): its symbols."""
    out = ""
    for part in re.findall(r'\s*[;:,.!?—…"()]+\s*|[^;:,.!?—…"()]+', text):
        silent = re.match(r'\s*[;:,.!?—…"()]', part) or not part.strip()
        out += part if silent else of_clause(part.strip(), language)
    return out.strip()


def known(ipa):
    return [c for c in ipa if c in IDS]


def first_characters(characters, phonemes):
    """The index of the first character of every phoneme event, and of every event's characters; None where they disagree. Pauses point at the
    next punctuation."""
    out, at = [], 0
    for _, ipa in phonemes:
        own = [c for c in ipa if c in IDS and c not in MARKS]
        if not own:
            q = at
            while q < len(characters) and characters[q] in MARKS:
                q += 1
            out.append([q if q < len(characters) and characters[q] in PUNCTUATION else max(0, at - 1)])
            continue
        places = []
        for c in own:
            # Of a long sound the event has one sign, the text two.
            while at < len(characters) and characters[at] != c and characters[at] in MARKS + PUNCTUATION + LONG + "".join(characters[:at][-1:]):
                at += 1
            if at >= len(characters) or characters[at] != c:
                return None
            places.append(at)
            at += 1
        out.append(places)
    while at < len(characters) and characters[at] in MARKS + PUNCTUATION + LONG:
        at += 1
    return out if at == len(characters) else None


def durations(characters, phonemes, end):
    """Seconds of every character (stress marks none, pauses on the punctuation), or None when events and characters disagree."""
    places = first_characters(characters, phonemes)
    if places is None:
        return None
    out = [0.0] * len(characters)
    for k, ((start, ipa), own) in enumerate(zip(phonemes, places)):
        length = (phonemes[k + 1][0] if k + 1 < len(phonemes) else end) - start
        if not [c for c in ipa if c in IDS and c not in MARKS]:
            out[own[0]] += length
            continue
        weights = [0.6 if characters[p] == LONG else 1.0 for p in own]
        for p, w in zip(own, weights):
            out[p] += length * w / sum(weights)
    return out


def rewrite(characters, seconds, british, convention="characters"):
    """IPA characters and their durations -> the same in Kokoro's convention; durations are summed or split, never lost."""
    s, out, lengths, i = "".join(characters), [], [], 0

    def put(symbols, length):
        for symbol in symbols:
            out.append(symbol)
            lengths.append(length / len(symbols))

    while i < len(s):
        c, two = s[i], s[i : i + 2]
        if convention == "characters":
            if not british and two == "ti" and "".join(out).endswith("nˈaɪn") and s[i + 2 : i + 3] != "ː":
                c = "d"
            if s[i : i + 8] == "hˈʌndɹɪd" and out and out[-1] not in PUNCTUATION + MARKS:
                put(" ", 0.0)
            put(_SINGLE.get(c, c), seconds[i])
            i += 1
            continue
        pair = (_PAIRS_BRITISH if british else _PAIRS_AMERICAN).get(two)
        if two == "ɜː" and not british:
            n = 3 if s[i + 2 : i + 3] == "ɹ" else 2
            put("ɜɹ", sum(seconds[i : i + n]))
            i += n
        elif pair:
            put(pair, seconds[i] + seconds[i + 1])
            i += 2
        elif c == "ː" and not british:
            lengths[-1] += seconds[i]
            i += 1
        else:
            put("əɹ" if c == "ɚ" else _SINGLE_LETTERS.get(c, c), seconds[i])
            i += 1
    return out, lengths


def ids_of(characters):
    """With the padding id at both ends."""
    return [0] + [IDS[c] for c in characters if c in IDS] + [0]
