"""The two graphs that ship, as modules to export.

Speech: input_ids int64 [1,N], style float32 [1,256], speed float32 [1] -> waveform float32 [1,S] at 24 kHz, and durations float32 [1,N]:
the 10 ms frames of each symbol at this speed, whose sum times HOP is S. The fixed vocoder is part of it:
a band-limited pulse train and a constant noise, shaped by the predicted envelope. No random operators: equal input, equal samples.
Style: audio float32 [1,S] at 24 kHz, two seconds or more of one speaker -> style float32 [1,256].
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from voices import analysis
from voices.analysis import BANDS, HOP, RATE_HZ, to_hz, to_mel

WINDOW, FFT = 480, 768
BINS = FFT // 2 + 1
PEAK = 0.85       # -1.4 dBFS, never passed
LOUDNESS = 0.09   # -21 dBFS: the mean power of what is not pause
PAUSE = 1e-3      # of the loudest frame's power
SHORTEST = 0.5    # frames at speed 1: what is predicted shorter (stress marks, joined words) has no sound of its own


def _bands_to_bins():
    """Interpolation from band centres to linear frequency [80,BINS]."""
    centres = np.array([to_hz(to_mel(11025) * (i + 1) / (BANDS + 1)) for i in range(BANDS)])
    out = np.zeros((BANDS, BINS), np.float32)
    for k, f in enumerate(np.linspace(0, RATE_HZ / 2, BINS)):
        j = np.searchsorted(centres, f)
        if j in (0, BANDS):
            out[min(j, BANDS - 1), k] = 1
        else:
            w = (f - centres[j - 1]) / (centres[j] - centres[j - 1])
            out[j - 1, k], out[j, k] = 1 - w, w
    return out


def frame_ends(log_frames, speed):
    """Log of the frames of every symbol at speed 1 [1,N], speed [1] -> the frame where each ends [1,N]. Ends are rounded, not lengths, so
    that the whole is as long as `speed` says; at high speeds a short symbol may have no frame."""
    natural = torch.exp(torch.clamp(log_frames, max=5.0))
    natural = torch.where(natural < SHORTEST, torch.zeros_like(natural), natural)
    return torch.round(torch.cumsum(natural, 1) / speed.reshape(1, 1))


def _between(values):
    """One value a frame [1,T] -> one a sample [1,T*HOP], on straight lines."""
    following = torch.cat([values[:, 1:], values[:, -1:]], 1)
    ramp = (torch.arange(HOP).float() / HOP)[None, None]
    return (values[..., None] * (1 - ramp) + following[..., None] * ramp).reshape(1, -1)


def levelled(y):
    """Samples [1,S], S a multiple of HOP, as loud as every other voice."""
    power = (y**2).reshape(1, -1, HOP).mean(2)
    spoken = (power > PAUSE * power.max()).to(y.dtype)
    level = torch.sqrt((power * spoken).sum() / torch.clamp(spoken.sum(), min=1.0))
    y = y * (LOUDNESS / torch.clamp(level, min=0.005))
    peaks = F.max_pool1d(y.abs()[:, None], HOP, HOP)
    # Turned down around a peak, and smoothly: else one peak of a deep voice would keep it 3 dB quieter than the others.
    gain = PEAK / torch.clamp(F.max_pool1d(peaks, 3, 1, 1)[:, 0], min=PEAK)
    return y * _between(gain)


class SpeechGraph(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network
        frequencies = np.linspace(0, RATE_HZ / 2, BINS)
        # Low harmonics come up to 3 ms later: less buzz and a lower crest factor.
        lag = 2 * np.pi * 0.003 * 1500 * (1 - np.exp(-frequencies / 1500))

        def constant(name, values):
            self.register_buffer(name, torch.from_numpy(np.asarray(values, np.float32)))

        constant("to_bins", _bands_to_bins())
        constant("high_share", np.clip((frequencies - 2500) / 1500, 0, 1))
        constant("lag_cos", np.cos(lag)[None, :, None])
        constant("lag_sin", np.sin(lag)[None, :, None])
        noise = np.random.RandomState(0).randn(RATE_HZ).astype(np.float16)
        self.register_buffer("noise", torch.from_numpy(noise))

    def forward(self, input_ids, style, speed):
        hidden, log_frames = self.network.text(input_ids, style)
        ends = frame_ends(log_frames, speed)
        lengths = ends - torch.cat([torch.zeros_like(ends[:, :1]), ends[:, :-1]], 1)
        time = torch.arange(ends[0, -1].to(torch.int64)).float()
        index = (time[None, :, None] >= ends[:, None, :]).to(torch.int64).sum(2)
        start, length = torch.gather(ends - lengths, 1, index), torch.gather(lengths, 1, index)
        inside, rate = time[None] - start, speed.reshape(1, 1)
        position = torch.stack([
            inside / length.clamp(min=1.0), (inside * rate / 10).clamp(max=3.0), ((length - inside) * rate / 10).clamp(max=3.0),
            length * rate / 20,
        ], -1)
        envelope, log_pitch, voicing = self.network.frames(hidden, index, position, style)
        y = self.vocoder(envelope, torch.exp(torch.clamp(log_pitch, 3.9, 6.2)), torch.sigmoid(voicing))
        n, samples = torch.arange(y.shape[1]).float(), y.shape[1]
        y = y * torch.clamp(n / 120, max=1.0)[None] * torch.clamp((samples - 1 - n) / 240, max=1.0)[None]  # 5 ms in, 10 ms out
        return levelled(y), lengths

    def pulses(self, pitch):
        """A band-limited pulse train; the phase is wrapped once a frame, which keeps float32 exact."""
        hz = _between(pitch)
        inside = torch.cumsum(hz.reshape(1, -1, HOP) / RATE_HZ, 2)
        total = inside[..., -1]
        base = torch.cumsum(total, 1) - total
        phase = (inside + (base - torch.floor(base))[..., None]).reshape(1, -1)
        angle = (phase - torch.floor(phase)) * 2 * math.pi
        harmonics, half = torch.floor(11000 / hz), torch.sin(angle / 2)
        small = half.abs() < 1e-3
        ratio = torch.sin((harmonics + 0.5) * angle) / torch.where(small, torch.ones_like(half), half)
        return torch.where(small, harmonics, (ratio - 1) / 2) * torch.sqrt(2 * hz / 12000)

    def vocoder(self, envelope, pitch, voicing):
        pulses = self.pulses(pitch)
        samples = pulses.shape[1]
        noise = self.noise.float()[torch.arange(samples) % RATE_HZ][None]
        k, j = torch.arange(BINS).float()[:, None], torch.arange(WINDOW).float()[None]
        window = 0.5 - 0.5 * torch.cos(2 * math.pi * j / WINDOW)
        angle = 2 * math.pi / FFT * torch.fmod(k * j, FFT)
        forward = torch.cat([torch.cos(angle) * window, -torch.sin(angle) * window], 0)[:, None]
        spectra = F.conv1d(torch.cat([pulses, noise], 0)[:, None], forward, stride=HOP, padding=WINDOW // 2)[:, :, :-1]
        real, imaginary = spectra[0:1, :BINS], spectra[0:1, BINS:]
        harmonic = torch.cat([real * self.lag_cos + imaginary * self.lag_sin, imaginary * self.lag_cos - real * self.lag_sin], 1)
        gain = torch.exp(0.5 * (envelope @ self.to_bins)).transpose(1, 2)
        low, both = voicing[..., 0:1], voicing[..., 0:1] * voicing[..., 1:2]
        share = (low * (1 - self.high_share) + both * self.high_share).transpose(1, 2)  # of the harmonics in the power
        of_pulses, of_noise = gain * torch.sqrt(share), gain * torch.sqrt(torch.clamp(1 - share, min=0.0))
        shaped = harmonic * torch.cat([of_pulses, of_pulses], 1) + spectra[1:2] * torch.cat([of_noise, of_noise], 1)
        offset = (FFT - WINDOW) // 2
        angle = 2 * math.pi / FFT * k * (torch.arange(FFT).float()[None] - offset)
        scale = torch.where((k == 0) | (k == BINS - 1), torch.ones_like(k), 2 * torch.ones_like(k)) / FFT
        backward = torch.cat([torch.cos(angle) * scale, -torch.sin(angle) * scale], 0)[:, None]
        y = F.conv_transpose1d(shaped, backward, stride=HOP)[:, 0]
        first = offset + WINDOW // 2
        return y[:, first : first + samples]


class StyleGraph(nn.Module):
    """analysis.analyse's envelope and autocorrelation as convolutions, then the style encoder."""

    BINS_TO_11_KHZ = 471

    def __init__(self, network):
        super().__init__()
        self.network = network

        def dft(length, bins, size):
            angle = 2 * np.pi / size * np.outer(np.arange(bins), np.arange(length))
            return np.concatenate([np.cos(angle), np.sin(angle)]).astype(np.float32)

        def constant(name, values):
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)))

        window, low = analysis.ENVELOPE_WINDOW, np.arange(analysis.LOW_BINS)
        constant("envelope_dft", (dft(360, self.BINS_TO_11_KHZ, 1024) * window)[:, None])
        constant("pitch_dft", (dft(960, analysis.LOW_BINS, 2048) * analysis.PITCH_WINDOW)[:, None])
        constant("bands", analysis.MEL_BANDS[:, : self.BINS_TO_11_KHZ].T / (window**2).sum())
        sides = np.where(low == 0, 1, 2)
        cosines = np.cos(2 * np.pi * np.outer(low, analysis.LAGS) / 2048) * sides[:, None]
        constant("cosines", cosines / analysis.WINDOW_CORRELATION[analysis.LAGS])
        constant("sides", sides)

    def forward(self, audio):
        x = audio[:, None] * (0.6 / torch.clamp(audio.abs().max(), min=0.01))
        half = self.BINS_TO_11_KHZ
        p = F.conv1d(x, self.envelope_dft, stride=120, padding=180)
        p = (p[:, :half] ** 2 + p[:, half:] ** 2).transpose(1, 2) @ self.bands
        count = (audio.shape[1] // HOP) - 1
        before = torch.cat([p[:, 1:2], p[:, 1 : 2 * count - 1 : 2]], 1)
        envelope = torch.log(analysis.FLOOR + 0.5 * p[:, 0 : 2 * count : 2] + 0.25 * p[:, 1 : 2 * count + 1 : 2] + 0.25 * before)
        q = F.conv1d(x, self.pitch_dft, stride=HOP, padding=480)
        q = (q[:, : analysis.LOW_BINS] ** 2 + q[:, analysis.LOW_BINS :] ** 2).transpose(1, 2)[:, :count]
        energy = (q * self.sides).sum(2, keepdim=True)
        correlation = torch.clamp((q @ self.cosines) / torch.clamp(energy, min=1e-9), -1.0, 1.5)
        return self.network.style(envelope, correlation)
