"""Training text of the chat model with nothing but sums, many in a short text: numbers are spelled digit by digit, and the model learns to
carry from some ten thousand examples.

  python3 -m words.drills --count 5 --seed 3
"""
from words.corpus import ASKED_WEIGHT, END, NUMBERS, START, STOP, show, unseen
from words.sums import calculation, question

CHAT_SHARE = 0.4
WORD_SHARE = 0.5        # of the small sums are in words


def _sum(r):
    """-> question, answer"""
    a, b, sign, word, value = calculation(r, 20 if r.random() < 0.3 else None)
    if max(a, b, value) <= 20 and r.random() < WORD_SHARE:
        asked = question(r, NUMBERS[a], NUMBERS[b], sign, word, in_words=True)
        return asked, f"{NUMBERS[a]} {word} {NUMBERS[b]} is {NUMBERS[value]}.".capitalize()
    return question(r, a, b, sign, word), f"{a} {word} {b} is {value}."


def document(r, turns=None):
    """As corpus.document."""
    if r.random() >= CHAT_SHARE:
        return [(" ".join(_sum(r)[1] for _ in range(r.randint(4, 16))), 1.0), (END, 1.0)]
    out = []
    for _ in range(r.randint(2, 5)):
        asked, answer = _sum(r)
        if not unseen(asked):
            continue
        out += [
            (START, 1.0), ("user\n" + asked, ASKED_WEIGHT / 2), (STOP, ASKED_WEIGHT), ("\n", ASKED_WEIGHT),
            (START, ASKED_WEIGHT), ("assistant\n", ASKED_WEIGHT), (answer, 1.0), (STOP, 1.0), ("\n", ASKED_WEIGHT),
        ]
    return out + [(END, 1.0)]


if __name__ == "__main__":
    show(document, __doc__)
