"""Clips: one to six sentences of one or several voices, with pauses, a room, noise and gain, at most 30 s; and clips without speech."""
import json
import re
from pathlib import Path

import numpy as np

from common.sound import narrow, noise, with_noise, with_reverberation
from ears.features import LANGUAGES, RATE_HZ
from ears.speakers import BUILT_IN, SPOKEN, say_with_espeak, stretched, voices_of

LONGEST_SECONDS = 29.4
LABEL_SAMPLES = 640   # of a phoneme label: 25 frames a second, the encoder's rate
_PHONEMES = json.loads((Path(__file__).parent / "phonemes.json").read_text(encoding="utf8"))  # IPA -> label, 0 is silence
_VOICES = {language: voices_of(language) for language in LANGUAGES}


def bare(ipa):
    """Without marks of stress and ties."""
    return re.sub("[ˈˌ\u200d\u0361]", "", ipa)


def _label(ipa):
    return _PHONEMES.get(bare(ipa), 0)


def without_speech(r, z):
    """Silence, noise, hum, tones, clicks."""
    count = int(r.choice([r.uniform(0.3, 3), r.uniform(2, 10), r.uniform(10, 30)]) * RATE_HZ)
    q = r.random()
    if q < 0.15:
        return np.zeros(count, np.float32)
    x = noise(count, RATE_HZ, r, z) * 10 ** r.uniform(-4, -0.8)
    if q > 0.6:
        for _ in range(r.randint(1, 6)):
            n = min(count, int(r.uniform(0.01, 0.8) * RATE_HZ))
            at, t = r.randint(0, count - n), np.arange(n) / RATE_HZ
            tone = np.sin(2 * np.pi * t * r.uniform(80, 3000)) if r.random() < 0.6 else z.standard_normal(n)
            x[at : at + n] += (tone * np.exp(-t * r.uniform(0, 30)) * r.uniform(0.02, 0.5)).astype(np.float32)
    if q < 0.3:
        x *= np.linspace(r.random(), r.random(), count)
    return np.clip(x, -1, 1).astype(np.float32)


class Studio:
    """Draws clips. `r` and `z` are its sources of chance, `texts` the source of sentences of every language that is to be spoken; `built_in` may be
    absent."""

    def __init__(self, r, z, texts, built_in=None, built_in_share=0.25):
        self.r, self.z, self.texts, self.built_in, self.share = r, z, texts, built_in, built_in_share if built_in else 0.0

    def _voice(self, language):
        r, voices = self.r, _VOICES[language]
        if language in SPOKEN and r.random() < self.share:
            return r.choice(list(BUILT_IN))
        return r.choice(voices.others) if r.random() < 0.35 else r.choices(voices.trained, voices.weights)[0]

    def say(self, sentence, voice, language):
        if voice in BUILT_IN:
            return self.built_in.say(sentence, voice, language, self.r.uniform(0.85, 1.2))
        said = say_with_espeak(sentence, voice, self.r)
        return stretched(said, self.r.uniform(0.86, 1.16)) if said and self.r.random() < 0.3 else said

    def clip(self):
        """-> dict(wave, language, text, segments [(text, start, end)], words, phonemes [labels], voices), or None when nothing could be said"""
        r = self.r
        language = r.choice(list(self.texts))
        sentences = r.choices((1, 2, 3, 4, 5, 6), (46, 18, 12, 9, 8, 7))[0]
        pieces = [np.zeros(int(r.uniform(0, 0.6) * RATE_HZ), np.float32)]
        at, text, segments, words, phonemes, voices = len(pieces[0]), "", [], [], [], []
        one_voice = r.random() < 0.85
        for _ in range(sentences):
            sentence = self.texts[language].draw()
            voice = voices[0] if voices and one_voice else self._voice(language)
            said = self.say(sentence, voice, language)
            if said is None or at + len(said.samples) > LONGEST_SECONDS * RATE_HZ:
                break
            voices.append(voice)
            start, end = at / RATE_HZ, (at + len(said.samples)) / RATE_HZ
            joint = " " if text else ""
            segments.append((joint + sentence, start, end))
            first_character = len(text) + len(joint)
            text += joint + sentence
            words += [(t + start, p + first_character, n) for t, p, n in said.words]
            phonemes += [(t + start, ipa) for t, ipa in said.phonemes] + [(end, "")]
            level = r.uniform(0.5, 1) / max(1e-3, float(np.abs(said.samples).max()))
            pause = np.zeros(int(r.choice([r.uniform(0.05, 0.3), r.uniform(0.2, 1.0)]) * RATE_HZ), np.float32)
            pieces += [said.samples * level, pause]
            at += len(said.samples) + len(pause)
        if not segments:
            return None
        pieces.append(np.zeros(int(r.uniform(0, 0.5) * RATE_HZ), np.float32))
        x = self._spoil(np.concatenate(pieces)[: 30 * RATE_HZ] * r.uniform(0.2, 1))
        return dict(
            wave=x, language=language, text=text, segments=segments, words=words, phonemes=_labels(phonemes, len(x)), voices=voices,
        )

    def _spoil(self, x):
        r, z = self.r, self.z
        if r.random() < 0.07:
            x = narrow(x, r)
        if r.random() < 0.15:
            x = with_reverberation(x, r.uniform(0.1, 0.5), RATE_HZ, r, z)
        if r.random() < 0.6:
            x = with_noise(x, r.uniform(10, 40), RATE_HZ, r, z)
        return np.clip(x, -1, 1).astype(np.float32)


def _labels(phonemes, samples):
    frames = (int(np.ceil(samples / 160)) + 3) // 4
    starts = np.array([t for t, _ in phonemes])
    at = np.searchsorted(starts, np.arange(frames) * LABEL_SAMPLES / RATE_HZ, side="right") - 1
    ids = np.array([_label(ipa) for _, ipa in phonemes], np.uint8)
    return np.where(at < 0, 0, ids[at]).astype(np.uint8)
