"""Makes training shards for the voices: espeak-ng speech with exact phoneme times -> vocoder parameters.

The named voices speak English at their own pitch; other speakers, each with a variant and a pitch by chance, teach the style encoder. With several
languages (`--languages`) such a speaker says each sentence in another one, so that a style is one of the voice alone. A shard depends on its seed alone; finished shards are kept, so running the command again resumes.

  python3 -m voices.data work/voices --shards 8
"""
import argparse
import os
import pickle
import random
import time
from pathlib import Path

from common import torchsetup  # noqa: F401  (threads, before numpy computes)
import numpy as np

from voices.clips import NORMAL_RATE, clip_of
from voices.languages import ACCENTS, Texts
from voices.speakers import LONGEST_THROAT, NAMED, OTHERS, SHORTEST_THROAT

LETTERS_SHARE = 0.35          # of the clips use the single-letter convention
STRETCHED_SHARE = 0.6         # of the strangers have a longer or a shorter throat than their variant
CLIPS_OF_A_STRANGER = 6       # the style always comes from another clip of the same speaker
SHORTEST, LONGEST = 40, 1000  # frames of 10 ms
LONGEST_TEXT = 150            # characters
HELD_OUT_SEED = 99            # of the shard that train.py --held-out looks at
CALIBRATION = [
    "Hello, how can I help you today?", "The weather in London is cold and rainy tonight.", "Please open the window and close the door.",
]


def text_of(r, texts, language):
    if r.random() < 0.1:
        return " ".join(texts.draw(language, True) for _ in range(2))[:LONGEST_TEXT]
    return texts.draw(language, r.random() >= 0.4)[:LONGEST_TEXT]


def median_pitches():
    return {
        name: float(np.median([clip_of(text, voice, pitch).frames.median_hz for text in CALIBRATION]))
        for name, (voice, pitch) in NAMED.items()
    }


def shard(seed, count, named_share, side, languages):
    r, texts, medians, out = random.Random(seed), Texts(languages, seed, side), median_pitches(), []
    while len(out) < count:
        if r.random() < named_share:
            speaker, times, throat = r.choice(list(NAMED)), 1, 1.0
            voice, pitch = NAMED[speaker]
            variant = None
        else:
            variant, pitch, times = r.choice(OTHERS), r.randint(20, 80), CLIPS_OF_A_STRANGER
            throat = r.uniform(SHORTEST_THROAT, LONGEST_THROAT) if r.random() < STRETCHED_SHARE else 1.0
            speaker = f"{variant}:{pitch}:{seed}:{len(out)}"
        for _ in range(times):
            language = "en" if variant is None else r.choice(languages)
            if variant is not None:
                voice = r.choice(ACCENTS[language]) + "+" + variant
            rate = r.choice([NORMAL_RATE, r.randint(130, 230)])
            convention = "letters" if r.random() < LETTERS_SHARE else "characters"
            clip = clip_of(text_of(r, texts, language), voice, pitch, rate, convention, speaker, medians.get(speaker), throat)
            if clip is not None and SHORTEST <= len(clip.frames.pitch) <= LONGEST:
                out.append(clip)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the shards go")
    parser.add_argument("--first", type=int, default=1, help="seed of the first shard")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--clips", type=int, default=500, help="clips a shard")
    parser.add_argument("--named-share", type=float, default=0.4, help="of the eight named voices")
    parser.add_argument("--languages", default="en", help=f"of the other speakers, each as often: of {' '.join(ACCENTS)}")
    parser.add_argument("--held-out", action="store_true", help="make the held-out shard instead, of evaluation sentences")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    make = [("held-out", HELD_OUT_SEED, "evaluation")] if options.held_out else [
        (f"shard-{seed:05d}", seed, "training") for seed in range(options.first, options.first + options.shards)
    ]
    for name, seed, side in make:
        path = options.folder / f"{name}.pkl"
        if path.exists():
            continue
        began = time.process_time()
        clips = shard(seed, options.clips, options.named_share, side, options.languages.split())
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_bytes(pickle.dumps(clips))
        os.replace(unfinished, path)
        hours = sum(len(c.frames.pitch) for c in clips) / 360000
        print(f"{name}: {len(clips)} clips, {hours:.2f} h, {time.process_time() - began:.0f} CPU-s", flush=True)


if __name__ == "__main__":
    main()
