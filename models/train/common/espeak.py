"""libespeak-ng in process: text -> samples with the time of every phoneme and word. Makes training data and evaluation clips; the product
never calls it. Needs Debian's espeak-ng. Not thread-safe: one voice at a time in a process.
"""
import ctypes as c
from dataclasses import dataclass

import numpy as np

_lib = c.CDLL("libespeak-ng.so.1")


class _Id(c.Union):
    _fields_ = [("number", c.c_int), ("name", c.c_char_p), ("string", c.c_char * 8)]


class _Event(c.Structure):
    _fields_ = [
        ("type", c.c_int), ("uid", c.c_uint), ("text_position", c.c_int), ("length", c.c_int), ("audio_position", c.c_int),
        ("sample", c.c_int), ("user_data", c.c_void_p), ("id", _Id),
    ]


_Callback = c.CFUNCTYPE(c.c_int, c.POINTER(c.c_short), c.c_int, c.POINTER(_Event))
_lib.espeak_Synth.argtypes = [c.c_void_p, c.c_size_t, c.c_uint, c.c_int, c.c_uint, c.c_uint, c.c_void_p, c.c_void_p]
_lib.espeak_TextToPhonemes.restype = c.c_char_p
_lib.espeak_TextToPhonemes.argtypes = [c.POINTER(c.c_char_p), c.c_int, c.c_int]

_WORD, _PHONEME = 1, 7                       # espeak_EVENT_TYPE
_RATE, _PITCH, _RANGE = 1, 3, 4              # espeak_PARAMETER
_UTF8, _END_PAUSE = 1, 0x1000                # flags of espeak_Synth
_SYNCHRONOUS, _PHONEME_EVENTS, _IPA_EVENTS = 2, 1, 2
RATE_HZ = _lib.espeak_Initialize(_SYNCHRONOUS, 400, None, _PHONEME_EVENTS | _IPA_EVENTS)  # 22050

_waves: list = []
_phonemes: list = []
_words: list = []
_voice = None


@_Callback
def _collect(wave, samples, events):
    if samples > 0:
        _waves.append(c.string_at(wave, samples * 2))
    i = 0
    while events[i].type:
        event = events[i]
        if event.type == _PHONEME:
            ipa = c.string_at(c.addressof(event) + _Event.id.offset, 8).split(b"\0")[0].decode("utf8", "replace")
            _phonemes.append((event.sample / RATE_HZ, ipa))
        elif event.type == _WORD:
            _words.append((event.audio_position / 1000, event.text_position - 1, event.length))
        i += 1
    return 0


_lib.espeak_SetSynthCallback(_collect)


@dataclass
class Speech:
    samples: np.ndarray   # int16 at RATE_HZ
    phonemes: list        # [(seconds, ipa)], an empty ipa is a pause
    words: list           # [(seconds, first character, length)]


def set_voice(voice: str) -> None:
    """`language+variant`, e.g. "en-us+f2" ("en" is British; "en-gb" does not exist)."""
    global _voice
    if voice == _voice:
        return
    if _lib.espeak_SetVoiceByName(voice.encode()):
        raise ValueError(f"espeak-ng has no voice {voice}")
    _voice = voice


def speak(text: str, voice: str, rate: float = 175, pitch: float = 50, spread: float = 50) -> Speech:
    """rate in words a minute; pitch and its range from 0 to 99, espeak's own units."""
    set_voice(voice)
    for parameter, value in ((_RATE, rate), (_PITCH, pitch), (_RANGE, spread)):
        _lib.espeak_SetParameter(parameter, int(value), 0)
    for collected in (_waves, _phonemes, _words):
        collected.clear()
    data = text.encode() + b"\0"
    _lib.espeak_Synth(data, len(data), 0, 1, 0, _UTF8 | _END_PAUSE, None, None)
    return Speech(np.frombuffer(b"".join(_waves), np.int16), list(_phonemes), list(_words))


def ipa(text: str, voice: str) -> str:
    """The phonemes of a text, clauses joined with spaces."""
    set_voice(voice)
    rest, out = c.c_char_p(text.encode()), []
    while rest.value:
        part = _lib.espeak_TextToPhonemes(c.byref(rest), 1, 2)
        if part:
            out.append(part.decode())
    return " ".join(out)
