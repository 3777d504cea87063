"""Trains the chat model on the endless text of corpus.py, tools.py, forms.py and drills.py: Muon for the matrices, AdamW for embedding
and norms; the rate is constant, then falls linearly over the last part of the training.

The same command goes on from the checkpoint that it finds, and takes the same steps as a run that was never stopped. The merges of the
tokenizer are made on the first call and kept in --merges. On a processor, 2,048 tokens a step; on a GPU:

  python3 -m words.train --device cuda --bfloat16 --compile --tokens 65536 --workers 12 --minutes 6 --out work/words.pt --merges work/merges.json
"""
import argparse
import collections
import itertools
import json
import multiprocessing
import os
import random
import re
import time
from pathlib import Path

from common import torchsetup
import numpy as np
import torch

from common import checkpoint
from words import bpe, corpus, drills, forms, tools
from words.network import Words, from_checkpoint, sized

MERGE_DOCUMENTS, MERGE_SEED = 9000, 12345
TOOL_DOCUMENTS = 4000       # of them are about tools and answers in JSON
VOCABULARY = 2560
WARM_UP_STEPS = 60
WINDOWS = ((512, 0.82), (1024, 0.14), (2048, 0.04))     # lengths and their shares of the steps; a few long ones, for long prompts
FORM_SHARE = 0.3            # of the documents about tools and answers in JSON; these are short
LONG_WINDOW = 1024          # from this length on, conversations are long too
AHEAD = 4                   # steps that a worker writes in advance
# A model that begins many answers with "<tool_call>" learns to expect "<" wherever the next word is hard to guess, e.g. at the name of a
# person. Where it has 2 percent and each of 80 names has one, it is even the first choice. So text without tools has a second loss: the
# probability of all tokens with these characters.
MARKUP = re.compile(r"[<>{}|_\[\]\\]")
MARKUP_WEIGHT = 20.0


def tools_and_forms(r, turns=None):
    return forms.document(r) if r.random() < FORM_SHARE else tools.document(r, turns)


def read_tokens(path):
    if not path.exists():
        r = random.Random(MERGE_SEED)
        documents = [corpus.document(r) for _ in range(MERGE_DOCUMENTS - TOOL_DOCUMENTS)] + [tools_and_forms(r) for _ in range(TOOL_DOCUMENTS)]
        texts = [text for document in documents for text, _ in document if text not in bpe.CONTROL]
        path.write_text(json.dumps(bpe.train(texts, VOCABULARY)), encoding="utf8")
    return bpe.Tokens(json.loads(path.read_text(encoding="utf8")))


@torch.no_grad()
def muon(matrices, momenta, rate, decay=0.02, momentum=0.95, precision=torch.float32):
    """Momentum, then orthogonalised updates by Newton-Schulz; matrices of equal shape go in one batch."""
    by_shape = {}
    for p, m in zip(matrices, momenta):
        m.mul_(momentum).add_(p.grad, alpha=1 - momentum)
        by_shape.setdefault(tuple(p.shape), []).append((p, p.grad.lerp(m, momentum)))
    for (rows, columns), pairs in by_shape.items():
        x = torch.stack([g for _, g in pairs]).to(precision)
        x = x.transpose(1, 2) if rows > columns else x
        x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
        for _ in range(5):
            a = x @ x.transpose(1, 2)
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        x = x.transpose(1, 2) if rows > columns else x
        for (p, _), update in zip(pairs, x):
            p.mul_(1 - rate * decay).add_(update.float(), alpha=-rate * max(1, rows / columns) ** 0.5)


class Text:
    """The training text as windows of tokens, each on plain talk, on tools and answers in JSON, or on sums. The windows of a step depend on
    the seed and the step's number alone, so a run that goes on from a checkpoint reads what an uninterrupted one reads."""

    def __init__(self, options, tokens):
        self.options, self.tokens = options, tokens

    def windows(self, step):
        """-> tokens and their weights as labels, [windows, length + 1] each, and which windows are free of markup, [windows]"""
        o, r = self.options, random.Random(f"{self.options.seed} {step}")
        length = r.choices([w for w, _ in WINDOWS], [share for _, share in WINDOWS])[0]
        shares = {tools_and_forms: o.tool_share, drills.document: o.drill_share, corpus.document: 1 - o.tool_share - o.drill_share}
        kinds = r.choices(list(shares), list(shares.values()), k=max(1, o.tokens // length))
        rows = [self.window(r, kind, length + 1) for kind in kinds]
        return (
            np.array([ids for ids, _ in rows], np.int16), np.array([weights for _, weights in rows], np.float32),
            np.array([kind != tools_and_forms for kind in kinds]),
        )

    def window(self, r, document, size):
        """A window begins with a document. If it began within one, the system prompt and the tools could be missing, and the model would
        learn to talk like a pirate, or to call tools, without having been asked to."""
        ids, weights = [], []
        while len(ids) < size:
            turns = r.randint(8, 40) if document == corpus.document and size > LONG_WINDOW else None
            for _, parts in itertools.groupby(document(r, turns), lambda part: part[0] in bpe.CONTROL):
                encoded, encoded_weights = self.encoded(list(parts))
                ids += encoded
                weights += encoded_weights
        return ids[:size], weights[:size]

    def encoded(self, parts):
        """Neighbouring parts are spelled as one text, as the engine spells them. A token in two parts has the larger weight."""
        ids = self.tokens.encode("".join(text for text, _ in parts))
        if len({weight for _, weight in parts}) == 1:
            return ids, [parts[0][1]] * len(ids)
        of_bytes = [weight for text, weight in parts for _ in text.encode()]
        ends = itertools.accumulate(len(self.tokens.vocabulary[i]) for i in ids)      # a character of the vocabulary stands for a byte
        starts = [0, *ends]
        return ids, [max(of_bytes[a:b]) for a, b in zip(starts, starts[1:])]

    def of_steps(self, steps):
        """Yields the windows of these steps in order. With --workers, other processes write them in advance."""
        if not self.options.workers:
            yield from map(self.windows, steps)
            return
        with multiprocessing.get_context("fork").Pool(self.options.workers) as pool:
            ahead = collections.deque()
            for step in steps:
                ahead.append(pool.apply_async(self.windows, (step,)))
                if len(ahead) > AHEAD * self.options.workers:
                    yield ahead.popleft().get()
            while ahead:
                yield ahead.popleft().get()


class Trainer:
    def __init__(self, options, tokens):
        self.options, self.text = options, Text(options, tokens)
        torchsetup.seed_everything(options.seed)
        self.step, resumed = 0, os.path.exists(options.out)
        begin = options.out if resumed else options.init
        network = from_checkpoint(begin) if begin else Words(sized(len(tokens.vocabulary), options.width, options.layers, options.feed_forward))
        self.network = network.to(options.device).train()
        if self.network.config.vocabulary != len(tokens.vocabulary):
            raise SystemExit(f"the network has {self.network.config.vocabulary} tokens, the merges make {len(tokens.vocabulary)}")
        marked = [i for i, t in enumerate(tokens.vocabulary) if MARKUP.search(t) and t not in bpe.CONTROL]
        self.marked = torch.tensor(marked, device=options.device)
        named = list(self.network.named_parameters())
        self.matrices = [p for n, p in named if p.ndim == 2 and n.startswith("blk")]
        self.others = [p for n, p in named if not (p.ndim == 2 and n.startswith("blk"))]
        self.momenta = [torch.zeros_like(p) for p in self.matrices]
        self.optimiser = torch.optim.AdamW(self.others, lr=options.lr_embedding, betas=(0.9, 0.95), weight_decay=0.01)
        self.both_losses = torch.compile(self.losses) if options.compile else self.losses
        if resumed:
            saved = checkpoint.load(options.out, options.device)
            self.optimiser.load_state_dict(saved["optimiser"])
            self.momenta, self.step = saved["momenta"], saved["step"]

    def save(self):
        checkpoint.save(
            self.options.out, network=self.network.state_dict(), optimiser=self.optimiser.state_dict(), momenta=self.momenta, step=self.step,
        )

    def losses(self, ids, weights, unmarked):
        """-> the loss of the labels, and the probability of markup where there is none: means over the weights"""
        labels, weights = ids[:, 1:], weights[:, 1:]
        with torch.autocast(self.options.device, dtype=torch.bfloat16, enabled=self.options.bfloat16):
            logits = self.network(ids[:, :-1])
        logits = logits.float()
        all_tokens = logits.logsumexp(-1)
        each = all_tokens - logits.gather(2, labels[:, :, None])[:, :, 0]
        markup = (logits[:, :, self.marked].logsumexp(-1) - all_tokens).exp()
        return (each * weights).sum() / weights.sum(), (markup * weights * unmarked[:, None]).sum() / weights.sum()

    def take_step(self, windows, scale):
        o = self.options
        ids, weights, unmarked = (torch.from_numpy(x).to(o.device) for x in windows)
        loss, markup = self.both_losses(ids.long(), weights, unmarked)
        self.network.zero_grad()
        (loss + MARKUP_WEIGHT * markup).backward()
        torch.nn.utils.clip_grad_norm_(self.others, 1.0)
        muon(self.matrices, self.momenta, o.lr * scale, precision=torch.bfloat16 if o.bfloat16 else torch.float32)
        for group in self.optimiser.param_groups:
            group["lr"] = o.lr_embedding * scale
        self.optimiser.step()
        self.step += 1
        return loss.detach()

    def run(self):
        o, began, losses = self.options, time.monotonic(), []
        for windows in self.text.of_steps(range(self.step, o.stop_at or o.steps)):
            seconds = time.monotonic() - began
            done = max(self.step / o.steps, seconds / (60 * o.minutes) if o.minutes else 0)
            if done >= 1:
                break
            losses.append(self.take_step(windows, min(1, (self.step + 1) / WARM_UP_STEPS, (1 - done) / o.falling_share)))
            if self.step % 50 == 0:
                print(f"step {self.step} loss {torch.stack(losses).mean():.4f}, {seconds:.0f} s", flush=True)
                losses = []
            if self.step % o.save_every == 0:
                self.save()
        self.save()
        print(f"saved {o.out} at step {self.step}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", default="words.pt", help="checkpoint: continued if it exists, saved every --save-every steps and at the end")
    add("--merges", type=Path, default=Path("merges.json"), help="of the tokenizer; made if it is not there")
    add("--init", help="checkpoint whose weights to begin with, when --out does not exist; needs its merges")
    add("--width", type=int, default=192, help="channels of a new network")
    add("--layers", type=int, default=5)
    add("--feed-forward", type=int, default=512)
    add("--steps", type=int, default=12000, help="length of the schedule")
    add("--falling-share", type=float, default=0.6, help="of the training, at its end, in which the rate falls")
    add("--stop-at", type=int, help="stop early, at this step of the same schedule")
    add("--minutes", type=float, help="end after this time, if it is shorter than the steps, with the rate as at the last step")
    add("--seed", type=int, default=1)
    add("--device", default="cpu", help="cpu or cuda")
    add("--compile", action="store_true", help="torch.compile; for a GPU")
    add("--workers", type=int, default=0, help="processes that write the text; 0: the training itself")
    add("--tokens", type=int, default=2048, help="in a step")
    add("--tool-share", type=float, default=0.3, help="of the windows that are on the text of tools.py and forms.py")
    add("--drill-share", type=float, default=0.1, help="of the windows that are on the sums of drills.py")
    add("--lr", type=float, default=0.015, help="of the matrices")
    add("--lr-embedding", type=float, default=4e-3)
    add("--bfloat16", action="store_true", help="multiply matrices in bfloat16: for a GPU, or a processor with AMX")
    add("--save-every", type=int, default=500)
    options = parser.parse_args()
    torch.backends.mkldnn.set_flags(options.bfloat16)       # it multiplies right; only its convolutions are wrong
    Trainer(options, read_tokens(options.merges)).run()


if __name__ == "__main__":
    main()
