"""Training text of the chat model with nothing but sums, many in a short text: numbers are spelled digit by digit, and the model learns to
carry from some ten thousand examples.

  python3 -m words.drills --count 5 --seed 3
"""
import argparse
import random

from words.corpus import ASKED_WEIGHT, END, START, STOP, unseen
from words.sums import calculation, question

CHAT_SHARE = 0.4


def document(r, turns=None):
    """As corpus.document."""
    if r.random() >= CHAT_SHARE:
        parts = [calculation(r) for _ in range(r.randint(4, 16))]
        return [(" ".join(f"{a} {word} {b} is {value}." for a, b, _, word, value in parts), 1.0), (END, 1.0)]
    out = []
    for _ in range(r.randint(2, 5)):
        a, b, sign, word, value = calculation(r)
        asked = question(r, a, b, sign, word)
        if not unseen(asked):
            continue
        out += [
            (START, 1.0), ("user\n" + asked, ASKED_WEIGHT / 2), (STOP, ASKED_WEIGHT), ("\n", ASKED_WEIGHT),
            (START, ASKED_WEIGHT), ("assistant\n", ASKED_WEIGHT), (f"{a} {word} {b} is {value}.", 1.0), (STOP, 1.0), ("\n", ASKED_WEIGHT),
        ]
    return out + [(END, 1.0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    r = random.Random(options.seed)
    for _ in range(options.count):
        print("".join(text for text, _ in document(r)), "\n-----")


if __name__ == "__main__":
    main()
