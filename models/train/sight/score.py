"""Asks a checkpoint about scenes that are not in the training, greedily and in PyTorch -> right answers by kind of question.

  python3 -m sight.score work/sight.pt work/chat.json --count 100
"""
import argparse
import json
import random
from pathlib import Path

from common import torchsetup  # noqa: F401
import torch

from sight.export import read as read_checkpoint
from sight.network import read
from sight.scenes import Scene, questions
from sight.talk import picture
from words import bpe

LONGEST = 40


@torch.no_grad()
def answer(words, tokens, rows, question):
    begin, end = "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"
    ids = torch.tensor([tokens.encode(begin) + picture(0) + tokens.encode(question) + tokens.encode(end)])
    past, out = [[] for _ in words.blk], []
    while len(out) < LONGEST:
        token = (read(words, ids, rows, past=past)[0, -1] @ words.token_embd.weight.t()).argmax().item()
        if token == tokens.id["<|im_end|>"]:
            break
        out.append(token)
        ids = torch.tensor([[token]])
    return tokens.decode(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("merges", type=Path)
    parser.add_argument("--count", type=int, default=100, help="scenes")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print wrong answers")
    options = parser.parse_args()
    words, tower = read_checkpoint(options.checkpoint)
    tokens = bpe.Tokens(json.loads(options.merges.read_text(encoding="utf8")))
    right = {}
    for number in range(options.first, options.first + options.count):
        scene = Scene(number)
        with torch.no_grad():
            rows = tower.rows(tower(torch.from_numpy(scene.picture)[None]))[0]
        for kind, question, expected in questions(scene, random.Random(number)):
            said = answer(words, tokens, rows, question)
            right.setdefault(kind, []).append(said == expected)
            if options.show and said != expected:
                print(f"{number} {question} {said} instead of {expected}")
    for kind, each in sorted(right.items()):
        print(f"{kind}: {sum(each)} of {len(each)}")


if __name__ == "__main__":
    main()
