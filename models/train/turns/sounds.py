"""Sounds that are not speech, for training: each function takes a number of samples (16 kHz) and a numpy RandomState, and returns
float32 of a peak near 1. The benches make theirs in TypeScript, of other kinds and with other code (bench/turns/Sounds.ts).
"""
import wave
from pathlib import Path

import numpy as np
from scipy.signal import butter, fftconvolve, lfilter

HZ = 16000


def _peak(x):
    return (x / max(1e-6, float(np.abs(x).max()))).astype(np.float32)


def _band(x, low, high):
    b, a = butter(2, [max(20, low) / (HZ / 2), min(7900, high) / (HZ / 2)], "band")
    return lfilter(b, a, x)


def _decay(n, seconds):
    return np.exp(-np.arange(n) / (seconds * HZ))


def coloured(n, z):
    """White to brown noise: a random slope."""
    spectrum = np.fft.rfft(z.standard_normal(n))
    f = np.maximum(1, np.arange(len(spectrum)))
    return _peak(np.fft.irfft(spectrum * f ** -z.uniform(0, 1.3), n))


def banded(n, z):
    low = z.uniform(50, 4000)
    return _peak(_band(z.standard_normal(n), low, low * z.uniform(1.3, 6)))


def hum(n, z):
    t = np.arange(n) / HZ
    f = z.choice([50, 60, 100, 120]) * z.uniform(0.99, 1.01)
    x = sum(z.uniform(0, 1) / k * np.sin(2 * np.pi * f * k * t + z.uniform(0, 6)) for k in range(1, z.randint(3, 20)))
    return _peak(x + z.uniform(0, 0.1) * z.standard_normal(n))


def fan(n, z):
    t = np.arange(n) / HZ
    x = coloured(n, z) * (1 + z.uniform(0, 0.6) * np.sin(2 * np.pi * z.uniform(2, 30) * t))
    f = z.uniform(80, 400)
    for k in range(1, 5):
        x = x + z.uniform(0, 0.1) * np.sin(2 * np.pi * f * k * t)
    return _peak(x)


def babble(n, z):
    """The spectrum and the slow rise and fall of a crowd, without a voice in it."""
    x = _band(z.standard_normal(n), 150, z.uniform(2500, 5000)) + 0.5 * _band(z.standard_normal(n), 200, 900)
    slow = lfilter(*butter(2, z.uniform(3, 8) / (HZ / 2)), z.standard_normal(n))
    return _peak(x * np.maximum(0.1, 1 + z.uniform(0.2, 0.9) * slow / max(1e-9, slow.std())))


def clicks(n, z):
    """Keys, mouse buttons, pens: short bursts, alone or in runs of two."""
    x = np.zeros(n)
    at = z.uniform(0, 0.3)
    gap = z.uniform(0.06, 0.5)
    while at * HZ < n - 10:
        for late in (0, z.uniform(0.02, 0.12)):
            length = int(z.uniform(0.002, 0.05) * HZ)
            burst = _band(z.standard_normal(length + 60), z.uniform(200, 3000), z.uniform(3500, 7800)) * _decay(length + 60, z.uniform(0.001, 0.012))
            start = int((at + late) * HZ)
            burst = burst[: max(0, n - start)]
            x[start : start + len(burst)] += burst * z.uniform(0.3, 1)
        at += gap * z.uniform(0.4, 1.8)
    return _peak(x)


def thuds(n, z):
    """Doors, steps, something put on a table: a low resonance and a noisy attack."""
    x = np.zeros(n)
    at = z.uniform(0, 0.5)
    while at * HZ < n - 400:
        start, length = int(at * HZ), int(z.uniform(0.1, 0.7) * HZ)
        t = np.arange(length) / HZ
        hit = _band(z.standard_normal(length), 60, z.uniform(600, 4000)) * _decay(length, z.uniform(0.01, 0.12))
        for _ in range(z.randint(1, 5)):
            hit = hit + z.uniform(0.2, 2) * np.sin(2 * np.pi * z.uniform(50, 700) * t) * _decay(length, z.uniform(0.02, 0.15))
        hit = hit[: n - start]
        x[start : start + len(hit)] += hit * z.uniform(0.3, 1)
        at += z.uniform(0.2, 2.5)
    return _peak(x)


def breath(n, z):
    x, at = np.zeros(n), z.uniform(0, 0.5)
    while at * HZ < n - 400:
        start, length = int(at * HZ), int(z.uniform(0.15, 1.3) * HZ)
        shape = np.sin(np.pi * np.linspace(0, 1, length)) ** z.uniform(0.5, 2)
        puff = _band(z.standard_normal(length), z.uniform(100, 900), z.uniform(1500, 7500)) * shape
        puff = puff[: n - start]
        x[start : start + len(puff)] += puff * z.uniform(0.4, 1)
        at += z.uniform(0.4, 2)
    return _peak(x)


def _note(n, f, z, timbre):
    t = np.arange(n) / HZ
    wobble = 1 + timbre["vibrato"] * np.sin(2 * np.pi * timbre["rate"] * t + z.uniform(0, 6))
    phase = 2 * np.pi * np.cumsum(f * wobble) / HZ
    x = np.zeros(n)
    for k, a in enumerate(timbre["partials"], 1):
        if f * k < 7800:
            x += a * np.sin(k * phase + z.uniform(0, 6))
    attack = np.minimum(1, t / timbre["attack"])
    end = np.minimum(1, (n - np.arange(n)) / (0.02 * HZ))
    return x * attack * end * (_decay(n, timbre["decay"]) if timbre["decay"] < 3 else 1)


def _timbre(z):
    return dict(
        partials=[z.uniform(0.1, 1) * k ** -z.uniform(0.2, 2) for k in range(1, z.randint(2, 16))], attack=z.uniform(0.002, 0.08),
        decay=z.choice([z.uniform(0.05, 1.0), 9]), vibrato=z.choice([0, z.uniform(0, 0.02)]), rate=z.uniform(3, 8),
    )


def music(n, z):
    """A melody, chords, a bass and drums, each or not."""
    x = np.zeros(n)
    beat = z.uniform(0.12, 0.6)
    scale = np.array(z.choice([0, 1])) * 0 + np.array([0, 2, 4, 5, 7, 9, 11, 12, 14, 16]) if z.rand() < 0.6 else np.array([0, 3, 5, 7, 10, 12, 15])
    root = 110 * 2 ** (z.randint(0, 24) / 12)
    parts = []
    if z.rand() < 0.75:
        parts.append((1, z.choice([1, 2, 4]), z.choice([1, 0.5, 2])))
    if z.rand() < 0.6:
        parts.append((z.randint(2, 5), 1, z.choice([2, 4])))
    if z.rand() < 0.4:
        parts.append((1, 0.5, z.choice([1, 2])))
    for voices, octave, beats in parts or [(1, 1, 1)]:
        timbre, at, loud = _timbre(z), 0.0, z.uniform(0.3, 1)
        while at * HZ < n - 200:
            seconds = beat * beats * z.choice([0.5, 1, 1, 2])
            length = min(n - int(at * HZ), int(seconds * HZ * z.uniform(0.6, 1.05)))
            if z.rand() < 0.85 and length > 200:
                for step in z.choice(scale, voices):
                    x[int(at * HZ) : int(at * HZ) + length] += loud * _note(length, root * octave * 2 ** (step / 12), z, timbre)
            at += seconds
    if z.rand() < 0.5:
        drums = np.zeros(n)
        at, k = 0.0, 0
        while at * HZ < n - 200:
            start, length = int(at * HZ), min(n - int(at * HZ), int(0.25 * HZ))
            t = np.arange(length) / HZ
            if k % 2 == 0:
                hit = np.sin(2 * np.pi * (45 * t + 30 * (1 - np.exp(-t * 30)) / 6)) * _decay(length, 0.08)
            else:
                hit = z.standard_normal(length) * _decay(length, z.uniform(0.01, 0.1))
            drums[start : start + length] += hit
            at += beat * z.choice([0.5, 1, 1])
            k += 1
        x = x + drums * z.uniform(0.3, 1.5) * max(0.2, float(np.abs(x).max()) / 3)
    return _peak(x)


def tones(n, z):
    """Beeps, dial tones, telephone keys, alarms, sweeps; some clipped to squares."""
    x, at = np.zeros(n), z.uniform(0, 0.3)
    low, high = [697, 770, 852, 941], [1209, 1336, 1477, 1633]
    kind = z.randint(4)
    f0, on, off = z.uniform(200, 3500), z.uniform(0.04, 0.6), z.uniform(0.03, 0.6)
    while at * HZ < n - 100:
        start, length = int(at * HZ), int(on * HZ)
        length = min(length, n - start)
        t = np.arange(length) / HZ
        if kind == 0:
            tone = np.sin(2 * np.pi * z.choice(low) * t) + np.sin(2 * np.pi * z.choice(high) * t)
        elif kind == 1:
            tone = np.sin(2 * np.pi * f0 * t)
        elif kind == 2:
            tone = np.sin(2 * np.pi * f0 * (t + z.uniform(-0.6, 0.6) * t * t))
        else:
            tone = np.sin(2 * np.pi * (350 if f0 < 1500 else 440) * t) + np.sin(2 * np.pi * 480 * t)
        x[start : start + length] += tone
        at += on + off * z.uniform(0.8, 1.2)
    if z.rand() < 0.4:
        x = np.clip(x * z.uniform(1.5, 20), -1, 1)
    return _peak(x)


def warbles(n, z):
    """Birds, whistles, toys, electronic rings: tones that glide or jump, smooth or as squares."""
    x, at = np.zeros(n), z.uniform(0, 0.3)
    low = z.uniform(250, 3500)
    high, jump, edges = low * z.uniform(1.05, 2.5), z.uniform(8, 40), z.rand() < 0.3
    spread = z.uniform(1, 1.5)
    while at * HZ < n - 200:
        start, length = int(at * HZ), int(z.uniform(0.03, 0.5) * HZ)
        length = min(length, n - start)
        t = np.arange(length) / HZ
        a, b = low * z.uniform(1, spread), high * z.uniform(1, spread)
        way = z.randint(3)
        glide = t / t[-1] if way == 0 else (np.floor(t * jump) % 2 if way == 1 else 0.5 + 0.5 * np.sin(2 * np.pi * jump * t))
        phase = 2 * np.pi * np.cumsum(a + (b - a) * glide) / HZ
        tone = np.sin(phase) + z.uniform(0, 0.6) * np.sin(2 * phase) + z.uniform(0, 0.4) * np.sin(3 * phase)
        if edges:
            tone = np.sign(tone)
        x[start : start + length] += tone * np.sin(np.pi * np.linspace(0, 1, length)) ** z.uniform(0, 1.5)
        at += length / HZ + z.choice([0, z.uniform(0.02, 0.5)])
    return _peak(x)


def appliance(n, z):
    """Steady noise with resonances and a whine, which starts and stops."""
    x = coloured(n, z)
    for _ in range(z.randint(1, 4)):
        f = z.uniform(150, 4000)
        x = x + z.uniform(0.3, 2) * _peak(_band(z.standard_normal(n), f, f * z.uniform(1.1, 1.8)))
    t = np.arange(n) / HZ
    whine = z.uniform(150, 2000)
    for k in range(1, z.randint(2, 6)):
        x = x + z.uniform(0, 1) / k * np.sin(2 * np.pi * whine * k * t + z.uniform(0, 6))
    return _peak(x)


def ringing(n, z):
    """Glasses, bells, keys, cutlery: inharmonic partials that die away."""
    x, at = np.zeros(n), z.uniform(0, 0.4)
    while at * HZ < n - 200:
        start, length = int(at * HZ), int(z.uniform(0.05, 1.2) * HZ)
        length = min(length, n - start)
        t = np.arange(length) / HZ
        hit = sum(z.uniform(0.2, 1) * np.sin(2 * np.pi * z.uniform(400, 7000) * t) * _decay(length, z.uniform(0.01, 0.4)) for _ in range(z.randint(2, 8)))
        x[start : start + length] += hit
        at += z.uniform(0.05, 1.5)
    return _peak(x)


def rustle(n, z):
    """Paper, cloth on a microphone, wind: noise in quick irregular bursts."""
    slow = np.abs(lfilter(*butter(1, z.uniform(4, 40) / (HZ / 2)), z.standard_normal(n)))
    x = _band(z.standard_normal(n), z.uniform(60, 2500), z.uniform(3000, 7800)) * (slow / slow.max()) ** z.uniform(0.7, 3)
    return _peak(x)


def motor(n, z):
    """Engines, drills, shavers: a buzz whose rate wanders."""
    rate = z.uniform(25, 250) * (1 + 0.2 * np.sin(2 * np.pi * z.uniform(0.05, 1) * np.arange(n) / HZ))
    phase = np.cumsum(rate) / HZ
    x = (phase % 1) ** z.uniform(0.5, 6) - 0.3 + z.uniform(0, 0.5) * z.standard_normal(n)
    return _peak(_band(x, z.uniform(40, 300), z.uniform(800, 7500)))


def silence(n, z):
    return (z.standard_normal(n) * z.choice([0, 1e-3, 3e-3])).astype(np.float32)


STEADY = [coloured, banded, hum, fan, babble, motor, appliance]
EVENTS = [clicks, thuds, breath, music, music, tones, ringing, rustle, silence, warbles, warbles]
ALL = STEADY + EVENTS

_pieces = []


def load_pieces(folder):
    """Music of turns.music, for `played`."""
    for path in sorted(Path(folder).glob("*.wav")):
        with wave.open(str(path)) as file:
            _pieces.append(np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768)
    # With these a quarter of the sounds is real music.
    EVENTS.extend([played] * 6)
    ALL.extend([played] * 6)


def played(n, z):
    """A part of a piece, now and then faster or slower, and as loud as that part happens to be."""
    whole = _pieces[z.randint(len(_pieces))]
    pace = z.choice([1, 1, z.uniform(0.8, 1.25)])
    length = min(len(whole), int(n * pace) + 1)
    start = z.randint(0, len(whole) - length + 1)
    part = whole[start : start + length]
    if pace != 1:
        part = np.interp(np.arange(n) * pace, np.arange(length), part)
    out = np.zeros(n, np.float32)
    out[: len(part[:n])] = part[:n]
    return _peak(out)


def room(x, z):
    """A small room: exponentially decaying noise behind the direct sound."""
    n = int(z.uniform(0.08, 0.6) * HZ)
    tail = z.standard_normal(n) * np.exp(-6.9 * np.arange(n) / n)
    tail *= z.uniform(0.15, 0.9) / np.sqrt((tail**2).sum())
    tail[:40] = 0
    tail[0] = 1
    return fftconvolve(x, tail)[: len(x)].astype(np.float32)
