"""What happens to speech between a mouth and a model: resampling, noise, a room, a narrow microphone. Deterministic from the generators
that are passed in (`r`: random.Random, `z`: numpy RandomState).
"""
import wave

import numpy as np
from scipy.signal import fftconvolve, resample_poly

_RATIOS = {(22050, 16000): (320, 441), (24000, 16000): (2, 3), (22050, 24000): (160, 147)}


def resample(x, from_hz, to_hz):
    if from_hz == to_hz:
        return x.astype(np.float32)
    return resample_poly(x, *_RATIOS[(from_hz, to_hz)]).astype(np.float32)


def noise(count, rate_hz, r, z):
    """White, dull, low or humming noise of power 1."""
    x = z.standard_normal(count + 64).astype(np.float32)
    q = r.random()
    if q < 0.35:
        x = np.convolve(x, np.array([0.4, 0.3, 0.2, 0.1], np.float32), "same")
    elif q < 0.55:
        x = np.cumsum(x - x.mean()).astype(np.float32)
        x -= np.convolve(x, np.ones(63, np.float32) / 63, "same")
    elif q < 0.65:
        hum = np.sin(np.arange(count + 64) * 2 * np.pi * r.choice([50, 60, 100, 120, 440]) / rate_hz)
        x = 0.3 * x + 2 * hum.astype(np.float32)
    return x[:count] / max(1e-6, x[:count].std())


def with_noise(x, decibels, rate_hz, r, z):
    """At this ratio of signal to noise."""
    power = float((x**2).mean())
    return x + noise(len(x), rate_hz, r, z) * np.float32(np.sqrt(power / 10 ** (decibels / 10)))


def with_reverberation(x, seconds, rate_hz, r, z):
    """A room: exponentially decaying noise after the direct sound; `seconds` until it has fallen by 60 dB."""
    tail = z.standard_normal(int(seconds * rate_hz)).astype(np.float32)
    tail *= np.exp(-6.9 * np.arange(len(tail)) / len(tail)).astype(np.float32)
    tail *= r.uniform(0.2, 0.7) / max(1e-6, np.sqrt((tail**2).sum()))
    tail[: int(0.004 * rate_hz)] = 0
    tail[0] = 1
    return fftconvolve(x, tail)[: len(x)].astype(np.float32)


def narrow(x, r):
    """A bad microphone or line: every other sample repeated, or the treble taken away."""
    if r.random() < 0.3:
        return np.repeat(x[::2], 2)[: len(x)]
    return np.convolve(x, np.hanning(9).astype(np.float32) / 4, "same")


def write_wav(path, x, rate_hz):
    """x: float in [-1, 1] or int16, mono."""
    samples = x if x.dtype == np.int16 else np.clip(np.round(x * 32767), -32768, 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(samples.tobytes())
