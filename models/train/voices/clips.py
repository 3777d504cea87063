"""One sentence of one speaker, as the synthesiser learns it. Called by data.py and export.py; shards hold these."""
from dataclasses import dataclass

import numpy as np
from scipy.signal import resample_poly

from common import espeak
from common.sound import resample
from voices import analysis, symbols
from voices.languages import LANGUAGE_OF, symbols_of

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
    accent = voice.split("+")[0]
    language = LANGUAGE_OF[accent]
    said = espeak.speak(text, voice, rate, pitch)
    events = said.phonemes
    if language == "en":
        ipa = symbols.ipa_of(text, accent)
    else:
        ipa = symbols.ipa_of(text, accent, lambda clause, of: symbols_of(espeak.ipa(clause, of), language, symbols.IDS))
        events = [(at, symbols_of(sound, language, symbols.IDS)) for at, sound in events]
        if "(" in ipa or "??" in ipa:  # a word that is read in another language; a sound without IPA
            return None
    silent_end = events[-1][1] == ""
    end = events[-1][0] if silent_end else len(said.samples) / espeak.RATE_HZ
    characters = symbols.known(ipa)
    seconds = symbols.durations(characters, events[:-1] if silent_end else events, min(len(said.samples) / espeak.RATE_HZ, end))
    if seconds is None:
        return None
    if language == "en":
        characters, seconds = symbols.rewrite(characters, seconds, accent == "en", convention)
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
