"""Music for the voice-activity detector: pieces drawn at random, played by fluidsynth with recorded instruments. The melodies of sounds.py are
computed; real instruments swell, breathe and blur into each other, and a detector that has not heard them takes half of all music for speech.

  apt-get install fluidsynth fluid-soundfont-gm
  python3 -m turns.music work/music --pieces 220
"""
import argparse
import random
import struct
import subprocess
import tempfile
from pathlib import Path

from turns.features import RATE_HZ

SOUNDFONT = "/usr/share/sounds/sf2/FluidR3_GM.sf2"
TICKS = 96  # of a beat
DRUMS = 9
# General MIDI: voices ("aahs", "oohs", synthetic ones) are left out, and sound effects, of which some are voices.
VOICES = {52, 53, 54, 85, 91}
PROGRAMS = [p for p in range(120) if p not in VOICES]
SCALES = [[0, 2, 4, 5, 7, 9, 11], [0, 2, 3, 5, 7, 8, 10], [0, 2, 4, 7, 9], [0, 3, 5, 7, 10], [0, 2, 3, 5, 7, 9, 10]]


def variable(value):
    """A number as MIDI files write it: seven bits a byte, the highest first."""
    out = [value & 127]
    while value := value >> 7:
        out.insert(0, 128 | value & 127)
    return bytes(out)


def track(events, tempo_us):
    """events: (tick, bytes) in any order"""
    body, now = variable(0) + b"\xff\x51\x03" + struct.pack(">I", tempo_us)[1:], 0
    for tick, data in sorted(events, key=lambda event: event[0]):
        body += variable(tick - now) + data
        now = tick
    body += variable(TICKS) + b"\xff\x2f\x00"
    return b"MThd" + struct.pack(">IHHH", 6, 0, 1, TICKS) + b"MTrk" + struct.pack(">I", len(body)) + body


def notes(events, channel, begin, length, pitches, velocity):
    for pitch in pitches:
        if 0 <= pitch < 128:
            events.append((begin, bytes([0x90 | channel, pitch, velocity])))
            events.append((begin + max(1, length), bytes([0x80 | channel, pitch, 0])))


def piece(r, seconds):
    """-> a MIDI file: melody, chords, bass and drums, each or not"""
    bpm = r.uniform(55, 175)
    beats = int(seconds * bpm / 60)
    scale, root = r.choice(SCALES), r.randrange(12)
    step = lambda degree, octave: 12 * (octave + degree // len(scale)) + root + scale[degree % len(scale)]  # noqa: E731
    events = []
    parts = [part for part, share in [("melody", 0.8), ("chords", 0.65), ("bass", 0.5), ("drums", 0.45)] if r.random() < share] or ["melody"]
    for channel, part in enumerate(parts):
        channel = DRUMS if part == "drums" else channel
        program = r.choice(range(32, 40)) if part == "bass" else r.choice(PROGRAMS)
        events.append((0, bytes([0xC0 | channel, program])))
        events.append((0, bytes([0xB0 | channel, 7, r.randrange(60, 128)])))  # volume
        events.append((0, bytes([0xB0 | channel, 91, r.randrange(0, 128)])))  # reverberation
        loud = r.randrange(50, 120)
        if part == "drums":
            pattern = [(r.choice([36, 38, 42, 46, 49, 54, 56, 70, 75]), r.choice([0.5, 1, 1, 2, 4]), r.choice([0, 0, 0.5, 1])) for _ in range(r.randrange(1, 5))]
            for pitch, every, late in pattern:
                at = late
                while at < beats:
                    notes(events, channel, int(at * TICKS), TICKS // 4, [pitch], max(1, min(127, loud + r.randrange(-25, 25))))
                    at += every
            continue
        at, degree = 0.0, r.randrange(7)
        octave = {"melody": r.choice([4, 5, 6]), "chords": r.choice([4, 5]), "bass": r.choice([2, 3])}[part]
        pace = {"melody": [0.25, 0.5, 0.5, 1, 1, 2, 4], "chords": [1, 2, 4, 4], "bass": [0.5, 1, 1, 2, 4]}[part]
        while at < beats:
            long = r.choice(pace)
            degree = max(-7, min(14, degree + r.choice([-3, -2, -1, -1, 0, 1, 1, 2, 3])))
            pitches = [step(degree + third, octave) for third in (0, 2, 4)] if part == "chords" else [step(degree, octave)]
            if r.random() < 0.9:
                notes(events, channel, int(at * TICKS), int(long * TICKS * r.choice([0.5, 0.95, 1.05])), pitches, max(1, min(127, loud + r.randrange(-15, 15))))
            at += long
    return track(events, int(60e6 / bpm))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--pieces", type=int, default=220)
    parser.add_argument("--seconds", type=float, default=25)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    r = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        for i in range(options.pieces):
            midi = Path(scratch) / "piece.mid"
            midi.write_bytes(piece(r, options.seconds))
            command = ["fluidsynth", "-ni", "-q", "-g", "0.6", "-r", "48000", "-F", f"{scratch}/piece.wav", SOUNDFONT, str(midi)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            subprocess.run(["sox", f"{scratch}/piece.wav", "-c", "1", "-r", str(RATE_HZ), "-b", "16", str(options.folder / f"{i:03d}.wav")], check=True)


if __name__ == "__main__":
    main()
