"""Trains the chat model on the endless text of corpus.py and tools.py: Muon for the matrices, AdamW for embedding and norms; the rate is
constant, then falls linearly over the last part of --steps. A step is on one of the two, by chance.

The same command goes on from the checkpoint that it finds, and takes the same steps as a run that was never stopped. The merges of the
tokenizer are made on the first call and kept in --merges.

  python3 -m words.train --out work/words.pt --merges work/merges.json --steps 6700
"""
import argparse
import json
import os
import random
import time
from pathlib import Path

from common import torchsetup
import torch
import torch.nn.functional as F

from common import checkpoint
from words import bpe, corpus, tools
from words.network import Config, Words, from_checkpoint

MERGE_DOCUMENTS, TOOL_MERGE_DOCUMENTS, MERGE_SEED = 9000, 4000, 12345
TOOL_TOKENS = 256      # of the vocabulary, for the text of tools.py
WARM_UP_STEPS = 60
WINDOWS = ((256, 0.82), (512, 0.13), (1024, 0.04), (2048, 0.01))   # a few long ones, for long prompts
TOOL_WINDOWS = ((512, 0.85), (1024, 0.15))
LONG_WINDOW = 1024


def texts_of(document, count):
    r = random.Random(MERGE_SEED)
    return [t for _ in range(count) for t, _ in document(r) if t not in bpe.CONTROL]


def with_tool_tokens(merges, more=TOOL_TOKENS):
    return bpe.extend(merges, texts_of(tools.document, TOOL_MERGE_DOCUMENTS), more, texts_of(corpus.document, MERGE_DOCUMENTS))


def read_tokens(path):
    if not path.exists():
        merges = bpe.train(texts_of(corpus.document, MERGE_DOCUMENTS), Config.vocabulary - TOOL_TOKENS)
        path.write_text(json.dumps(with_tool_tokens(merges)), encoding="utf8")
    tokens = bpe.Tokens(json.loads(path.read_text(encoding="utf8")))
    if len(tokens.vocabulary) != Config.vocabulary:
        raise SystemExit(f"{path} makes {len(tokens.vocabulary)} tokens, {Config.vocabulary} are needed: more text")
    return tokens


@torch.no_grad()
def muon(matrices, momenta, rate, decay=0.02, momentum=0.95):
    """Momentum, then orthogonalised updates by Newton-Schulz; matrices of equal shape go in one batch."""
    by_shape = {}
    for p, m in zip(matrices, momenta):
        m.mul_(momentum).add_(p.grad, alpha=1 - momentum)
        by_shape.setdefault(tuple(p.shape), []).append((p, p.grad.lerp(m, momentum)))
    for (rows, columns), pairs in by_shape.items():
        x = torch.stack([g for _, g in pairs])
        x = x.transpose(1, 2) if rows > columns else x
        x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
        for _ in range(5):
            a = x @ x.transpose(1, 2)
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        x = x.transpose(1, 2) if rows > columns else x
        for (p, _), update in zip(pairs, x):
            p.mul_(1 - rate * decay).add_(update, alpha=-rate * max(1, rows / columns) ** 0.5)


class Trainer:
    def __init__(self, options, tokens):
        self.options, self.tokens = options, tokens
        self.r = torchsetup.seed_everything(options.seed)
        self.step, self.ids, self.weights, resumed = 0, [], [], os.path.exists(options.out)
        begin = options.out if resumed else options.init
        self.network = (from_checkpoint(begin) if begin else Words()).to(options.device).train()
        named = list(self.network.named_parameters())
        self.matrices = [p for n, p in named if p.ndim == 2 and n.startswith("blk")]
        self.others = [p for n, p in named if not (p.ndim == 2 and n.startswith("blk"))]
        self.momenta = [torch.zeros_like(p) for p in self.matrices]
        self.optimiser = torch.optim.AdamW(self.others, lr=options.lr_embedding, betas=(0.9, 0.95), weight_decay=0.01)
        if resumed:
            saved = checkpoint.load(options.out, options.device)
            self.optimiser.load_state_dict(saved["optimiser"])
            self.momenta, self.step, self.ids, self.weights = (saved[k] for k in ("momenta", "step", "ids", "weights"))
            checkpoint.restore(saved["generators"], self.r)

    def save(self):
        checkpoint.save(
            self.options.out, network=self.network.state_dict(), optimiser=self.optimiser.state_dict(), momenta=self.momenta,
            step=self.step, ids=self.ids, weights=self.weights, generators=checkpoint.generators(self.r),
        )

    def draw(self):
        """-> inputs, labels and weights of the labels, [windows, length]"""
        windows = self.tool_windows if self.r.random() < self.options.tool_share else self.old_windows
        ids, weights = (x.to(self.options.device) for x in windows())
        return ids[:, :-1], ids[:, 1:], weights[:, 1:]

    def tool_windows(self):
        """A window begins with a document, so that the definitions of its tools are in it."""
        length = self.r.choices([w for w, _ in TOOL_WINDOWS], [share for _, share in TOOL_WINDOWS])[0] + 1
        ids, weights = [], []
        for _ in range(max(1, self.options.tokens // length + 1)):
            row, row_weights = [], []
            while len(row) < length:
                for text, weight in tools.document(self.r):
                    encoded = self.tokens.encode(text)
                    row += encoded
                    row_weights += [weight] * len(encoded)
            ids.append(row[:length])
            weights.append(row_weights[:length])
        return torch.tensor(ids), torch.tensor(weights)

    def old_windows(self):
        length = self.r.choices([w for w, _ in WINDOWS], [share for _, share in WINDOWS])[0]
        count = max(1, self.options.tokens // length)
        needed = count * (length + 1)
        while len(self.ids) < needed:
            for text, weight in corpus.document(self.r, self.r.randint(8, 40) if length >= LONG_WINDOW else None):
                encoded = self.tokens.encode(text)
                self.ids += encoded
                self.weights += [weight] * len(encoded)
        ids = torch.tensor(self.ids[:needed]).view(count, length + 1)
        weights = torch.tensor(self.weights[:needed]).view(count, length + 1)
        self.ids, self.weights = self.ids[needed:], self.weights[needed:]
        return ids, weights

    def take_step(self):
        o = self.options
        scale = min(1, (self.step + 1) / WARM_UP_STEPS) * min(1, max(0.02, (o.steps - self.step) / (o.falling_share * o.steps)))
        inputs, labels, weights = self.draw()
        asked = weights > 0
        each = F.cross_entropy(self.network(inputs, asked=asked), labels[asked], reduction="none")
        loss = (each * weights[asked]).sum() / weights.sum()
        self.network.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.others, 1.0)
        muon(self.matrices, self.momenta, o.lr * scale)
        for group in self.optimiser.param_groups:
            group["lr"] = o.lr_embedding * scale
        self.optimiser.step()
        self.step += 1
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", default="words.pt", help="checkpoint: continued if it exists, saved every --save-every steps and at the end")
    add("--merges", type=Path, default=Path("merges.json"), help="of the tokenizer; made if it is not there")
    add("--init", help="checkpoint whose weights to begin with, when --out does not exist; needs its merges")
    add("--steps", type=int, default=6700, help="length of the schedule")
    add("--falling-share", type=float, default=0.4, help="of the steps, at the end, in which the rate falls")
    add("--stop-at", type=int, help="stop early, at this step of the same schedule")
    add("--seed", type=int, default=1)
    add("--device", default="cpu", help="cpu or cuda")
    add("--tokens", type=int, default=1024, help="in a step")
    add("--tool-share", type=float, default=0.5, help="of the steps that are on the text of tools.py")
    add("--lr", type=float, default=0.015, help="of the matrices")
    add("--lr-embedding", type=float, default=4e-3)
    add("--save-every", type=int, default=500)
    options = parser.parse_args()
    trainer, began, losses = Trainer(options, read_tokens(options.merges)), time.process_time(), []
    last = options.stop_at or options.steps
    while trainer.step < last:
        losses.append(trainer.take_step())
        if trainer.step % 50 == 0 or trainer.step == last:
            print(f"step {trainer.step} loss {sum(losses) / len(losses):.4f}, {time.process_time() - began:.0f} CPU-s", flush=True)
            losses = []
        if trainer.step % options.save_every == 0:
            trainer.save()
    trainer.save()
    print(f"saved {options.out} at step {trainer.step}")


if __name__ == "__main__":
    main()
