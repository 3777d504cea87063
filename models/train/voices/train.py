"""Trains the synthesiser and its style encoder together on the shards of data.py. The style always comes from another clip of the same
speaker, so named voices and imitation share one mechanism.

The same command goes on from the checkpoint that it finds, and takes the same steps as a run that was never stopped.

  python3 -m voices.train work/voices --out work/voices.pt --steps 8000
"""
import argparse
import os
import pickle
import time
from dataclasses import dataclass
from pathlib import Path

from common import torchsetup
import numpy as np
import torch
import torch.nn.functional as F

from common import checkpoint
from voices.analysis import BANDS, LAGS
from voices.network import LEARNED, Synthesiser, from_checkpoint, positions
from voices.speakers import NAMED

WARM_UP_STEPS = 100
STYLE_ENCODER = ("style_in", "style_half", "style_mix", "style_norm", "style_out")  # its parameters
STYLE_NOISE = 0.03        # on the learned part
REFERENCE_FRAMES = (100, 500)  # that a style is made from: 1 to 5 s
NOISY_SHARE = 0.15        # of the clips that styles are made from
NOISE_DECIBELS = (15, 35)  # under the clip's loudest frame
NAMES = ("envelope", "log pitch", "voicing", "log length", "frames of a length", "envelope dB", "mean log pitch", "mean envelope dB")


@dataclass
class Batch:
    ids: torch.Tensor          # [B,N]
    lengths: torch.Tensor      # [B,N] frames
    symbols: torch.Tensor      # [B,N] 1 where there is one
    index: torch.Tensor        # [B,T] the symbol of every frame
    position: torch.Tensor     # [B,T,4]
    envelope: torch.Tensor     # [B,T,80]
    pitch: torch.Tensor        # [B,T]
    voicing: torch.Tensor      # [B,T,2]
    frames: torch.Tensor       # [B,T] 1 where there is one
    rate: torch.Tensor         # [B,1]
    style_envelope: torch.Tensor     # [B,L,80] of another clip of the speaker
    style_correlation: torch.Tensor  # [B,L,lags]

    def to(self, device, dtype=torch.float32):
        return Batch(*(x.to(device, dtype) if x.is_floating_point() else x.to(device) for x in self.__dict__.values()))


def _cut(values, start, length):
    times = -(-length // len(values))
    return torch.from_numpy(np.concatenate([values] * times)[start : start + length].astype(np.float32))


def _noisy(envelope, correlation, decibels):
    """White noise under speech, as the features show it."""
    power = envelope.exp()
    noise = power.sum(1).max() / BANDS * 10 ** (-decibels / 10)
    return (power + noise).log(), correlation * (power.sum(1) / (power + noise).sum(1))[:, None]


def collate(clips, by_speaker, r, noisy=False):
    size, n, t = len(clips), max(len(c.ids) for c in clips), max(len(c.frames.pitch) for c in clips)
    length = r.randint(*REFERENCE_FRAMES)
    ids, lengths, symbols = torch.zeros(size, n, dtype=torch.long), torch.zeros(size, n), torch.zeros(size, n)
    envelope, pitch, voicing, frames = torch.zeros(size, t, BANDS), torch.zeros(size, t), torch.zeros(size, t, 2), torch.zeros(size, t)
    style_envelope, style_correlation = torch.zeros(size, length, BANDS), torch.zeros(size, length, len(LAGS))
    for i, clip in enumerate(clips):
        k, m = len(clip.ids), len(clip.frames.pitch)
        ids[i, :k], lengths[i, :k], symbols[i, :k] = torch.tensor(clip.ids), torch.tensor([float(x) for x in clip.lengths]), 1
        envelope[i, :m] = torch.from_numpy(clip.frames.envelope.astype(np.float32))
        pitch[i, :m] = torch.from_numpy(clip.frames.pitch)
        voicing[i, :m] = torch.from_numpy(clip.frames.voicing.astype(np.float32))
        frames[i, :m] = 1
        other = r.choice(by_speaker[clip.speaker]).frames
        start = r.randint(0, max(0, len(other.pitch) - length))
        style_envelope[i], style_correlation[i] = _cut(other.envelope, start, length), _cut(other.correlation, start, length)
        if noisy and r.random() < NOISY_SHARE:
            style_envelope[i], style_correlation[i] = _noisy(style_envelope[i], style_correlation[i], r.uniform(*NOISE_DECIBELS))
    ends, time_axis = lengths.cumsum(1), torch.arange(t).float()
    index = (time_axis[None, :, None] >= ends[:, None]).sum(2).clamp(max=n - 1)
    rate = torch.tensor([[c.rate] for c in clips])
    return Batch(
        ids, lengths, symbols, index, positions(index, ends - lengths, lengths, rate), envelope, pitch, voicing, frames, rate,
        style_envelope, style_correlation,
    )


def losses(network, b, style_noise=0.0):
    style = network.style(b.style_envelope, b.style_correlation)
    if style_noise:
        style = torch.cat([style[:, :LEARNED] + style_noise * torch.randn_like(style[:, :LEARNED]), style[:, LEARNED:]], 1)
    hidden, log_lengths = network.text(b.ids, style)
    envelope, log_pitch, voicing = network.frames(hidden, b.index, b.position, style)

    def mean(values, where):
        return (values * where).sum() / where.sum()

    of_envelope = mean(((envelope - b.envelope).abs() / network.std).mean(-1), b.frames)
    of_pitch = mean((log_pitch - b.pitch.clamp(min=50).log()).abs(), b.frames * (b.voicing[..., 0] > 0.6))
    degree = ((b.voicing - 0.3) / 0.6).clamp(0, 1)
    of_voicing = mean(F.binary_cross_entropy_with_logits(voicing, degree, reduction="none").mean(-1), b.frames)
    wanted = b.lengths * b.rate
    of_length = mean((log_lengths - wanted.clamp(min=0.3).log()).abs(), b.symbols)
    off = mean((log_lengths.exp() - wanted).abs(), b.symbols)
    decibels = mean((envelope - b.envelope).abs().mean(-1), b.frames) * 4.343
    # What one hears of a voice over a whole clip, and what a frame's error hides: is it too high, too bright?
    voiced = b.frames * (b.voicing[..., 0] > 0.6)
    count = voiced.sum(1).clamp(min=1)
    of_mean_pitch = ((voiced * (log_pitch - b.pitch.clamp(min=50).log())).sum(1) / count).abs().mean()
    apart = ((voiced[..., None] * (envelope - b.envelope)).sum(1) / count[:, None]).abs()
    of_mean_envelope = (apart / network.std).mean()
    total = of_envelope + 2 * of_pitch + 0.5 * of_voicing + 0.5 * of_length + 2 * of_mean_pitch + of_mean_envelope
    parts = (of_envelope, of_pitch, of_voicing, of_length, off, decibels, of_mean_pitch, apart.mean() * 4.343)
    return total, tuple(x.item() for x in parts)


def load(paths):
    return [clip for path in sorted(paths) for clip in pickle.loads(path.read_bytes())]


def grouped(clips):
    out = {}
    for clip in clips:
        out.setdefault(clip.speaker, []).append(clip)
    return out


class Trainer:
    def __init__(self, options, clips):
        self.options, self.clips, self.by_speaker = options, clips, grouped(clips)
        self.r = torchsetup.seed_everything(options.seed)
        self.step, self.pool, resumed = 0, [], os.path.exists(options.out)
        begin = options.out if resumed else options.init
        self.network = from_checkpoint(begin, older=not resumed).train() if begin else Synthesiser()
        if not begin:
            some = np.concatenate([c.frames.envelope for c in clips[:400]]).astype(np.float32)
            self.network.mean.copy_(torch.from_numpy(some.mean(0)))
            self.network.std.copy_(torch.from_numpy(some.std(0)))
        self.network.to(options.device)
        if options.keep_style:
            for name, parameter in self.network.named_parameters():
                parameter.requires_grad = not name.startswith(STYLE_ENCODER)
        learnt = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.AdamW(learnt, lr=options.lr, weight_decay=0.01)
        if resumed:
            saved = checkpoint.load(options.out, options.device)
            self.optimiser.load_state_dict(saved["optimiser"])
            self.step, self.pool = saved["step"], saved["pool"]
            checkpoint.restore(saved["generators"], self.r)

    def save(self):
        checkpoint.save(
            self.options.out, network=self.network.state_dict(), optimiser=self.optimiser.state_dict(), step=self.step,
            pool=self.pool, generators=checkpoint.generators(self.r),
        )

    def some(self, count):
        """Indices of clips by chance; as many of the named voices as --named-share says, or as there happen to be."""
        share = self.options.named_share
        if share is None:
            return self.r.sample(range(len(self.clips)), count)
        named = [i for i, clip in enumerate(self.clips) if clip.speaker in NAMED]
        others = [i for i, clip in enumerate(self.clips) if clip.speaker not in NAMED]
        return self.r.sample(named, round(count * share)) + self.r.sample(others, count - round(count * share))

    def draw(self):
        """Batches of similar length, in random order; indices, so that a checkpoint can hold them."""
        size = self.options.batch
        if not self.pool:
            some = self.some(min(len(self.clips), 40 * size))
            some.sort(key=lambda i: len(self.clips[i].frames.pitch))
            self.pool = [some[i : i + size] for i in range(0, len(some), size)]
            self.r.shuffle(self.pool)
        return collate([self.clips[i] for i in self.pool.pop()], self.by_speaker, self.r, noisy=True)

    def take_step(self):
        o = self.options
        left = (o.steps - self.step) / o.steps
        rate = o.lr * min(1, (self.step + 1) / WARM_UP_STEPS) * min(1, max(0.02, left / 0.5))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss, parts = losses(self.network, self.draw().to(o.device), STYLE_NOISE)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        self.step += 1
        return (loss.item(), *parts)


@torch.no_grad()
def held_out(network, clips, seed=1):
    import random

    r, by_speaker = random.Random(seed), grouped(clips)
    named = [c for c in clips if c.speaker in NAMED]
    device = next(network.parameters()).device
    found = [losses(network, collate(named[i : i + 8], by_speaker, r).to(device))[1] for i in range(0, len(named), 8)]
    return dict(zip(NAMES, np.round(np.mean(found, 0), 4).tolist()))


def check_gradients(clips):
    """Expect below 1e-4."""
    import random

    batch = collate(clips[:3], grouped(clips), random.Random(0))
    return torchsetup.largest_gradient_error(Synthesiser(), lambda net, dtype: losses(net, batch.to("cpu", dtype))[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("folder", type=Path, help="of data.py")
    add("--out", default="voices.pt", help="checkpoint: continued if it exists, saved every --save-every steps and at the end")
    add("--init", help="checkpoint whose weights to begin with, when --out does not exist")
    add("--steps", type=int, default=8000, help="length of the schedule; the rate falls in its second half")
    add("--stop-at", type=int, help="stop early, at this step of the same schedule")
    add("--seed", type=int, default=0)
    add("--device", default="cpu", help="cpu or cuda")
    add("--lr", type=float, default=2e-3)
    add("--batch", type=int, default=6, help="clips in a batch")
    add("--named-share", type=float, help="of the eight named voices in what is heard; without it, as in the shards")
    add("--keep-style", action="store_true", help="leave the style encoder as it is, so that the styles of files that exist stay right")
    add("--save-every", type=int, default=250)
    add("--held-out", action="store_true", help="print the losses of the held-out shard, and stop")
    add("--check", action="store_true", help="compare the gradients with a float64 copy, and stop")
    options = parser.parse_args()
    clips = load(options.folder.glob("shard-*.pkl"))
    if options.check:
        return print(f"largest relative gradient error {check_gradients(clips):.1e}")
    if options.held_out:
        network = from_checkpoint(options.out if os.path.exists(options.out) else options.init)
        return print(held_out(network, load(options.folder.glob("held-out.pkl"))))
    trainer, began, sums = Trainer(options, clips), time.process_time(), []
    print(f"{len(clips)} clips of {len(trainer.by_speaker)} speakers, step {trainer.step}", flush=True)
    last = options.stop_at or options.steps
    while trainer.step < last:
        sums.append(trainer.take_step())
        if trainer.step % 50 == 0 or trainer.step == last:
            loss, *parts = np.mean(sums, 0)
            shown = " ".join(f"{name} {value:.4f}," for name, value in zip(NAMES, parts))
            print(f"step {trainer.step} loss {loss:.4f} {shown} {time.process_time() - began:.0f} CPU-s", flush=True)
            sums = []
        if trainer.step % options.save_every == 0:
            trainer.save()
    trainer.save()
    print(f"saved {options.out} at step {trainer.step}")


if __name__ == "__main__":
    main()
