"""Makes sentences for the completeness of turns: texts, and speech of espeak-ng with the times of its words. bench/turns/endingsMain.ts
cuts them and measures what the gateway would see.

  python3 -m turns.endings work/endings --seed 2
  python3 -m turns.endings ../eval/endings --held-out --evaluation ../eval
"""
import argparse
import json
import random
import re
import subprocess
from pathlib import Path

from common import espeak, torchsetup  # noqa: F401  (threads, before numpy computes)
import numpy as np
from scipy.signal import resample_poly

from common.sentences import TEXT, Sentences, _lines
from common.split import is_evaluation
from turns.features import RATE_HZ
from turns.speech import VARIANTS

FRAMES = _lines(TEXT / "turns.txt")
LANGUAGES = ["en-us", "en-us", "en", "en-gb-x-rp", "en-gb-scotland"]
CONNECTIVES = ["and", "but", "because", "so", "and then", "when", "if", "while", "although", "so that", "or"]
# Voices of the evaluation set, which nothing was trained with.
HELD_OUT = ["en-us+f3", "en-us+m3", "en+Denis", "en-gb-x-rp+f4", "en-gb-x-rp+m5", "en-us+f5"]


class Turns:
    """What people say in a conversation: framed sentences, and two of them joined."""

    def __init__(self, seed, side):
        self.sentences = Sentences(seed, side)
        self.evaluation = side == "evaluation"
        self.random = self.sentences.random

    def _one(self):
        frame = self.random.choice(FRAMES) if self.random.random() < 0.5 else None
        if frame is None:
            return self.sentences.draw("pattern")
        return re.sub(r"\{(\w+)\}", lambda m: self.sentences._slot(m[1]), frame)

    def draw(self):
        while True:
            made = self._one()
            if self.random.random() < 0.2:
                made = made[:-1] + " " + self.random.choice(CONNECTIVES) + " " + self._one()
            if is_evaluation(made) == self.evaluation:
                return made[0].upper() + made[1:]


def speak(text, r, voice=None):
    """-> (s16 samples of 16 kHz with silence cut off, begins of the words from the second one, in samples)"""
    voice = voice or r.choice(LANGUAGES) + "+" + r.choice(VARIANTS)
    said = espeak.speak(text, voice, r.uniform(120, 220), r.uniform(15, 85), r.uniform(30, 80))
    x = resample_poly(said.samples.astype(np.float32) / 32768, 320, 441)
    loud = np.nonzero(np.abs(x) > 0.03 * np.abs(x).max())[0]
    first, last = loud[0], loud[-1] + 1
    cuts = [int(at * RATE_HZ) - int(first) for at, _, _ in said.words[1:]]
    x = x[first:last] / np.abs(x).max() * 0.7
    return np.round(x * 32767).astype("<i2"), [c for c in cuts if RATE_HZ // 5 < c < len(x) - RATE_HZ // 10]


def spoken(rows, folder):
    at, index = 0, []
    with open(folder / "spoken.s16", "wb") as audio:
        for text, said, cuts in rows:
            audio.write(said.tobytes())
            index.append(dict(text=text, at=at, samples=len(said), cuts=cuts))
            at += len(said)
    (folder / "spoken.jsonl").write_text("".join(json.dumps(row) + "\n" for row in index))


def as_opus(folder):
    """The samples as Ogg Opus of 24 kbit/s, for the repository."""
    command = ["ffmpeg", "-loglevel", "error", "-y", "-f", "s16le", "-ar", str(RATE_HZ), "-ac", "1", "-i", str(folder / "spoken.s16")]
    command += ["-c:a", "libopus", "-b:a", "24000", "-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact"]
    subprocess.run([*command, str(folder / "spoken.opus")], check=True)
    (folder / "spoken.s16").unlink()


def with_comma(text, r):
    """Said with a break between two words: the pitch of what goes on."""
    words = text.split()
    at = r.randrange(1, len(words))
    return " ".join(words[:at]).rstrip(",") + ", " + " ".join(words[at:]), at


def training(options, r):
    turns = Turns(options.seed, "training")
    with open(options.folder / "texts.jsonl", "w") as file:
        for _ in range(options.texts):
            words = turns.draw().split()
            file.write(json.dumps(dict(text=" ".join(words), complete=1)) + "\n")
            if len(words) > 2:
                file.write(json.dumps(dict(text=" ".join(words[: r.randrange(1, len(words))]), complete=0)) + "\n")

    def rows():
        for i in range(options.spoken):
            text = turns.draw()
            if len(text.split()) < 3:
                yield text, speak(text, r)[0], []
                continue
            if i % 3 == 0:
                text, at = with_comma(text, r)
                said, cuts = speak(text, r)
                yield text, said, cuts[at - 1 : at]
            else:
                said, cuts = speak(text, r)
                yield text, said, sorted(r.sample(cuts, min(2, len(cuts))))

    spoken(rows(), options.folder)


def held_out(options, r):
    free = [line for line in (options.evaluation / "free.txt").read_text().splitlines() if line and not line.startswith("#")]
    turns = Turns(options.seed + 7_000, "evaluation")
    made = []
    while len(made) < len(free):
        text = turns.draw()
        if len(text.split()) > 3:
            made.append(text)

    def rows():
        for i, text in enumerate(t for pair in zip(free, made) for t in pair):
            said, cuts = speak(text, r, HELD_OUT[i % len(HELD_OUT)])
            yield text, said, sorted(r.sample(cuts, min(3, len(cuts))))

    spoken(rows(), options.folder)
    as_opus(options.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--spoken", type=int, default=3_200)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--evaluation", type=Path, help="models/eval")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    (held_out if options.held_out else training)(options, random.Random(options.seed))


if __name__ == "__main__":
    main()
