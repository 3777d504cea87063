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
import re
import time
from pathlib import Path

from common import torchsetup
import torch
import torch.nn.functional as F

from common import checkpoint
from words import bpe, corpus, drills, forms, tools
from words.network import Config, Words, from_checkpoint

MERGE_DOCUMENTS, TOOL_MERGE_DOCUMENTS, MERGE_SEED = 9000, 4000, 12345
TOOL_TOKENS = 256      # of the vocabulary, for the text of tools.py
WARM_UP_STEPS = 60
WINDOWS = ((256, 0.82), (512, 0.13), (1024, 0.04), (2048, 0.01))   # a few long ones, for long prompts
FORM_SHARE = 0.3         # of the documents about tools and answers in JSON; these are short
DRILL_WINDOW = 256
TOOL_WINDOWS = ((512, 0.85), (1024, 0.15))
LONG_WINDOW = 1024
# A model that begins many answers with "<tool_call>" learns to expect "<" wherever the next word is hard to guess, e.g. at the name of a
# person. Where it has 2 percent and each of 80 names has one, it is even the first choice. So text without tools has a second loss: the
# probability of all tokens with these characters.
MARKUP = re.compile(r"[<>{}|_\[\]\\]")
MARKUP_WEIGHT = 20.0


def texts_of(document, count):
    r = random.Random(MERGE_SEED)
    return [t for _ in range(count) for t, _ in document(r) if t not in bpe.CONTROL]


def tools_and_forms(r):
    return forms.document(r) if r.random() < FORM_SHARE else tools.document(r)


def texts_of_old():
    """Plain text and text about tools, whose tokens stay as they are when tokens are added."""
    return texts_of(lambda r: [(corpus.plain(r), 1.0)], MERGE_DOCUMENTS) + texts_of(tools.document, TOOL_MERGE_DOCUMENTS)


def texts_of_corpora():
    return texts_of(corpus.document, MERGE_DOCUMENTS) + texts_of(tools_and_forms, TOOL_MERGE_DOCUMENTS)


def with_tool_tokens(merges, more=TOOL_TOKENS):
    return bpe.extend(merges, texts_of(tools.document, TOOL_MERGE_DOCUMENTS), more, texts_of(corpus.document, MERGE_DOCUMENTS))


def read_tokens(path):
    if not path.exists():
        merges = bpe.train(texts_of(corpus.document, MERGE_DOCUMENTS), Config.vocabulary - TOOL_TOKENS)
        path.write_text(json.dumps(with_tool_tokens(merges)), encoding="utf8")
    tokens = bpe.Tokens(json.loads(path.read_text(encoding="utf8")))
    return tokens


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


class Trainer:
    def __init__(self, options, tokens):
        self.options, self.tokens = options, tokens
        self.r = torchsetup.seed_everything(options.seed)
        self.step, resumed = 0, os.path.exists(options.out)
        begin = options.out if resumed else options.init
        self.network = (from_checkpoint(begin) if begin else Words()).to(options.device).train()
        if self.network.config.vocabulary != len(tokens.vocabulary):
            raise SystemExit(f"the network has {self.network.config.vocabulary} tokens, the merges make {len(tokens.vocabulary)}")
        self.markup = torch.tensor([i for i, t in enumerate(tokens.vocabulary) if MARKUP.search(t) and t not in bpe.CONTROL])
        named = list(self.network.named_parameters())
        self.matrices = [p for n, p in named if p.ndim == 2 and n.startswith("blk")]
        self.others = [p for n, p in named if not (p.ndim == 2 and n.startswith("blk"))]
        self.momenta = [torch.zeros_like(p) for p in self.matrices]
        self.optimiser = torch.optim.AdamW(self.others, lr=options.lr_embedding, betas=(0.9, 0.95), weight_decay=0.01)
        if resumed:
            saved = checkpoint.load(options.out, options.device)
            self.optimiser.load_state_dict(saved["optimiser"])
            self.momenta, self.step = saved["momenta"], saved["step"]
            checkpoint.restore(saved["generators"], self.r)

    def save(self):
        checkpoint.save(
            self.options.out, network=self.network.state_dict(), optimiser=self.optimiser.state_dict(), momenta=self.momenta,
            step=self.step, generators=checkpoint.generators(self.r),
        )

    def draw(self):
        """-> inputs, labels and weights of the labels, [windows, length], and whether their text has no markup"""
        o = self.options
        kind = self.r.choices([self.tool_windows, self.drill_windows, self.chat_windows], [o.tool_share, o.drill_share, 1 - o.tool_share - o.drill_share])[0]
        ids, weights = (x.to(o.device) for x in kind())
        return ids[:, :-1], ids[:, 1:], weights[:, 1:], kind != self.tool_windows

    def tool_windows(self):
        return self.windows(tools_and_forms, self.r.choices([w for w, _ in TOOL_WINDOWS], [share for _, share in TOOL_WINDOWS])[0] + 1)

    def drill_windows(self):
        return self.windows(drills.document, DRILL_WINDOW + 1)

    def windows(self, document, length):
        """A window begins with a document. If it began within one, the system prompt and the tools could be missing, and the model would
        learn to talk like a pirate, or to call tools, without having been asked to."""
        ids, weights = [], []
        for _ in range(max(1, self.options.tokens // length + 1)):
            row, row_weights = [], []
            while len(row) < length:
                for text, weight in document(self.r):
                    encoded = self.tokens.encode(text)
                    row += encoded
                    row_weights += [weight] * len(encoded)
            ids.append(row[:length])
            weights.append(row_weights[:length])
        return torch.tensor(ids), torch.tensor(weights)

    def chat_windows(self):
        length = self.r.choices([w for w, _ in WINDOWS], [share for _, share in WINDOWS])[0]
        return self.windows(lambda r: corpus.document(r, r.randint(8, 40) if length >= LONG_WINDOW else None), length + 1)

    def take_step(self):
        o = self.options
        scale = min(1, (self.step + 1) / WARM_UP_STEPS) * min(1, max(0.02, (o.steps - self.step) / (o.falling_share * o.steps)))
        inputs, labels, weights, unmarked = self.draw()
        asked = weights > 0
        with torch.autocast(o.device, dtype=torch.bfloat16, enabled=o.bfloat16):
            logits = self.network(inputs, asked=asked).float()
        logs = F.log_softmax(logits, -1)
        each = -logs.gather(1, labels[asked][:, None])[:, 0]
        loss = (each * weights[asked]).sum() / weights.sum()
        penalty = 0
        if unmarked:
            penalty = MARKUP_WEIGHT * (logs[:, self.markup].exp().sum(-1) * weights[asked]).sum() / weights.sum()
        self.network.zero_grad()
        (loss + penalty).backward()
        torch.nn.utils.clip_grad_norm_(self.others, 1.0)
        muon(self.matrices, self.momenta, o.lr * scale, precision=torch.bfloat16 if o.bfloat16 else torch.float32)
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
    add("--drill-share", type=float, default=0.1, help="of the steps that are on the sums of drills.py")
    add("--lr", type=float, default=0.015, help="of the matrices")
    add("--lr-embedding", type=float, default=4e-3)
    add("--bfloat16", action="store_true", help="multiply matrices in bfloat16: three times as fast on processors with AMX, slow on others")
    add("--save-every", type=int, default=500)
    options = parser.parse_args()
    torch.backends.mkldnn.set_flags(options.bfloat16)       # it multiplies right; only its convolutions are wrong
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
