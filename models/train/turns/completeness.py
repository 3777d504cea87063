"""Trains the completeness of turns on the numbers that bench/turns/endingsMain.ts has measured: a table of weights for words, then a layer
that joins their sum with the sound of the end. Writes safetensors and their checksum; with --held-out it tells how well it does there.

  python3 -m turns.completeness work/endings ../turns-demo --held-out work/held
"""
import argparse
import hashlib
import json
from pathlib import Path

from common import torchsetup
import numpy as np
import torch
import torch.nn.functional as F

from turns.export import safetensors

TABLE = 16_384
WIDTH = 16
MOST_OF_WORDS = 6
# Share of the examples of which only the kinds of words are seen: other words than those of the training come.
UNKNOWN_SHARE = 0.6


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def table_of(rows):
    """-> numbers (kinds first), padded with TABLE, whose weight stays 0"""
    kinds = torch.tensor([(r["kinds"] + [TABLE] * 10)[:10] for r in rows])
    words = torch.tensor([(r["words"] + [TABLE] * 4)[:4] for r in rows])
    return kinds, words, torch.tensor([float(r["complete"]) for r in rows])


def train_words(rows, steps, batch=512):
    kinds, words, y = table_of(rows)
    table = torch.nn.Embedding(TABLE + 1, 1, padding_idx=TABLE)
    torch.nn.init.zeros_(table.weight)
    bias = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([*table.parameters(), bias], 0.02)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.02 * (1 - step / steps)
        i = torch.randint(len(y), (batch,))
        known = (torch.rand(batch, 1) > UNKNOWN_SHARE).float()
        logit = table(kinds[i])[..., 0].sum(1) + (table(words[i])[..., 0] * known).sum(1) + bias
        loss = F.binary_cross_entropy_with_logits(logit, y[i]) + 3e-4 * (table(kinds[i]) ** 2).sum(1).mean() + 1e-3 * (table(words[i]) ** 2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return table.weight.detach()[:, 0], bias.detach()


def inputs_of(rows, table, bias):
    kinds, words, y = table_of(rows)
    sums = table[kinds].sum(1) + table[words].sum(1) + bias
    ending = torch.tensor([r["ending"] for r in rows])
    return torch.cat([sums.clamp(-MOST_OF_WORDS, MOST_OF_WORDS)[:, None], ending], 1), y


def network_of(inputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1))


def train_ends(x, y, steps, batch=128, decay=0.02):
    mean, deviation = x.mean(0), x.std(0) + 1e-3
    network = network_of(x.shape[1])
    optimizer = torch.optim.AdamW(network.parameters(), 3e-3, weight_decay=decay)
    share = y.mean()
    z = (x - mean) / deviation
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * (1 - step / steps)
        i = torch.randint(len(y), (batch,))
        # The words of the training are better known than others: theirs count less, and vary.
        noisy = z[i] + 0.15 * torch.randn(batch, z.shape[1])
        noisy[:, 0] = z[i, 0] * (0.2 + 0.8 * torch.rand(batch)) + 0.5 * torch.randn(batch)
        weight = torch.where(y[i] > 0.5, 0.5 / share, 0.5 / (1 - share))
        loss = F.binary_cross_entropy_with_logits(network(noisy)[:, 0], y[i], weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    # The normalisation becomes part of the first layer.
    with torch.no_grad():
        first = network[0]
        first.weight /= deviation
        first.bias -= first.weight @ mean
    return network


def area(score, y):
    """Area under the curve: how often a complete ending has more than another."""
    order = np.argsort(np.argsort(score))
    n = y.sum()
    return (order[y > 0.5].sum() - n * (n - 1) / 2) / (n * (len(y) - n))


def tell(name, score, y):
    others = np.sort(score[y < 0.5])
    found = [float((score[y > 0.5] > others[int(len(others) * (1 - share))]).mean()) for share in (0.03, 0.05, 0.1)]
    print(f"{name}: area {area(score, y):.3f}; found at 3, 5, 10 % false: {', '.join(f'{f:.0%}' for f in found)}; of {len(y)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--false-share", type=float, default=0.02, help="of the training's incomplete endings, over a score of 0.5")
    options = parser.parse_args()
    torchsetup.seed_everything(options.seed)
    table, bias = train_words(rows_of(options.folder / "texts.numbers"), options.steps)
    x, y = inputs_of(rows_of(options.folder / "spoken.numbers"), table, bias)
    network, shift = train_ends(x, y, options.steps), 0.0
    for name, path in [("trained", options.folder), ("held out", options.held_out)]:
        if path is not None:
            x, y = inputs_of(rows_of(path / "spoken.numbers"), table, bias)
            with torch.no_grad():
                score = network(x)[:, 0].numpy()
            tell(f"{name}, words alone", x[:, 0].numpy(), y.numpy())
            tell(name, score, y.numpy())
            if path == options.folder:
                shift = float(np.quantile(score[y.numpy() < 0.5], 1 - options.false_share))
            over = {c: float((score[y.numpy() == c] > shift).mean()) for c in (0, 1)}
            print(f"{name}: over 0.5 are {over[1]:.1%} of the complete ones, {over[0]:.1%} of the others")
    # A score of 0.5 is one that this share of the pauses within sentences exceeds.
    with torch.no_grad():
        network[2].bias -= shift
    tensors = {"words": table[:TABLE], "words.bias": bias, "front.weight": network[0].weight, "front.bias": network[0].bias}
    tensors |= {"out.weight": network[2].weight[0], "out.bias": network[2].bias}
    data = safetensors({name: value.detach().numpy() for name, value in tensors.items()})
    (options.out / "completeness.safetensors").write_bytes(data)
    sums = [f"{hashlib.sha256((options.out / name).read_bytes()).hexdigest()}  {name}\n" for name in ("activity.safetensors", "completeness.safetensors", "rise.safetensors")]
    (options.out / "SHA256SUMS").write_text("".join(sums))


if __name__ == "__main__":
    main()
