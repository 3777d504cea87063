"""Tokens and features of the Whisper contract, in numpy."""
import numpy as np

RATE_HZ = 16000

LANGUAGES = ("en", "de", "es", "fr", "pt", "pl", "nl", "it")   # Whisper's order

# GPT-2's byte alphabet (256 ids, no merges), then Whisper's specials in Whisper's order, then the timestamps.
_printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
_bytes = _printable + [b for b in range(256) if b not in _printable]
BYTE_CHARACTERS = [chr(b) for b in _printable] + [chr(256 + n) for n in range(256 - len(_printable))]
_ids = {b: i for i, b in enumerate(_bytes)}
SPECIALS = [
    "<|endoftext|>", "<|startoftranscript|>", *(f"<|{language}|>" for language in LANGUAGES), "<|translate|>", "<|transcribe|>",
    "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>",
]
END, START = 256, 257
LANGUAGE_TOKENS = {language: 258 + i for i, language in enumerate(LANGUAGES)}
TRANSLATE, TRANSCRIBE, START_OF_LM, START_OF_PREVIOUS, NO_SPEECH, NO_TIMESTAMPS = range(258 + len(LANGUAGES), 264 + len(LANGUAGES))
FIRST_TIMESTAMP = NO_TIMESTAMPS + 1
TIMESTAMPS = 1501                      # 0.00 to 30.00 s
TIMESTAMP_SECONDS = 0.02
VOCABULARY = FIRST_TIMESTAMP + TIMESTAMPS


def encode(text):
    return [_ids[b] for b in text.encode()]


def decode(ids):
    return bytes(_bytes[i] for i in ids if i < 256).decode("utf8", "replace")


def timestamp(seconds):
    return FIRST_TIMESTAMP + int(np.clip(round(seconds / TIMESTAMP_SECONDS), 0, TIMESTAMPS - 1))


def _mel_filters(bands=80, fft=400):
    """Slaney scale, Slaney normalisation."""

    def to_mel(f):
        return np.where(f >= 1000, 15 + np.log(np.maximum(f, 1e-9) / 1000) * 27 / np.log(6.4), 3 * f / 200)

    def to_hz(m):
        return np.where(m >= 15, 1000 * np.exp(np.log(6.4) / 27 * (m - 15)), 200 * m / 3)

    bins = np.linspace(0, RATE_HZ / 2, fft // 2 + 1)
    edges = to_hz(np.linspace(to_mel(np.float64(0)), to_mel(np.float64(RATE_HZ / 2)), bands + 2))
    width, slope = np.diff(edges), edges[:, None] - bins[None]
    bank = np.maximum(0, np.minimum(-slope[:-2] / width[:-1, None], slope[2:] / width[1:, None]))
    return (bank * (2 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)


_FILTERS, _WINDOW = _mel_filters(), np.hanning(401)[:-1].astype(np.float32)


def log_mel(x):
    """float32 mono 16 kHz -> [frames, 80] and the value of a padded frame: the head of the features of the zero-padded 30 s clip."""
    count = max(1, int(np.ceil(len(x) / 160)))
    x = np.concatenate([x, np.zeros(count * 160 - len(x) + 400, np.float32)])
    x = np.concatenate([x[1:201][::-1], x])
    frames = np.lib.stride_tricks.sliding_window_view(x, 400)[::160][:count] * _WINDOW
    power = np.abs(np.fft.rfft(frames, axis=1)).astype(np.float32) ** 2
    log = np.log10(np.maximum(power @ _FILTERS.T, 1e-10))
    floor = max(max(log.max(), -10.0) - 8, -10.0)
    return (np.maximum(log, floor) + 4) / 4, (floor + 4) / 4
