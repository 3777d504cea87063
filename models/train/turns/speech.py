"""Speech for the voice-activity detector: utterances of many espeak-ng voices, and WAV files of the product's own voices and of voices that
were made from recordings of people. Voices and sentences that the benches use are left out.
"""
import random
import wave
from math import gcd
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

from common import espeak
from common.sentences import Sentences
from turns.features import RATE_HZ

VARIANTS = """Alex Alicia Andy AnxiousAndy Diogo Gene Gene2 Henrique Hugo Jacky Lee Marco Mario Michael Mike Nguyen Storm Tweaky
 adam anika announcer antonio aunty belinda benjamin boris caleb david ed edward grandma grandpa gustave iven iven2 john kaukovalta klatt
 klatt2 klatt4 m6 m8 marcelo miguel norbert pablo paul pedro quincy rob robert sandro shelby steph2 steph3 travis victor whisper whisperf
 zac""".split()  # none of those that speak in models/eval
LANGUAGES = ["en-us", "en", "en-gb-x-rp", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "sv", "tr", "hi", "fi", "hu", "cs", "el", "ko", "vi"]


def utterance(text, r):
    voice = r.choice(LANGUAGES if r.random() < 0.5 else LANGUAGES[:3]) + "+" + r.choice(VARIANTS)
    pace = r.choice([r.uniform(110, 270), r.uniform(80, 130)])
    said = espeak.speak(text, voice, pace, r.uniform(10, 90), r.uniform(20, 90))
    stretch = r.uniform(0.85, 1.2)  # a longer or shorter throat
    return resample_poly(said.samples.astype(np.float32) / 32768, round(320 * stretch), 441).astype(np.float32)


def from_wavs(folder):
    """Mono 16-bit files of any rate."""
    for path in sorted(Path(folder).glob("*.wav")):
        with wave.open(str(path)) as file:
            x = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
            common = gcd(file.getframerate(), RATE_HZ)
            x = resample_poly(x, RATE_HZ // common, file.getframerate() // common)
        yield x.astype(np.float32)


def pool(seed, count, folder, recorded):
    r = random.Random(seed)
    sentences = Sentences(seed, "training")
    said = [utterance(" ".join(sentences.draw() for _ in range(r.choice([1, 1, 2]))), r) for _ in range(count)]
    own = list(from_wavs(folder)) if folder else []
    for x in own:  # each also with another throat
        said += [x, resample_poly(x, 20, r.choice([17, 18, 19, 21, 22, 23])).astype(np.float32)]
    many = list(from_wavs(recorded)) if recorded else []
    for x in r.sample(many, min(count, len(many))):
        stretch = r.uniform(0.85, 1.2)
        said.append(resample_poly(x, round(100 * stretch), 100).astype(np.float32))
    return [x / max(1e-4, float(np.abs(x).max())) for x in said if len(x) > RATE_HZ // 4]
