"""Trains the voice-activity network.

  python3 -m turns.train work/turns --out work/turns/activity.pt --minutes 9
"""
import argparse
import json
import time
from pathlib import Path

from common import torchsetup
import numpy as np
import torch
import torch.nn.functional as F

from turns.network import Activity


def load(paths):
    parts = [np.load(p) for p in paths]
    return [torch.from_numpy(np.concatenate([p[k] for p in parts])) for k in ("x", "y", "w")]


def begin(path):
    """Weights of a checkpoint. In the shipped file the threshold is moved (turns.export), which training undoes by itself."""
    if path.suffix != ".safetensors":
        return torch.load(path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    state = {}
    for name, tensor in json.loads(data[8 : 8 + length]).items():
        first, last = tensor["data_offsets"]
        values = np.frombuffer(data[8 + length + first : 8 + length + last], "<f4")
        state[name] = torch.from_numpy(values.reshape(tensor["shape"]).copy())
    return state


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--init", type=Path, help="a checkpoint, or the shipped activity.safetensors")
    parser.add_argument("--minutes", type=float, default=9, help="processor time")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torchsetup.seed_everything(options.seed)
    x, y, w = load(sorted(options.folder.glob("activity-*.npz")))
    held = max(32, len(x) // 20)
    network = Activity()
    if options.init:
        network.load_state_dict(begin(options.init))
    optimizer = torch.optim.AdamW(network.parameters(), options.rate, weight_decay=1e-4)
    began, step, told = time.process_time(), 0, 0.0
    while True:
        share = (time.process_time() - began) / (60 * options.minutes)
        if share >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1, step / 100) * max(0.01, (1 + np.cos(np.pi * share)) / 2)
        rows = torch.randint(held, len(x), (options.batch,))
        start = int(torch.randint(0, 300, ()))
        hops = slice(start, start + 300)
        batch = x[rows, hops].float() + 2 * (torch.rand(options.batch, 1, 1) - 0.5) * 0.8  # loudness, +-8 dB
        batch = batch.clamp(min=-9)
        # The window is centred on the end of the hop before: its label.
        target = y[rows, hops].float().roll(1, 1)
        weight = w[rows, hops].float().roll(1, 1)
        weight[:, :3] = 0
        logits = network(batch)
        loss = (F.binary_cross_entropy_with_logits(logits, target, reduction="none") * weight).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        if time.process_time() - told > 30:
            told = time.process_time()
            with torch.no_grad():
                p = torch.sigmoid(network(x[:held].float()))[:, 1:]
            truth, sure = y[:held, :-1].bool(), w[:held, :-1] > 0.5
            empty = ~truth.any(1, keepdim=True) & sure
            hit, fall = (p > 0.5)[truth & sure].float().mean(), (p > 0.5)[~truth & sure].float().mean()
            print(f"{share:4.0%} step {step} loss {loss:.4f} speech found {hit:.3f} silence taken {fall:.4f} in sounds alone {(p > 0.5)[empty].float().mean():.4f}", flush=True)
            torch.save(network.state_dict(), options.out)
    torch.save(network.state_dict(), options.out)


if __name__ == "__main__":
    main()
