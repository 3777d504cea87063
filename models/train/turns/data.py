"""Makes examples for the voice-activity detector: 6 s each, band energies and for every hop whether someone speaks.

  python3 -m turns.data work/turns --shards 2 --examples 1600 --wavs work/own-voices
"""
import argparse
import time
from pathlib import Path

from common import torchsetup  # noqa: F401  (threads, before numpy computes)
import numpy as np
from scipy.signal import butter, lfilter

from turns import sounds
from turns.features import BANDS, HOP, RATE_HZ, band_energies
from turns.speech import pool

HOPS = 600
SAMPLES = HOPS * HOP
WITHOUT_SPEECH = 0.42
# Relative to the loud parts of an utterance, dB: above is speech, below is none, between counts little.
SPEECH_ABOVE, SILENCE_BELOW = -34, -46


def power_of(x):
    """Mean power of 20 ms around the middle of each hop."""
    x = np.concatenate([np.zeros(HOP // 2, np.float32), x, np.zeros(HOP, np.float32)]) ** 2
    halves = x[: (len(x) // (HOP // 2)) * (HOP // 2)].reshape(-1, HOP // 2).mean(1)
    frames = (halves[:-3] + halves[1:-2] + halves[2:-1] + halves[3:]) / 4
    return frames[::2]


def labels_of(clean):
    power = power_of(clean)[:HOPS]
    level = 10 * np.log10(power + 1e-12)
    loud = np.percentile(level[level > -70], 90) if (level > -70).any() else 0
    label = (level > loud + SPEECH_ABOVE).astype(np.uint8)
    between = (level <= loud + SPEECH_ABOVE) & (level > loud + SILENCE_BELOW)
    return label, np.where(between, 0.2, 1).astype(np.float32)


def spoken(said, z):
    """Utterances with pauses."""
    x, at = np.zeros(SAMPLES, np.float32), int(z.choice([0, z.uniform(0.2, 2.5)]) * RATE_HZ)
    voice = z.randint(len(said))
    while at < SAMPLES - 1600:
        one = said[voice if z.rand() < 0.3 else z.randint(len(said))]
        if z.rand() < 0.25:  # a short answer
            start = z.randint(0, max(1, len(one) - 4000))
            one = one[start : start + int(z.uniform(0.2, 1) * RATE_HZ)] * 1
            fade = min(160, len(one) // 4)
            one[:fade] *= np.linspace(0, 1, fade)
            one[-fade:] *= np.linspace(1, 0, fade)
        one = one[: SAMPLES - at]
        x[at : at + len(one)] += one * z.uniform(0.4, 1)
        at += len(one) + int(z.choice([z.uniform(0.05, 0.5), z.uniform(0.3, 2.5)]) * RATE_HZ)
    return x


def background(z):
    x = np.zeros(SAMPLES, np.float32)
    for _ in range(z.choice([1, 1, 2])):
        make = sounds.STEADY[z.randint(len(sounds.STEADY))] if z.rand() < 0.6 else sounds.EVENTS[z.randint(len(sounds.EVENTS))]
        x += make(SAMPLES, z) * z.uniform(0.3, 1)
    return x


def intrusion(z):
    """Sounds without speech: one throughout, or several after another with silence between."""
    if z.rand() < 0.5:
        return sounds.ALL[z.randint(len(sounds.ALL))](SAMPLES, z) * 1
    x, at = np.zeros(SAMPLES, np.float32), 0
    while at < SAMPLES - 800:
        n = min(SAMPLES - at, int(z.uniform(0.1, 2.5) * RATE_HZ))
        part = sounds.ALL[z.randint(len(sounds.ALL))](max(n, 800), z)[:n]
        fade = min(z.randint(1, 400), n // 2)
        part[:fade] *= np.linspace(0, 1, fade)
        part[-fade:] *= np.linspace(1, 0, fade)
        x[at : at + n] = part * 10 ** z.uniform(-1.2, 0)
        at += n + int(z.choice([0, z.uniform(0.1, 1)]) * RATE_HZ)
    return x


def channel(x, z):
    """Microphone and line: tilt, telephone band, clipping, loudness, rounding to 16 bits or G.711's coarseness."""
    if z.rand() < 0.3:
        x = lfilter([1, -z.uniform(-0.7, 0.7)], [1], x)
    if z.rand() < 0.25:
        b, a = butter(4, [z.uniform(60, 300) / 8000, z.uniform(3300, 3900) / 8000], "band")
        x = lfilter(b, a, x)
    x = x / max(1e-6, np.abs(x).max()) * 10 ** (-z.uniform(0, 36) / 20)
    if z.rand() < 0.08:
        x = np.clip(x * z.uniform(1.5, 8), -0.7, 0.7)
    if z.rand() < 0.1:
        x = np.sign(x) * np.expm1(np.round(np.log1p(255 * np.abs(x)) / np.log(256) * 127) / 127 * np.log(256)) / 255
    return (np.round(x * 32767) / 32768).astype(np.float32)


def example(said, z):
    if z.rand() < WITHOUT_SPEECH:
        x, label, weight = intrusion(z), np.zeros(HOPS, np.uint8), np.ones(HOPS, np.float32)
        if z.rand() < 0.3:
            x = x + background(z) * 10 ** (-z.uniform(5, 40) / 20) * np.abs(x).max()
        if z.rand() < 0.3:
            x = sounds.room(x, z)
        return band_energies(channel(x, z)), label, weight
    clean = spoken(said, z)
    label, weight = labels_of(clean)
    x = sounds.room(clean, z) if z.rand() < 0.35 else clean
    if z.rand() < 0.8:
        noise, active = background(z), clean[np.repeat(label, HOP).astype(bool)]
        level = np.sqrt((active**2).mean()) if len(active) else 0.1
        noise *= level / max(1e-6, np.sqrt((noise**2).mean())) * 10 ** (-z.uniform(2, 40) / 20)
        x = x + noise
    return band_energies(channel(x, z)), label, weight


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=1, help="seed of the first shard")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--examples", type=int, default=1600, help="of a shard")
    parser.add_argument("--utterances", type=int, default=1000, help="different ones of a shard")
    parser.add_argument("--wavs", help="folder of WAV files of the product's own voices (README)")
    parser.add_argument("--recorded", help="folder of turns.recorded")
    parser.add_argument("--music", help="folder of turns.music")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.music:
        sounds.load_pieces(options.music)
    for seed in range(options.first, options.first + options.shards):
        path = options.folder / f"activity-{seed:03d}.npz"
        if path.exists():
            continue
        began, z = time.process_time(), np.random.RandomState(seed)
        said = pool(seed, options.utterances, options.wavs, options.recorded)
        x = np.zeros((options.examples, HOPS, BANDS), np.float16)
        y, w = np.zeros((options.examples, HOPS), np.uint8), np.zeros((options.examples, HOPS), np.float16)
        for i in range(options.examples):
            x[i], y[i], w[i] = example(said, z)
        np.savez(path, x=x, y=y, w=w)
        print(f"shard {seed}: {len(said)} utterances, speech in {y.mean():.0%} of the hops, {time.process_time() - began:.0f} CPU-s", flush=True)


if __name__ == "__main__":
    main()
