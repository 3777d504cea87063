"""Features of the voice-activity detector, in numpy: the product computes the same in src/domain/activity/BandEnergies.ts."""
import numpy as np

RATE_HZ = 16000
HOP = 160          # 10 ms
WINDOW = 400       # 25 ms, the newest samples
FFT = 512
BANDS = 32
LOW_HZ, HIGH_HZ = 60, 7600
FLOOR = 1e-9       # power of a band, of samples in [-1, 1]: below -90 dB everything is silence


def _filters():
    """Triangles, evenly spaced in mel (HTK), each of sum 1."""
    mel = lambda f: 2595 * np.log10(1 + f / 700)  # noqa: E731
    edges = 700 * (10 ** (np.linspace(mel(LOW_HZ), mel(HIGH_HZ), BANDS + 2) / 2595) - 1)
    bins = np.arange(FFT // 2 + 1) * RATE_HZ / FFT
    rise = (bins[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - bins[None]) / (edges[2:] - edges[1:-1])[:, None]
    bank = np.maximum(0, np.minimum(rise, fall))
    return (bank / bank.sum(1, keepdims=True)).astype(np.float32)


FILTERS = _filters()
_HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
_SCALE = np.float32(1 / (_HANN**2).sum())


def band_energies(x):
    """float32 mono 16 kHz -> [hops, BANDS], log10 of the mean power of a band, from -9 to about 0. Hop t ends with sample 160 (t + 1)."""
    count = len(x) // HOP
    x = np.concatenate([np.zeros(WINDOW - HOP, np.float32), x[: count * HOP]])
    frames = np.lib.stride_tricks.sliding_window_view(x, WINDOW)[::HOP][:count] * _HANN
    spectrum = np.fft.rfft(frames, FFT, axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32) * _SCALE
    return np.log10(power @ FILTERS.T + FLOOR)
