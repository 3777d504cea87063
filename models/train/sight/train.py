"""Trains the tower, then tower and chat model together. In the first stage the tower names the thing in each patch and slot of a scene. In
the second stage the chat model answers questions about the tower's rows, and reads some of the text of words/ so that it keeps what it knew.

The same command goes on from the checkpoint that it finds, and takes the same steps as a run that was never stopped.

  python3 -m words.begin ../llama-demo/llama-demo-Q8_0.gguf --out work/chat.pt --merges work/chat.json
  python3 -m sight.train --init work/chat.pt --merges work/chat.json --out work/sight.pt
"""
import argparse
import json
import os
import time
from pathlib import Path

from common import torchsetup
import torch
import torch.nn.functional as F

from common import checkpoint
from sight.network import Heads, Tower, read
from sight.scenes import COLOURS, SHAPES_SHARE, THINGS, TRAINING, Scene
from sight.talk import NO_LABEL, Talk
from words import bpe, corpus
from words.network import Words, config_of, from_checkpoint
from words.train import muon

WARM_UP_STEPS = 40
SEE_SHAPES_SHARE = 0.25     # of the scenes of the first stage: characters are harder to see than shapes
EMPTY_WEIGHT = 0.2          # of patches without a thing
SEEING_WEIGHT = 0.2         # of the first stage's loss in the second stage
CHAT_WEIGHT, CHAT_SHARE = 0.5, 0.5      # of the loss on text alone, and the steps that have it
CHAT_WINDOWS, CHAT_LENGTH = 4, 256


class Trainer:
    def __init__(self, options):
        self.options = options
        self.r = torchsetup.seed_everything(options.seed)
        resumed = os.path.exists(options.out)
        saved = checkpoint.load(options.out) if resumed else {}
        self.tokens = bpe.Tokens(json.loads(options.merges.read_text(encoding="utf8")))
        if resumed:
            self.words = Words(config_of(saved["words"]))
            self.words.load_state_dict(saved["words"])
        else:
            self.words = from_checkpoint(options.init)
        self.tower = Tower()
        self.heads = Heads(self.tower.config.d)
        self.talk = Talk(self.tokens, self.r)
        self.number, self.step, self.stage, self.ids, self.weights = TRAINING, 0, "see", [], []
        if resumed:
            self.tower.load_state_dict(saved["tower"])
            self.heads.load_state_dict(saved["heads"])
            self.number, self.step, self.stage, self.ids, self.weights = (saved[k] for k in ("number", "step", "stage", "ids", "weights"))
        self.begin(self.stage)
        if resumed:
            self.optimiser.load_state_dict(saved["optimiser"])
            self.momenta = saved["momenta"]
            checkpoint.restore(saved["generators"], self.r)

    def begin(self, stage):
        self.stage = stage
        networks = [self.tower, self.heads] + [self.words] * (stage == "answer")
        named = [(n, p) for network in networks for n, p in network.named_parameters()]
        self.matrices = [p for n, p in named if p.ndim == 2 and n.startswith(("blk", "mm"))]
        self.others = [p for n, p in named if not (p.ndim == 2 and n.startswith(("blk", "mm")))]
        self.momenta = [torch.zeros_like(p) for p in self.matrices]
        self.optimiser = torch.optim.AdamW(self.others, lr=self.options.lr_other, betas=(0.9, 0.95), weight_decay=0.01)

    def save(self):
        checkpoint.save(
            self.options.out, words=self.words.state_dict(), tower=self.tower.state_dict(), heads=self.heads.state_dict(),
            optimiser=self.optimiser.state_dict(), momenta=self.momenta, number=self.number, step=self.step, stage=self.stage,
            ids=self.ids, weights=self.weights, generators=checkpoint.generators(self.r),
        )

    def scenes(self, count):
        share = SEE_SHAPES_SHARE if self.stage == "see" else SHAPES_SHARE
        scenes = [Scene(self.number + i, share) for i in range(count)]
        self.number += count
        return scenes

    def seeing_loss(self, scenes, seen):
        patches, slots, ink, cells, colours = self.heads(seen)
        thing, written = torch.tensor([list(s.patches) for s in scenes]), [s.text is not None for s in scenes]
        weight = torch.ones(THINGS)
        weight[0] = EMPTY_WEIGHT
        loss = F.cross_entropy(patches.flatten(0, 1), thing.flatten(), weight=weight)
        slot = torch.tensor([s.slots for s in scenes])
        loss = loss + F.cross_entropy(slots.flatten(0, 1), slot.flatten())
        if any(written):
            inks = torch.tensor([COLOURS.index(s.ink) if s.ink else NO_LABEL for s in scenes])
            loss = loss + 0.5 * F.cross_entropy(ink, inks, ignore_index=NO_LABEL)
        singles = [scene.singles() for scene in scenes]
        loss = loss + F.cross_entropy(cells, torch.tensor([single[0] for single in singles]).flatten())
        loss = loss + F.cross_entropy(colours, torch.tensor([single[1] for single in singles]).flatten())
        with torch.no_grad():
            filled = slot > 0
            right = (slots.argmax(-1) == slot)[filled].float().mean().item()
        return loss, right

    def chat_loss(self):
        needed = CHAT_WINDOWS * (CHAT_LENGTH + 1)
        while len(self.ids) < needed:
            for text, weight in corpus.document(self.r):
                encoded = self.tokens.encode(text)
                self.ids += encoded
                self.weights += [weight] * len(encoded)
        ids = torch.tensor(self.ids[:needed]).view(CHAT_WINDOWS, -1)
        weights = torch.tensor(self.weights[:needed]).view(CHAT_WINDOWS, -1)[:, 1:]
        self.ids, self.weights = self.ids[needed:], self.weights[needed:]
        asked = weights > 0
        each = F.cross_entropy(self.words(ids[:, :-1])[asked], ids[:, 1:][asked], reduction="none")
        return (each * weights[asked]).sum() / weights.sum()

    def take_step(self):
        """-> figures for the log"""
        o, stage = self.options, self.stage
        steps = o.see_steps if stage == "see" else o.steps
        scale = min(1, (self.step + 1) / WARM_UP_STEPS) * min(1, max(0.02, (steps - self.step) / (o.falling_share * steps)))
        scenes = self.scenes(o.batch * (2 if stage == "see" else 1))
        seen = self.tower(torch.stack([torch.from_numpy(s.picture) for s in scenes]))
        loss, right = self.seeing_loss(scenes, seen)
        figures = {"seeing": loss.item(), "slots right": right}
        if stage == "answer":
            ids, labels, positions, allowed = self.talk.batch(scenes)
            hidden = read(self.words, ids, self.tower.rows(seen).flatten(0, 1), positions, allowed)[:, :-1]
            wanted = labels[:, 1:]
            asked = wanted != NO_LABEL
            logits = hidden[asked] @ self.words.token_embd.weight.t()
            answers = F.cross_entropy(logits, wanted[asked])
            figures["answers"] = answers.item()
            figures["tokens right"] = (logits.argmax(-1) == wanted[asked]).float().mean().item()
            loss = answers + SEEING_WEIGHT * loss
            if self.r.random() < CHAT_SHARE:
                chat = self.chat_loss()
                figures["chat"] = chat.item()
                loss = loss + CHAT_WEIGHT * chat
        for p in self.matrices + self.others:
            p.grad = None
        loss.backward()
        for p in self.matrices + self.others:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        torch.nn.utils.clip_grad_norm_(self.others, 1.0)
        muon(self.matrices, self.momenta, (o.see_lr if stage == "see" else o.lr) * scale)
        for group in self.optimiser.param_groups:
            group["lr"] = o.lr_other * scale
        self.optimiser.step()
        self.step += 1
        return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", default="sight.pt", help="checkpoint: continued if it exists, saved every --save-every steps and at the end")
    add("--init", help="checkpoint of the chat model to begin with")
    add("--merges", type=Path, required=True, help="of its tokenizer")
    add("--see-steps", type=int, default=1800, help="of the first stage")
    add("--steps", type=int, default=2550, help="of the second stage")
    add("--falling-share", type=float, default=0.8, help="of each stage, at its end, in which the rate falls")
    add("--stop-at", type=int, help="stop early, at this step of the second stage")
    add("--seed", type=int, default=1)
    add("--batch", type=int, default=32, help="scenes in a step; twice as many in the first stage")
    add("--see-lr", type=float, default=0.02, help="of the matrices in the first stage")
    add("--lr", type=float, default=0.006, help="of the matrices in the second stage")
    add("--lr-other", type=float, default=2e-3)
    add("--save-every", type=int, default=100)
    options = parser.parse_args()
    trainer, began, sums = Trainer(options), time.process_time(), {}
    while True:
        if trainer.stage == "see" and trainer.step >= options.see_steps:
            trainer.step = 0
            trainer.begin("answer")
        last = trainer.stage == "answer" and trainer.step >= (options.stop_at or options.steps)
        if last or trainer.step % 25 == 0 and sums:
            means = ", ".join(f"{k} {sum(v) / len(v):.3f}" for k, v in sums.items())
            print(f"{trainer.stage} {trainer.step}: {means}, {time.process_time() - began:.0f} CPU-s", flush=True)
            sums = {}
        if last or trainer.step % options.save_every == 0 and trainer.step:
            trainer.save()
        if last:
            break
        for k, v in trainer.take_step().items():
            sums.setdefault(k, []).append(v)
    print(f"saved {options.out} at step {trainer.step}")


if __name__ == "__main__":
    main()
