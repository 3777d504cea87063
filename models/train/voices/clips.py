"""One sentence of one speaker, as the synthesiser learns it. Called by data.py and export.py; shards hold these."""
from dataclasses import dataclass

import numpy as np
from scipy.signal import resample_poly

from common import espeak
from common.sound import resample
from voices import analysis, symbols

NORMAL_RATE = 175  # words a minute at speed 1
THROAT_STEPS = 40  # a throat is longer by a fortieth, or two


@dataclass
class Clip:
    ids: list              # symbols, 0 at both ends
    lengths: list          # frames of every symbol
    frames: analysis.Frames
    speaker: str
    rate: float            # 1 is normal; durations are compensated with it


def clip_of(text, voice, pitch, rate=NORMAL_RATE, convention="characters", speaker="", median_hz=None, throat=1.0):
    """-> Clip, or None where the phonemes of the text do not line up with the synthesiser's events. A throat that is longer by a factor
    lowers pitch and formants alike and slows the speech down."""
    language = voice.split("+")[0]
    said = espeak.speak(text, voice, rate, pitch)
    events = said.phonemes
    silent_end = events[-1][1] == ""
    end = events[-1][0] if silent_end else len(said.samples) / espeak.RATE_HZ
    characters = symbols.known(symbols.ipa_of(text, language))
    seconds = symbols.durations(characters, events[:-1] if silent_end else events, min(len(said.samples) / espeak.RATE_HZ, end))
    if seconds is None:
        return None
    characters, seconds = symbols.rewrite(characters, seconds, language == "en", convention)
    kept = said.samples[: round(end * espeak.RATE_HZ) + 1000].astype(np.float32) / 32768
    x = resample(kept, espeak.RATE_HZ, analysis.RATE_HZ)
    shorter = round(THROAT_STEPS / throat)
    slower = THROAT_STEPS / shorter
    if slower != 1:
        x = resample_poly(x, THROAT_STEPS, shorter).astype(np.float32)
    x *= 0.6 / max(0.05, float(np.abs(x).max()))
    edges = np.round(slower * (events[0][0] + np.concatenate([[0], np.cumsum(seconds)])) * analysis.RATE_HZ / analysis.HOP).astype(int)
    frames = analysis.analyse(x, edges[-1] + 5, median_hz)
    return Clip(symbols.ids_of(characters), [edges[0], *np.diff(edges), 5], frames, speaker, rate / NORMAL_RATE / slower)
