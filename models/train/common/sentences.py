"""The training text: sentences from a hand-written vocabulary and sentence frames, in several kinds, so that no single grammar can be learnt
by heart:

  pattern  a frame of text/patterns.txt with its slots filled (statements, questions, requests, dates, sums, telephone, weather, ...)
  chain    random phrases (noun, verb, prepositional, connective) without any plan, up to 20 words
  mixed    random words of every class with function words in between, up to 20 words
  plain    words drawn uniformly from the whole vocabulary, so that every form is equally frequent
  listed   where a list of more words is given: words of it, with some of the vocabulary between
  phrase   where asked for: frames of phrases that people say, of text/phrases.txt (its layout is that of grammar.py, its frames are [lines P])

A source is deterministic from its seed and keeps to one side of the split: "training" or "evaluation" (see split.py).
"""
import argparse
import random
import re
from pathlib import Path

from common.grammar import expanded, sections, with_capital
from common.split import is_evaluation

TEXT = Path(__file__).resolve().parent.parent / "text"


def _sections(path):
    out, name = {}, None
    for line in path.read_text(encoding="utf8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            out[name] = []
        elif line and not line.startswith("#"):
            out[name] += line.split()
    return out


def _lines(path):
    return [line for line in path.read_text(encoding="utf8").splitlines() if line and not line.startswith("#")]


V = _sections(TEXT / "vocabulary.txt")
PATTERNS = _lines(TEXT / "patterns.txt")
NEVER_TRAINED = frozenset(V["never trained"])
_PLURAL = dict(pair.split("=") for pair in V["irregular plurals"])
_PAST = dict(pair.split("=") for pair in V["irregular pasts"])
_DOUBLED = set(V["doubled"])
_DOUBLED_GERUND = _DOUBLED | set(V["doubled in gerunds"])
SHARE_OF_LISTED = 0.4   # of the sentences, where there is a list
_LANGUAGES = "English French German Spanish Italian Chinese Japanese Russian".split()
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth twelfth fifteenth twentieth".split()


def _ends_in_consonant_y(word):
    return word[-1] == "y" and word[-2] not in "aeiou"


def plural(word):
    if word in _PLURAL:
        return _PLURAL[word]
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word[-1] in "sxz" or word[-2:] in ("sh", "ch") else "s")


def past(verb):
    if verb in _PAST:
        return _PAST[verb]
    if verb[-1] == "e":
        return verb + "d"
    if _ends_in_consonant_y(verb):
        return verb[:-1] + "ied"
    return verb + (verb[-1] if verb in _DOUBLED else "") + "ed"


def third_person(verb):
    if verb == "go":
        return "goes"
    return plural(verb) if verb not in _PLURAL else verb + ("es" if verb.endswith("sh") else "s")


def gerund(verb):
    if verb in ("die", "lie", "tie"):
        return verb[:-2] + "ying"
    if verb in _DOUBLED_GERUND:
        return verb + verb[-1] + "ing"
    silent = verb[-1] == "e" and verb not in ("see", "agree", "disagree", "free")
    return (verb[:-1] if silent else verb) + "ing"


def spelled(n):
    """0 to 999,999 in words."""
    if n < 20:
        return V["ones"][n]
    if n < 100:
        return V["tens"][n // 10 - 2] + ("" if n % 10 == 0 else " " + spelled(n % 10))
    if n < 1000:
        return spelled(n // 100) + " hundred" + ("" if n % 100 == 0 else " and " + spelled(n % 100))
    return spelled(n // 1000) + " thousand" + ("" if n % 1000 == 0 else " " + spelled(n % 1000))


def _unique(words):
    return sorted(set(words))


def _with_article(phrase):
    vowel = phrase[0] in "aeiou" and not phrase.startswith(("uni", "use", "euro", "one"))
    return ("an " if vowel else "a ") + phrase


class Sentences:
    """An endless source. Words of the section "never trained" stay out of everything but `unknown`. listed: more words (wordlist.py). phrased:
    share of the sentences that are phrases."""

    def __init__(self, seed, side="training", listed=(), phrased=0.0):
        self.random, self.listed, self.phrased = random.Random(seed), listed, phrased
        self.evaluation = {"training": False, "evaluation": True}[side]

        def trained(name):
            return _unique(w for w in V[name] if w not in NEVER_TRAINED)

        self.nouns, self.transitive, self.intransitive = map(trained, ("nouns", "transitive verbs", "intransitive verbs"))
        self.adjectives, self.adverbs = map(trained, ("adjectives", "adverbs"))
        verbs = self.transitive + self.intransitive
        self.content = _unique(
            self.nouns + verbs + self.adjectives + self.adverbs + [plural(n) for n in self.nouns]
            + [form(v) for v in verbs for form in (past, gerund, third_person)]
            + V["names"] + V["places"] + V["extra"] + V["ones"] + V["tens"] + V["days"] + V["months"]
        )
        self.function = _unique(V["function words"] + V["contractions"])
        self.phrases = sections(TEXT / "phrases.txt") if phrased else {}

    def _one(self, choices):
        return self.random.choice(choices)

    def _number(self, top):
        """Small numbers are as likely as large ones."""
        return spelled(self.random.randint(0, min(top, self._one((20, 100, 1000, 10000)))))

    def _noun_phrase(self):
        r, q = self.random, self.random.random()
        if q < 0.10:
            return self._one(V["names"])
        if q < 0.16:
            return self._one("it him her them us me you something everything nothing someone everyone this that".split())
        adjective = self._one(self.adjectives) + " " if r.random() < 0.4 else ""
        if q < 0.25:
            return self._number(99) + " " + adjective + plural(self._one(self.nouns))
        if q < 0.40:
            return self._one("the these those some many my our all".split()) + " " + adjective + plural(self._one(self.nouns))
        determiner, words = self._one(V["determiners"]), adjective + self._one(self.nouns)
        return _with_article(words) if determiner == "a" else determiner + " " + words

    def _prepositional(self):
        place = self.random.random() < 0.15
        return self._one(V["prepositions"]) + " " + (self._one(V["places"]) if place else self._noun_phrase())

    def _verb(self, verbs):
        return self._one((past, past, past, third_person, lambda v: v))(self._one(verbs))

    def _clock(self):
        def hour():
            return V["ones"][self.random.randint(1, 12)]

        return self._one([
            hour() + " o'clock", "half past " + hour(), hour() + " " + self._one(["fifteen", "thirty", "forty five", "ten", "twenty"]),
            "noon", "midnight", "quarter past " + hour(),
        ])

    def _digits(self):
        return " ".join(V["ones"][self.random.randint(0, 9)] for _ in range(self.random.randint(3, 7)))

    def _slot(self, name):
        one = self._one
        fill = {
            "NP": self._noun_phrase, "PP": self._prepositional, "TIME": self._clock, "DIG": self._digits,
            "V": lambda: self._verb(self.transitive), "VI": lambda: self._verb(self.intransitive),
            "Vp": lambda: past(one(self.transitive)), "v": lambda: one(self.transitive), "G": lambda: gerund(one(self.transitive)),
            "N": lambda: one(self.nouns), "NS": lambda: plural(one(self.nouns)),
            "A": lambda: one(self.adjectives), "A1": lambda: _with_article(one(self.adjectives)), "ADV": lambda: one(self.adverbs),
            "P": lambda: one(V["pronouns"]), "M": lambda: one(V["modals"]), "WH": lambda: one("who what when where why how".split()),
            "NUM": lambda: self._number(9999), "NUM2": lambda: self._number(99),
            "ORD": lambda: one(_ORDINALS + [self._number(31)]), "OP": lambda: one(["plus", "minus", "times"]),
            "UD": lambda: one(["up", "down"]), "NAME": lambda: one(V["names"]), "PLACE": lambda: one(V["places"]),
            "DAY": lambda: one(V["days"]), "MONTH": lambda: one(V["months"]), "LANG": lambda: one(_LANGUAGES),
        }
        return fill[name]()

    def _pattern(self):
        return re.sub(r"\{(\w+)\}", lambda m: self._slot(m[1]), self._one(PATTERNS))

    def _chain_part(self):
        q, one = self.random.random(), self._one
        if q < 0.24:
            return self._noun_phrase()
        if q < 0.38:
            return self._prepositional()
        if q < 0.50:
            return self._verb(self.transitive)
        if q < 0.57:
            return self._verb(self.intransitive)
        if q < 0.63:
            return one(V["modals"]) + " " + one(self.transitive)
        if q < 0.72:
            return one(V["connectives"]) + " " + one(V["pronouns"])
        if q < 0.78:
            return one(V["contractions"]) + " " + one(self.adjectives + [gerund(one(self.transitive))])
        if q < 0.85:
            return one(self.adverbs)
        if q < 0.90:
            return "to " + one(self.transitive)
        return one(self.adjectives) if q < 0.94 else one(self.function)

    def _chain(self):
        count, words = self.random.randint(3, 20), []
        while len(words) < count:
            words += self._chain_part().split()
        return self._ended(words[:20])

    def _mixed(self):
        def word():
            return self._one(self.function) if self.random.random() < 0.45 else self._one(self.content)

        return self._ended([word() for _ in range(self.random.randint(2, 20))])

    def _plain(self):
        return self._ended([self._one(self.content) for _ in range(self.random.randint(1, 9))])

    def _listed(self):
        def word():
            q = self.random.random()
            return self._one(self.listed if q < 0.6 else self.function if q < 0.85 else self.content)

        return self._ended([word() for _ in range(self.random.randint(1, 12))])

    def _phrase(self):
        return expanded(self._one(self.phrases["P"]), self.phrases, self.random)

    def _ended(self, words):
        """Some commas, which are heard as pauses, and an end mark."""
        r, last = self.random, len(words)
        words = [w + "," if 1 < k < last - 2 and r.random() < 0.05 else w for k, w in enumerate(words)]
        return " ".join(words) + ("?" if r.random() < 0.10 else ".")

    def draw(self, kind=None):
        """One sentence of this side. kind: pattern, chain, mixed, plain, listed, or None for the mixture of the training text."""
        while True:
            q = self.random.random()
            chosen = kind or ("pattern" if q < 0.42 else "chain" if q < 0.70 else "mixed" if q < 0.85 else "plain")
            if kind is None and self.listed and self.random.random() < SHARE_OF_LISTED:
                chosen = "listed"
            if kind is None and self.phrased and self.random.random() < self.phrased:
                chosen = "phrase"
            makers = {
                "pattern": self._pattern, "chain": self._chain, "mixed": self._mixed, "plain": self._plain, "listed": self._listed, "phrase": self._phrase,
            }
            made = makers[chosen]()
            made = with_capital(" ".join("I" if w == "i" else w for w in made.split()))
            if is_evaluation(made) == self.evaluation:
                return made

    def unknown(self):
        """Words that no model was trained on."""
        words = " ".join(self._one(sorted(NEVER_TRAINED)) for _ in range(self.random.randint(2, 5)))
        return words[0].upper() + words[1:] + "."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20, help="sentences to print")
    parser.add_argument("--kind", choices=["pattern", "chain", "mixed", "plain", "unknown"])
    parser.add_argument("--side", choices=["training", "evaluation"], default="training")
    options = parser.parse_args()
    source = Sentences(options.seed, options.side)
    for _ in range(options.count):
        print(source.unknown() if options.kind == "unknown" else source.draw(options.kind))


if __name__ == "__main__":
    main()
