"""What people type first into a chat, everyday conversation, and requests that the model cannot fulfil: blocks of wordings and answers from
everyday.txt and refusals.txt, with the words of slots.txt in their slots.

  python3 -m words.everyday --count 20 --seed 3
"""
import argparse
import random
import re
from pathlib import Path

HERE = Path(__file__).parent
_SLOT = re.compile(r"{(\w+)}")
_INNERMOST = re.compile(r"\(([^()]*)\)")
_CONSONANTS, _VOWELS = "b d f g h j k l m n p r s t v w z br tr kl st sh gl pr th ch qu x".split(), "a e i o u ai ea oo ou".split()
_ENDINGS = ["", "n", "r", "l", "s", "tion", "ium", "ology", "ing", "ics", "ism", "ster", "land", "ware", "ment", "er", "o"]


def sections(name, split):
    """{section: its parts}, of a file whose sections begin with [name]"""
    out, section = {}, None
    for line in (HERE / name).read_text(encoding="utf8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            out[section] = []
        elif line and not line.startswith("#"):
            out[section] += [part.strip() for part in split(line)]
    return out


SLOTS = sections("slots.txt", lambda line: [line] if line.endswith(".") else line.split(","))


class Block:
    def __init__(self, lines):
        self.said = [(spread(line[2:]), line[2:]) for line in lines if line[0] == "?"]
        self.replies = [line[2:] for line in lines if line[0] == "!"]
        self.word = next((line[2:] for line in lines if line[0] == "="), None)
        self.share = next((float(line[2:]) for line in lines if line[0] == "*"), 1.0)


def spread(line):
    """The number of wordings of a line, at most 40: how often it is chosen."""
    return min(40, max(1, 1 + line.count("|"))) ** 0.7


def blocks(name):
    out, lines = [], []
    for line in [*(HERE / name).read_text(encoding="utf8").splitlines(), ""]:
        if line and not line.startswith("#"):
            lines.append(line)
        elif lines and not line:
            out.append(Block(lines))
            lines = []
    return out


EVERYDAY, REFUSALS, FACTS = blocks("everyday.txt"), blocks("refusals.txt"), blocks("facts.txt")
UNKNOWN = max(REFUSALS, key=lambda block: block.share)      # what to say to a question about anything


def made(r):
    """A word that does not exist."""
    return "".join(r.choice(_CONSONANTS) + r.choice(_VOWELS) for _ in range(r.randint(1, 3))) + r.choice(_ENDINGS)


def _choice(r, text):
    """Resolves (a|b) from the inside."""
    while True:
        found = _INNERMOST.search(text)
        if not found:
            return text
        text = text[: found.start()] + r.choice(found.group(1).split("|")) + text[found.end():]


def filled(r, line, values, others):
    def value(found):
        slot = found.group(1)
        if slot not in values:
            base = slot if slot in SLOTS or slot in others else slot.rstrip("2")
            if base == "made":
                words = made(r) if r.random() < 0.7 else made(r) + " " + made(r)
                values[slot] = words.title() if r.random() < 0.3 else words
            else:
                values[slot] = r.choice(others[base] if base in others else SLOTS[base])
        return values[slot]
    return _SLOT.sub(value, _choice(r, line))


def ask(r, table, others):
    """-> question, answer, the answer in one word or None"""
    block, values = r.choices(table, [b.share for b in table])[0], {}
    _, line = r.choices(block.said, [weight for weight, _ in block.said])[0]
    question = re.sub(r"\s+([?.!,])", r"\1", re.sub(r" +", " ", filled(r, line, values, others))).strip()
    question = question[:1].upper() + question[1:]
    question = re.sub(r"\bi\b", "I", question)
    if question[-1].isalnum() and r.random() < 0.6:
        question += r.choice([".", ".", "!"])
    return question, filled(r, r.choice(block.replies), values, others), block.word


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    r, others = random.Random(options.seed), {"noun": ["table", "window"], "name": ["Anna", "Peter"]}
    for _ in range(options.count):
        print(ask(r, r.choice([EVERYDAY, REFUSALS]), others))


if __name__ == "__main__":
    main()
