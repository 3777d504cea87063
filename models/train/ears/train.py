"""Trains the ears on the shards of data.py.

Stage 1: the encoder alone (phoneme labels and the count of characters). Stage 2: everything, on clips of one to six sentences up to 30 s,
with a guide for the attention that is never switched off, 30 s of padding in a quarter of the batches, timestamps, prompts, clips without
speech and corrupted input characters.

The same command goes on from the checkpoint that it finds, and takes the same steps as a run that was never stopped. The rate of learning
depends on the step and on --steps alone.

  python3 -m ears.train work/ears --out work/ears.pt --steps 12000
  python3 -m ears.train work/ears --out work/more.pt --init work/ears.pt --from-stage 2 --smooth-stamps --lr 6e-4 --steps 6000
"""
import argparse
import json
import math
import os
import time
from pathlib import Path

from common import torchsetup
import torch
import torch.nn.functional as F

from common import checkpoint
from ears.evaluate import report
from ears.examples import IGNORED, Batch, collate, epoch, load_clips
from ears.features import FIRST_TIMESTAMP, LANGUAGES, START, TIMESTAMPS
from ears.network import FRAME_SECONDS, Config, Ears, from_checkpoint

GUIDE_SECONDS = 0.16           # either side of the time at which a character is spoken
LONGEST_FRAMES = 750           # 30 s of the encoder
WARM_UP_STEPS = 150
STAMP_REACH = 5                # steps of 0.02 s on either side of a timestamp that share its probability ...
STAMP_SPREAD = 1.5             # ... as a bell of this width: near misses are half right
STAGE_ONE_MOST = 0.06          # of all steps


def options_of(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("folder", type=Path, help="of data.py")
    add("--out", default="ears.pt", help="checkpoint: continued if it exists, saved every --save-every steps and at the end")
    add("--init", help="checkpoint whose weights to begin with, when --out does not exist")
    add("--steps", type=int, default=12000, help="length of the schedule")
    add("--stop-at", type=int, help="stop early, at this step of the same schedule")
    add("--seed", type=int, default=0)
    add("--device", default="cpu", help="cpu or cuda")
    add("--lr", type=float, default=1.2e-3, help="of the decoder; the encoder gets twice that")
    add("--frames", type=int, default=5000, help="features of 10 ms in a batch")
    add("--most", type=int, default=20, help="clips in a batch")
    add("--from-stage", type=int, choices=(1, 2), default=1)
    add("--stage-one-loss", type=float, default=0.45, help="phoneme loss that ends stage 1")
    add("--smooth-stamps", action="store_true", help="timestamps' embeddings as a function of their time")
    add("--stamped", type=float, default=0.3, help="share of batches with timestamps")
    add("--guide", type=float, default=0.5, help="weight of the attention's guide")
    add("--corrupt", type=float, default=0.06, help="share of corrupted input bytes")
    add("--mistaken", type=float, default=0.03, help="share of clips whose language the decoder is told wrongly")
    add("--save-every", type=int, default=250)
    add("--watch-every", type=int, default=0, help="steps between looks at the development shard; 0: never")
    add("--d", type=int, default=176)
    add("--heads", type=int, default=4)
    add("--blocks", type=int, default=6)
    add("--layers", type=int, default=3)
    add("--check", action="store_true", help="compare the gradients with a float64 copy, and stop")
    return parser.parse_args(arguments)


def count_loss(rate, wanted):
    """Characters in half-second stretches, and a little of the total."""
    count = torch.cumsum(rate, 1) - rate / 2
    w = min(12, count.shape[1] - 1)
    stretches = F.smooth_l1_loss(count[:, w:] - count[:, :-w], wanted[:, w:] - wanted[:, :-w])
    return stretches + 0.01 * (count - wanted).abs().mean()


def guide_loss(probabilities, times):
    """-log of the probability that head 0 of every layer puts near the time at which the next character is spoken."""
    at = times >= 0
    if not at.any():
        return times.new_zeros(())
    frames = torch.arange(probabilities[0].shape[2], device=times.device) * FRAME_SECONDS
    near = ((frames - times[at][:, None]).abs() < GUIDE_SECONDS).float()
    return -sum(((p[at] * near).sum(-1) + 1e-4).log().mean() for p in probabilities) / len(probabilities)


def token_loss(hidden, labels, table, smooth):
    """Cross-entropy; with `smooth`, timestamps count as a bell of neighbouring times."""
    logits = hidden @ table.t()
    if not smooth:
        return F.cross_entropy(logits, labels, label_smoothing=0.03)
    stamp = labels >= FIRST_TIMESTAMP
    log = logits.log_softmax(-1)
    exact = F.nll_loss(log[~stamp], labels[~stamp], reduction="sum") if (~stamp).any() else log.new_zeros(())
    exact = 0.97 * exact - 0.03 * log[~stamp].mean(-1).sum()
    if not stamp.any():
        return exact / len(labels)
    reach = torch.arange(-STAMP_REACH, STAMP_REACH + 1, device=labels.device)
    bell = torch.exp(-0.5 * (reach / STAMP_SPREAD).float() ** 2)
    near = labels[stamp][:, None] + reach
    inside = (near >= FIRST_TIMESTAMP) & (near < FIRST_TIMESTAMP + TIMESTAMPS)
    weight = bell * inside
    weight = weight / weight.sum(1, keepdim=True)
    found = log[stamp].gather(1, near.clamp(FIRST_TIMESTAMP, FIRST_TIMESTAMP + TIMESTAMPS - 1))
    return (exact - (weight * found).sum()) / len(labels)


class Trainer:
    def __init__(self, options, clips):
        self.options, self.clips = options, clips
        self.of_language = {language: [c for c in clips if c.facts["language"] == language] for language in LANGUAGES}
        self.r = torchsetup.seed_everything(options.seed)
        self.step, self.stage, self.stage_began, self.phoneme_average = 0, options.from_stage, 0, 4.0
        self.seconds, self.order, self.resumed = 0.0, [], os.path.exists(options.out)
        if self.resumed:
            saved = checkpoint.load(options.out, options.device)
            self.network = from_checkpoint(options.out)
        elif options.init:
            self.network = from_checkpoint(options.init)
        else:
            self.network = Ears(Config(d=options.d, heads=options.heads, blocks=options.blocks, layers=options.layers))
        if options.smooth_stamps:
            self.network.smooth_stamps()
        self.network.to(options.device).train()
        of_decoder = [p for n, p in self.network.named_parameters() if n.startswith("decoder")]
        others = [p for n, p in self.network.named_parameters() if not n.startswith("decoder")]
        groups = [dict(params=others, times=2.0), dict(params=of_decoder, times=1.0)]
        self.optimiser = torch.optim.AdamW(groups, lr=options.lr, betas=(0.9, 0.98), weight_decay=0.01)
        if self.resumed:
            self.optimiser.load_state_dict(saved["optimiser"])
            self.__dict__.update(saved["progress"])
            checkpoint.restore(saved["generators"], self.r)

    def save(self):
        names = ("step", "stage", "stage_began", "phoneme_average", "seconds", "order")
        checkpoint.save(
            self.options.out, **self.network.saved(), optimiser=self.optimiser.state_dict(),
            progress={n: getattr(self, n) for n in names}, generators=checkpoint.generators(self.r),
        )

    def draw(self):
        """The next batch -> clips, Batch, whether it has timestamps, whether it is padded to 30 s"""
        o, r = self.options, self.r
        if not self.order:
            self.order = epoch(self.clips, r, o.frames, o.most)
        clips = [self.clips[i] for i in self.order.pop()]
        long = self.stage == 2 and r.random() < 0.25
        stamped, prompts = r.random() < o.stamped, None
        if r.random() < 0.08:
            prompts = [r.choice(self.of_language[c.facts["language"]]).facts["text"][: r.randint(0, 180)] for c in clips]
        more = r.choice((0, 0, r.randint(0, 60), r.randint(0, 150)))
        return clips, collate(clips, 120 if long else more, stamped, prompts, r, o.corrupt, o.mistaken), stamped, long

    def encoder_losses(self, b: Batch):
        hidden, rate = self.network.encoder.frames(b.features)
        labels = self.network.phoneme(hidden)
        return hidden, rate, F.cross_entropy(labels.flatten(0, 1), b.phonemes.flatten()), count_loss(rate, b.counts)

    def decoder_losses(self, hidden, rate, b: Batch, stamped, long):
        encoder, decoder = self.network.encoder, self.network.decoder
        if long:
            hidden, rate = encoder.lengthened(hidden, rate, LONGEST_FRAMES)
        table = decoder.table()
        attentions = [layer.encoder_attn for layer in decoder.layers]
        for a in attentions:
            a.keep = []
        x, _ = decoder.hidden(b.ids, decoder.cross(encoder.place(hidden, rate.detach())), None, table)
        kept = [a.keep[0] for a in attentions]
        for a in attentions:
            a.keep = None
        wanted = b.labels != IGNORED
        # Without timestamps among the labels their 1501 rows are left out most of the time: they cost more than the rest.
        full = stamped or self.r.random() < 0.15
        rows = table if full else table[:FIRST_TIMESTAMP]
        smooth = full and decoder.stamps is not None
        return token_loss(x[wanted], b.labels[wanted], rows, smooth), guide_loss(kept, b.times)

    def losses(self, b, stamped, long, progress):
        hidden, rate, phoneme, count = self.encoder_losses(b)
        if self.stage == 1:
            return phoneme + count, (0.0, phoneme.item(), count.item(), 0.0)
        tokens, guide = self.decoder_losses(hidden, rate, b, stamped, long)
        fade = max(0.0, 1 - progress * 1.2)
        loss = tokens + (0.1 + 0.9 * fade) * 0.7 * phoneme + 0.5 * count + self.options.guide * (0.2 + 0.8 * fade) * guide
        return loss, (tokens.item(), phoneme.item(), count.item(), float(guide))

    def take_step(self):
        o = self.options
        progress = self.step / o.steps
        warm = min(1.0, (self.step - self.stage_began + 1) / WARM_UP_STEPS)
        rate = o.lr * warm * (0.5 + 0.5 * math.cos(math.pi * progress) * 0.99)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["times"]
        clips, batch, stamped, long = self.draw()
        loss, parts = self.losses(batch.to(o.device), stamped, long, progress)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        self.step += 1
        self.seconds += sum(c.frames for c in clips) / 100
        if self.stage == 1:
            self.phoneme_average = 0.97 * self.phoneme_average + 0.03 * parts[1]
            if self.phoneme_average < o.stage_one_loss or progress > STAGE_ONE_MOST:
                self.stage, self.stage_began = 2, self.step
        return loss.item(), parts


def check_gradients(network):
    """Expect below 1e-4."""
    torch.manual_seed(0)
    features, ids = torch.randn(3, 80, 300), torch.randint(0, 256, (3, 40))
    ids[:, 0] = START

    def loss(net, dtype):
        hidden, rate = net.encoder.frames(features.to(dtype))
        logits, _ = net.decoder.step(ids[:, :-1], net.decoder.cross(net.encoder.place(hidden, rate)))
        spoken = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        return spoken + net.phoneme(hidden).pow(2).mean() + rate.mean()

    return torchsetup.largest_gradient_error(network, loss)


def main():
    options = options_of()
    torch.backends.mkldnn.set_flags(True)   # for a quicker GELU; its convolutions are wrong, but none is computed here (see network.Convolution)
    if options.check:
        torchsetup.seed_everything(options.seed)
        print(f"largest relative gradient error {check_gradients(Ears(Config())):.1e}")
        return
    trainer = Trainer(options, load_clips(options.folder, "[0-9]*"))
    watched = load_clips(options.folder, "development")[:48] if options.watch_every else []
    print(f"{len(trainer.clips)} clips, step {trainer.step}", flush=True)
    last, sums, shown, cpu = options.stop_at or options.steps, [], time.time(), time.process_time()
    while trainer.step < last:
        loss, parts = trainer.take_step()
        sums.append((loss, *parts))
        if trainer.step % 50 == 0 or trainer.step == last:
            loss, tokens, phoneme, count, guide = (sum(column) / len(sums) for column in zip(*sums))
            print(
                f"step {trainer.step} stage {trainer.stage} loss {loss:.4f} tokens {tokens:.3f} phoneme {phoneme:.3f} count {count:.3f}"
                f" guide {guide:.3f} heard {trainer.seconds / 3600:.1f} h, {time.process_time() - cpu:.0f} CPU-s", flush=True,
            )
            sums = []
        if trainer.step % options.save_every == 0:
            trainer.save()
        if watched and trainer.step % options.watch_every == 0:
            trainer.network.eval()
            print(json.dumps(report(trainer.network, watched, 16)), flush=True)
            trainer.network.train()
    trainer.save()
    print(f"saved {options.out} at step {trainer.step} after {time.time() - shown:.0f} s", flush=True)


if __name__ == "__main__":
    main()
