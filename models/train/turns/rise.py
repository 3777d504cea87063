"""Trains how much the language model's expectation of the end of a message counts beside the completeness of turns: a weight and a bias
that are added to its log-odds, and another pair that is added where the words are not known. Reads the numbers that
bench/turns/endingsMain.ts has measured with the completeness that is in ../turns-demo, of sentences that it was not trained with.

  python3 -m turns.rise work/rise ../turns-demo --held-out work/held
"""
import argparse
import hashlib
from pathlib import Path

from common import torchsetup  # noqa: F401  (threads, before numpy computes)
import numpy as np

from turns.completeness import rows_of, tell
from turns.export import safetensors

FILES = ("activity.safetensors", "completeness.safetensors", "rise.safetensors")


def log_odds(p):
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


def columns(rows):
    """-> log-odds of completeness, the same of the sound alone, rise, complete; of the rows that have all of them"""
    rows = [r for r in rows if r.get("score") is not None and r.get("rise") is not None]
    take = lambda name: np.array([r[name] for r in rows], float)  # noqa: E731
    return log_odds(take("score")), log_odds(take("sound")), take("rise"), take("complete")


def weight_of(base, rise, y, rounds=100, decay=1e-3):
    """Logistic regression by Newton's method, classes of equal weight: the rise's weight against that of the base"""
    x = np.stack([base, rise, np.ones(len(y))], 1)
    w = np.zeros(3)
    share = np.where(y > 0.5, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-x @ w))
        gradient = x.T @ (share * (p - y)) / len(y) + decay * w
        curve = (x * (share * p * (1 - p))[:, None]).T @ x / len(y) + decay * np.eye(3)
        w -= np.linalg.solve(curve, gradient)
    return w[1] / w[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--held-out", type=Path)
    options = parser.parse_args()
    score, sound, rise, y = columns(rows_of(options.folder / "spoken.numbers"))
    # As many of the incomplete ends are over 0.5 as with the score alone.
    over = float((score[y < 0.5] > 0).mean())
    tensors = {}
    for name, base in [("words", score), ("sound", sound)]:
        weight = weight_of(base, rise, y)
        bias = -float(np.quantile((base + weight * rise)[y < 0.5], 1 - over))
        tensors[name] = np.array([weight, bias], np.float32)
        print(f"{name}: weight {weight:.4f}, bias {bias:.4f}")
    print(f"over 0.5 are {over:.1%} of the incomplete ends")
    for title, path in [("trained", options.folder), ("held out", options.held_out)]:
        if path is None:
            continue
        rows = rows_of(path / "spoken.numbers")
        score, sound, rise, y = columns(rows)
        words = tensors["words"]
        alone = tensors["sound"]
        known = [r for r in rows if r.get("stop") is not None]
        truth = np.array([float(r["complete"]) for r in known])
        for what in ("end", "stop"):
            tell(f"{title}, the language model alone, {what}", np.array([r[what] for r in known], float), truth)
        tell(f"{title}, the language model alone, rise", rise, y)
        tell(f"{title}, completeness", score, y)
        tell(f"{title}, completeness and rise", score + words[0] * rise + words[1], y)
        tell(f"{title}, sound", sound, y)
        tell(f"{title}, sound and rise", sound + alone[0] * rise + alone[1], y)
    (options.out / "rise.safetensors").write_bytes(safetensors(tensors))
    sums = [f"{hashlib.sha256((options.out / name).read_bytes()).hexdigest()}  {name}\n" for name in FILES]
    (options.out / "SHA256SUMS").write_text("".join(sums))


if __name__ == "__main__":
    main()
