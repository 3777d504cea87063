"""Sentences of one language from its file of words and frames (text/LANGUAGE.txt), in the kinds of sentences.py.

A file has sections. `[words NAME]`: words separated by white space; `_` inside a word stands for a space. `[lines NAME]`: one alternative a line. In
both, {NAME} stands for a random alternative of that section. `[lines S]` has the frames of whole sentences, whose slots take any noun or verb that
agrees. `[lines P]`, which a file may lack, has frames of phrases that people say: they teach which words go together, and so how a word is spelled
that sounds like another. A section whose name begins with `-` has no words of its own: nothing of it is used in mixtures of words.

  python3 -m common.grammar de --count 20      draws sentences
  python3 -m common.grammar de --check         what is wrong with the file, and its numbers
"""
import argparse
import random
import re
import sys
from pathlib import Path

from common.split import is_evaluation

TEXT = Path(__file__).resolve().parent.parent / "text"
LANGUAGES = tuple(sorted(path.stem for path in TEXT.glob("??.txt")))   # English has its own files, see sentences.py
DEEPEST = 20             # references of sections to each other
SHARE_OF_FRAMES = 0.55   # the others are words without a plan, so that no grammar can be learnt by heart
_SLOT = re.compile(r"\{([^{}]+)\}")


def sections(path):
    out, current, kind = {}, None, None
    for number, line in enumerate(path.read_text(encoding="utf8").splitlines(), 1):
        line = line.strip()
        if line.startswith("["):
            kind, name = line.strip("[]").split(" ", 1)
            if kind not in ("words", "lines"):
                raise ValueError(f"{path}:{number}: a section is [words NAME] or [lines NAME]")
            current = out.setdefault(name, [])
        elif line and not line.startswith("#"):
            current += [line] if kind == "lines" else [w.replace("_", " ") for w in line.split()]
    return out


def expanded(text, parts, r, depth=0):
    if depth > DEEPEST:
        raise ValueError(f"sections refer to each other for ever: {text}")
    return _SLOT.sub(lambda m: expanded(r.choice(parts[m[1]]), parts, r, depth + 1), text)


def with_capital(text):
    text = re.sub(r"\s+", " ", text).strip()
    first = 1 if text[0] in "¿¡" else 0
    return text[:first] + text[first].upper() + text[first + 1 :]


class Grammar:
    """An endless source of sentences of one side of the split."""

    def __init__(self, language, seed, side="training", framed=SHARE_OF_FRAMES, phrased=0.0):
        """framed: share of the sentences that follow a frame of S. phrased: share that follows one of P, before that, where the language has any."""
        self.parts, self.random, self.framed = sections(TEXT / f"{language}.txt"), random.Random(seed), framed
        self.phrased = phrased if "P" in self.parts else 0.0
        self.evaluation = {"training": False, "evaluation": True}[side]
        whole = [a for name, alternatives in self.parts.items() if not name.startswith("-") for a in alternatives]
        self.opens = any("¿" in a for a in whole)
        self.words = sorted({w.strip(".,?!:;¿¡") for a in whole for w in _SLOT.sub(" ", a).split()} - {""})

    def _of(self, frames):
        return expanded(self.random.choice(self.parts[frames]), self.parts, self.random)

    def _mixed(self):
        """Some commas, which are heard as pauses, and an end mark."""
        r = self.random
        words = [r.choice(self.words) for _ in range(r.randint(1, 14))]
        last = len(words)
        words = [w + "," if 1 < k < last - 2 and r.random() < 0.05 else w for k, w in enumerate(words)]
        if r.random() >= 0.1:
            return " ".join(words) + "."
        return ("¿" if self.opens else "") + " ".join(words) + "?"

    def _kind(self):
        if self.phrased and self.random.random() < self.phrased:
            return "phrase"
        return "frame" if self.random.random() < self.framed else "mixed"

    def draw(self, kind=None):
        """One sentence. kind: frame, phrase, mixed, or None for the mixture of the training text."""
        while True:
            chosen = kind or self._kind()
            made = with_capital(self._of("S") if chosen == "frame" else self._of("P") if chosen == "phrase" else self._mixed())
            if is_evaluation(made) == self.evaluation:
                return made


def problems(language):
    parts = sections(TEXT / f"{language}.txt")

    def is_ended(text):
        last = re.search(r"\{([^{}]+)\}$", text)
        return all(map(is_ended, parts.get(last[1], []))) if last else text[-1] in ".?!"

    slots = [(name, a, m) for name, alternatives in parts.items() for a in alternatives for m in _SLOT.findall(a)]
    used = {m for _, _, m in slots} | {"S", "P", "more"}
    return [
        *(f"[{name}] {a}: no section {m}" for name, a, m in slots if m not in parts),
        *(f"[{name}] is used nowhere" for name in parts if name not in used),
        *(f"[S] without an end mark: {a}" for a in parts.get("S", ["no frames"]) if not is_ended(a)),
        *(f"[P] without an end mark: {a}" for a in parts.get("P", []) if not is_ended(a)),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language", choices=LANGUAGES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20, help="sentences to print")
    parser.add_argument("--phrased", type=float, default=0.0, help="share of the sentences that follow a frame of P")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        wrong = problems(options.language)
        print("\n".join(wrong) or "nothing wrong")
        if wrong:
            sys.exit(1)
    source = Grammar(options.language, options.seed, phrased=options.phrased)
    print(f"{len(source.words)} word forms, {len(source.parts['S'])} frames")
    for _ in range(options.count):
        print(source.draw())


if __name__ == "__main__":
    main()
