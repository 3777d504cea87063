"""Conversations about scenes, as sequences of tokens and of rows of pictures, with labels for the answers."""
from dataclasses import dataclass, field

import torch

from sight.network import ROWS
from sight.scenes import questions
from words import corpus

PACKED, TURNS, TEXT_FIRST = 0.62, 0.2, 0.18     # shares of the three forms
PACKED_QUESTIONS, PACKED_HARD = 6, 4
HARD = ("colour", "place", "placeColour", "number", "read")     # kinds that took the longest; they are asked more often
SYSTEM_SHARE = 0.2          # of conversations that are not packed
SECOND_SHARE = 0.25         # of conversations of several turns that show another picture
CHAT_SHARE = 0.12           # of turns that are not about the picture
NO_LABEL = -100


@dataclass
class Sequence:
    ids: list = field(default_factory=list)
    labels: list = field(default_factory=list)
    positions: list = field(default_factory=list)
    parts: list = field(default_factory=list)       # 0 is seen from all parts, others only from themselves

    def add(self, ids, labelled=False, part=0):
        begin = 1 + max((p for p, of in zip(self.positions, self.parts) if of in (0, part)), default=-1)
        self.ids += ids
        self.labels += ids if labelled else [NO_LABEL] * len(ids)
        self.positions += range(begin, begin + len(ids))
        self.parts += [part] * len(ids)


def picture(index):
    return [-1 - index * ROWS - row for row in range(ROWS)]


class Talk:
    def __init__(self, tokens, r):
        self.tokens, self.r = tokens, r
        self.head = tokens.encode("<|im_start|>user\n")
        self.tail = tokens.encode("<|im_end|>\n<|im_start|>assistant\n")
        self.end, self.line = tokens.id["<|im_end|>"], tokens.encode("\n")

    def asked(self, question):
        return self.tokens.encode(corpus.casual(self.r, question))

    def answered(self, answer):
        return self.tokens.encode(answer) + [self.end]

    def chosen(self, scene):
        """The hard kinds are drawn twice, mostly about another shape or in other words."""
        first, second = questions(scene, self.r), questions(scene, self.r)
        hard = [q for q in first + second if q[0] in HARD][:PACKED_HARD]
        easy = [q for q in first if q[0] not in HARD]
        return hard + easy[: PACKED_QUESTIONS - len(hard)]

    def packed(self, scenes, index):
        """Several questions that do not see each other, each right behind the picture."""
        out = Sequence()
        out.add(self.head + picture(index))
        for part, (_, question, answer) in enumerate(self.chosen(scenes[index]), 1):
            out.add(self.asked(question) + self.tail, part=part)
            out.add(self.answered(answer), labelled=True, part=part)
        return out

    def turns(self, scenes, index, count=None, text_first=False):
        r, out = self.r, Sequence()
        if r.random() < SYSTEM_SHARE:
            out.add(self.tokens.encode("<|im_start|>system\n" + r.choice(corpus.K["systems"])) + [self.end] + self.line)
        open_questions, memory = questions(scenes[index], r), {}
        for turn in range(count or r.randint(2, 4)):
            if turn and r.random() < CHAT_SHARE:
                asked, answer, _ = corpus.turn(r, memory)
                parts = [self.asked(asked)]
            else:
                shown = turn == 0
                if turn and r.random() < SECOND_SHARE:
                    index, shown = r.randrange(len(scenes)), True
                    open_questions = questions(scenes[index], r)
                _, asked, answer = open_questions.pop()
                parts = [picture(index)] * shown + [self.asked(asked)]
            first = text_first or r.random() < 0.3
            out.add(self.head + sum(reversed(parts) if first else parts, []) + self.tail)
            out.add(self.answered(answer), labelled=True)
            out.add(self.line)
        return out

    def batch(self, scenes):
        """-> ids, labels, positions [scenes, length] and allowed [scenes, length, length], or None where it is plain causal"""
        form = self.r.choices(["packed", "turns", "text first"], [PACKED, TURNS, TEXT_FIRST])[0]
        numbers = range(len(scenes))
        if form == "packed":
            sequences = [self.packed(scenes, i) for i in numbers]
        elif form == "turns":
            sequences = [self.turns(scenes, i) for i in numbers]
        else:
            sequences = [self.turns(scenes, i, 1, True) for i in numbers]
        length = max(len(s.ids) for s in sequences)

        def padded(of, filler):
            return torch.tensor([of(s) + [filler] * (length - len(s.ids)) for s in sequences])

        ids, labels = padded(lambda s: s.ids, self.end), padded(lambda s: s.labels, NO_LABEL)
        positions = padded(lambda s: s.positions, 0)
        if form != "packed":
            return ids, labels, positions, None
        parts = padded(lambda s: s.parts, -1)
        allowed = (parts[:, None] == 0) | (parts[:, None] == parts[:, :, None])
        return ids, labels, positions, allowed & torch.ones(length, length, dtype=torch.bool).tril()
