"""24 kHz speech -> vocoder parameters, one frame every 10 ms (numpy). What the synthesiser learns to predict."""
from dataclasses import dataclass

import numpy as np

RATE_HZ, HOP, BANDS = 24000, 240, 80
LAGS = np.unique(np.round(np.geomspace(RATE_HZ / 400, RATE_HZ / 62, 64)).astype(int))  # of the style encoder's autocorrelation
LOW_BINS = 214          # below 2.5 kHz in a 2048-point transform
FLOOR = 1e-8            # of the power in a band, -80 dB: at -60 half of what some voices have above 4 kHz was lost
ENVELOPE_WINDOW = np.hanning(361)[:-1].astype(np.float32)   # 15 ms
PITCH_WINDOW = np.hanning(961)[:-1].astype(np.float32)      # 40 ms
_FFT_ENVELOPE, _FFT_PITCH, _LAG_COUNT = 1024, 2048, 480
_window_correlation = np.fft.irfft(np.abs(np.fft.rfft(PITCH_WINDOW, _FFT_PITCH)) ** 2)[:_LAG_COUNT]
WINDOW_CORRELATION = _window_correlation / _window_correlation[0]


def to_mel(hz):
    return 2595 * np.log10(1 + hz / 700)


def to_hz(mel):
    return 700 * (10 ** (mel / 2595) - 1)


def _mel_bands(top_hz=11025):
    edges = to_hz(np.linspace(0, to_mel(top_hz), BANDS + 2))
    bins = np.linspace(0, RATE_HZ / 2, _FFT_ENVELOPE // 2 + 1)
    width, slope = np.diff(edges), edges[:, None] - bins
    bank = np.maximum(0, np.minimum(-slope[:-2] / width[:-1, None], slope[2:] / width[1:, None]))
    return (bank / np.maximum(1e-9, bank.sum(1, keepdims=True))).astype(np.float32)


MEL_BANDS = _mel_bands()


@dataclass
class Frames:
    envelope: np.ndarray   # float16 [T,80], natural log of power
    pitch: np.ndarray      # float32 [T], Hz
    voicing: np.ndarray    # float16 [T,2], below 2.5 kHz and above 3 kHz
    correlation: np.ndarray  # float16 [T,len(LAGS)]
    median_hz: float


def _windows(x, length, hop, count, offset):
    padded = np.pad(x, (length, length + hop * 12))
    return np.lib.stride_tricks.sliding_window_view(padded, length)[offset + length - length // 2 :: hop][:count]


def _track(correlation, low, high):
    """The first autocorrelation peak near the maximum, refined by a parabola -> F0, strength, lag."""
    low, high = max(low, 2), min(high, correlation.shape[1] - 2)
    inside = correlation[:, low:high]
    strength = inside.max(1)
    peak = (
        (inside >= 0.92 * strength[:, None])
        & (inside >= correlation[:, low - 1 : high - 1])
        & (inside >= correlation[:, low + 1 : high + 1])
    )
    lag, rows = np.argmax(peak, 1) + low, np.arange(len(correlation))
    a, b, c = correlation[rows, lag - 1], correlation[rows, lag], correlation[rows, lag + 1]
    shift = np.clip(0.5 * (a - c) / np.minimum(a - 2 * b + c, -1e-9), -0.5, 0.5)
    return RATE_HZ / (lag + shift), strength, lag


def analyse(x, count, median_hz=None):
    """`count` frames. F0 is tracked twice, over 60-420 Hz for the median, then within 0.6-1.7 x the median, which removes octave errors."""
    envelope_windows = _windows(x, 360, 120, 2 * count + 2, -120) * ENVELOPE_WINDOW
    power = np.abs(np.fft.rfft(envelope_windows, _FFT_ENVELOPE, axis=1)).astype(np.float32) ** 2 @ MEL_BANDS.T
    smooth = 0.25 * power[0 : 2 * count : 2] + 0.5 * power[1 : 2 * count + 1 : 2] + 0.25 * power[2 : 2 * count + 2 : 2]
    envelope = np.log(FLOOR + smooth / (ENVELOPE_WINDOW**2).sum())

    spectrum = np.abs(np.fft.rfft(_windows(x, 960, HOP, count, 0) * PITCH_WINDOW, _FFT_PITCH, axis=1)).astype(np.float32) ** 2
    frequencies = np.linspace(0, RATE_HZ / 2, _FFT_PITCH // 2 + 1)

    def correlation_of(bins):
        a = np.fft.irfft(spectrum * bins, axis=1)[:, :_LAG_COUNT]
        return a / np.maximum(a[:, :1], 1e-9) / WINDOW_CORRELATION

    low = correlation_of(np.arange(len(frequencies)) < LOW_BINS)
    high = correlation_of((frequencies >= 3000) & (frequencies < 9000))
    pitch, strength, _ = _track(low, RATE_HZ // 420, RATE_HZ // 60)
    energy = spectrum.sum(1)
    if median_hz is None:
        voiced = (strength > 0.7) & (energy > 1e-3 * energy.max())
        median_hz = float(np.median(pitch[voiced])) if voiced.sum() > 5 else 130.0
    pitch, strength, lag = _track(low, int(RATE_HZ / (1.7 * median_hz)), int(RATE_HZ / (0.6 * median_hz)))
    voicing_low = np.clip(strength, 0, 1)
    voicing_low[energy < 1e-4 * energy.max()] = 0
    near = [high[np.arange(count), np.clip(lag + k, 1, _LAG_COUNT - 1)] for k in (-2, -1, 0, 1, 2)]
    voicing_high = np.clip(np.stack(near).max(0), 0, 1)
    pitch = np.median(np.stack([np.roll(pitch, -1), pitch, np.roll(pitch, 1)]), 0)
    return Frames(
        envelope.astype(np.float16), pitch.astype(np.float32), np.stack([voicing_low, voicing_high], 1).astype(np.float16),
        low[:, LAGS].clip(-1, 1.5).astype(np.float16), median_hz,
    )
