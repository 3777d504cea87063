"""Who speaks in the clips: espeak-ng voices, and the product's own eight synthetic voices. Both give the times of words and phonemes, which
turn the hard part of learning to listen (what is where) into plain supervised learning.
"""
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

from common import espeak
from common.sound import resample
from ears.features import RATE_HZ
from voices.languages import ACCENTS as SPOKEN, symbols_of

# Of English: the voices that its figures are measured with. British ones are the hardest to hear: they speak twice as often.
ENGLISH_TRAINED = [
    "en-us", "en-us+f2", "en-us+Annie", "en-us+m3", "en-gb-x-rp", "en-gb-x-rp+f4", "en+f3", "en+m7",
    "en-us+f1", "en-us+m1", "en+m2", "en-us+linda", "en+steph", "en-gb-x-rp+m4", "en+michael", "en-us+max",
    "en-us+belinda", "en+anika", "en-us+shelby", "en-gb-x-rp+adam", "en+Mario", "en-us+m8", "en-us+quincy", "en+Alicia",
]
# Heard for variety, so that strangers are understood; nothing is measured with them.
ENGLISH_OTHERS = [
    "en-us+f4", "en-us+Alex", "en+Andy", "en-us+Gene", "en+Gene2", "en-us+Jacky", "en+Lee", "en-us+Mike", "en+Storm", "en-us+Hugo",
    "en-gb-x-rp+Henrique", "en+antonio", "en-us+aunty", "en-gb-x-rp+f2", "en-gb-x-rp+f1", "en-gb-x-rp+m3", "en-gb-x-rp+linda",
    "en+benjamin", "en-us+boris", "en+caleb", "en-us+david", "en-gb-x-rp+ed", "en-us+edward", "en+grandma", "en-us+grandpa", "en-us+john",
    "en-us+kaukovalta", "en+marcelo", "en-us+michel", "en-gb-x-rp+miguel", "en-us+norbert", "en+pablo", "en-us+paul", "en+pedro",
    "en-us+rob", "en+robert", "en-us+sandro", "en-gb-x-rp+steph2", "en-us+travis", "en+victor", "en-us+zac", "en-us+klatt2",
    "en-gb-x-rp+m6", "en+m6", "en-us+f3", "en-gb-x-rp+f3", "en-gb-x-rp+anika", "en-us+steph3", "en-gb-x-rp+Alicia", "en+iven2",
]
# Never trained: "on a variant never trained on" is measured with these, and with the same variants of the other languages.
UNSEEN = ["en-us+f5", "en-us+Andrea", "en+Denis", "en-gb-x-rp+m5"]
UNSEEN_VARIANTS = ["f5", "Andrea", "Denis", "m5"]
# espeak's voices of the other languages, and the variants that speak them.
ACCENTS = {
    "de": ["de"], "es": ["es", "es-419"], "fr": ["fr"], "pt": ["pt-br"], "pl": ["pl"], "nl": ["nl"], "it": ["it"],
}
VARIANTS = ["", "+f2", "+Annie", "+m3", "+f4", "+m7", "+f1", "+m1", "+m2", "+linda", "+m4", "+max"]
OTHER_VARIANTS = sorted({"+" + voice.split("+")[1] for voice in ENGLISH_OTHERS} - set(VARIANTS))


@dataclass(frozen=True)
class Voices:
    trained: list
    weights: list
    others: list


def voices_of(language):
    if language == "en":
        return Voices(ENGLISH_TRAINED, [2 if voice.startswith("en-gb") else 1 for voice in ENGLISH_TRAINED], ENGLISH_OTHERS)
    # The first accent is the one that figures are measured with.
    accents = ACCENTS[language]
    trained = [accents[0] + variant for variant in VARIANTS]
    return Voices(trained, [1] * len(trained), [accent + variant for accent in accents for variant in OTHER_VARIANTS + VARIANTS[:3]])


# The presets and the espeak voice whose phonemes and order of words they read.
BUILT_IN = {
    "af_bella": "en-us", "af_sarah": "en-us", "am_adam": "en-us", "am_michael": "en-us",
    "bf_emma": "en", "bf_isabella": "en", "bm_george": "en", "bm_lewis": "en",
}


@dataclass
class Utterance:
    """All times in seconds from the first sample."""

    samples: np.ndarray  # float32, 16 kHz, without outer silence
    phonemes: list       # [(seconds, ipa)]
    words: list          # [(seconds, first character, length)]


def _trimmed(x, phonemes, words):
    loud = np.nonzero(np.abs(x) > 0.006)[0]
    if len(loud) == 0 or not words:
        return None
    first, last = max(0, loud[0] - 300), min(len(x), loud[-1] + 900)
    shift = first / RATE_HZ
    return Utterance(x[first:last], [(t - shift, p) for t, p in phonemes], [(t - shift, p, n) for t, p, n in words if n])


def say_with_espeak(text, voice, r):
    speech = espeak.speak(text, voice, r.uniform(130, 210), r.uniform(35, 65), r.uniform(35, 65))
    x = resample(speech.samples.astype(np.float32) / 32768, espeak.RATE_HZ, RATE_HZ)
    return _trimmed(x, speech.phonemes, speech.words)


def stretched(said, factor):
    """The same words out of a throat that much longer: pitch and formants fall, the speech slows down."""
    up = 40
    down = round(up / factor)
    x, ratio = resample_poly(said.samples, up, down).astype(np.float32), up / down
    return Utterance(x, [(t * ratio, p) for t, p in said.phonemes], [(t * ratio, p, n) for t, p, n in said.words])


class BuiltInVoices:
    """The product's synthesiser in PyTorch, from its checkpoint and its voice files; espeak's times are carried over onto its durations. With the
    checkpoint of several languages each voice speaks those of voices/languages.py."""

    def __init__(self, checkpoint, voices: Path):
        import torch
        from voices import graphs, network

        self.torch = torch
        self.network = network.from_checkpoint(checkpoint)
        self.graph = graphs.SpeechGraph(self.network).eval()
        self.styles = {v: torch.from_numpy(np.fromfile(voices / f"{v}.bin", "<f4")[:256].copy())[None] for v in BUILT_IN}

    def say(self, text, voice, language, speed=1.0):
        """-> Utterance, or None where the phonemes of the text do not line up with espeak's events."""
        from voices import graphs, symbols

        torch, accent = self.torch, BUILT_IN[voice] if language == "en" else SPOKEN[language][0]
        speech = espeak.speak(text, accent)
        events = speech.phonemes[:-1]
        if language == "en":
            ipa = symbols.ipa_of(text, accent)
        else:
            ipa = symbols.ipa_of(text, accent, lambda clause, of: symbols_of(espeak.ipa(clause, of), language, symbols.IDS))
            events = [(at, symbols_of(sound, language, symbols.IDS)) for at, sound in events]
            if "(" in ipa:  # a word that is read in another language
                return None
        out = characters = symbols.known(ipa)
        places = symbols.first_characters(characters, events)
        if places is None or len(characters) > 500:
            return None
        if language == "en":
            out, _ = symbols.rewrite(characters, [0.0] * len(characters), accent == "en")
        if len(out) != len(characters):  # an inserted space would shift the places
            return None
        ids, style = torch.tensor([symbols.ids_of(out)]), self.styles[voice]
        with torch.no_grad():
            _, log_frames = self.network.text(ids, style)
            ends = graphs.frame_ends(log_frames, torch.tensor([speed]))[0].numpy()
            wave = self.graph(ids, style, torch.tensor([speed]))[0][0].numpy()
        starts = np.concatenate([[0], ends]) / 100  # of every id, in seconds
        theirs = np.array([t for t, _ in speech.phonemes])
        ours = np.maximum.accumulate(np.array([starts[p[0] + 1] for p in places] + [starts[-2]]))
        phonemes = [(float(t), ipa) for t, (_, ipa) in zip(ours, speech.phonemes)]
        words = [(float(np.interp(t, theirs, ours)), p, n) for t, p, n in speech.words]
        return _trimmed(resample(wave, 24000, RATE_HZ), phonemes, words)
