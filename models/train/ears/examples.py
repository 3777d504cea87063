"""From shards to batches: what the trainer feeds and what it expects. Everything random comes from the `r` that is passed in."""
import pickle
from dataclasses import dataclass

import numpy as np
import torch

from ears.features import (
    END, FIRST_TIMESTAMP, LANGUAGES, LANGUAGE_TOKENS, NO_SPEECH, NO_TIMESTAMPS, START, START_OF_PREVIOUS, TRANSCRIBE, encode, timestamp,
)
from ears.network import FRAME_SECONDS

IGNORED = -100


@dataclass
class Clip:
    mel: np.ndarray  # the whole shard, uint8 [frames,80], memory-mapped
    first: int
    last: int
    facts: dict

    @property
    def frames(self):
        return self.last - self.first

    def features(self):
        """float32 [frames,80]"""
        return self.facts["pad"] + self.mel[self.first : self.last].astype(np.float32) / 127.5


def load_clips(folder, pattern):
    clips = []
    for path in sorted(folder.glob(f"meta-{pattern}.pkl")):
        offsets, facts = pickle.loads(path.read_bytes())
        mel = np.load(path.with_name(path.name.replace("meta", "mel").replace(".pkl", ".npy")), mmap_mode="r")
        clips += [Clip(mel, int(offsets[i]), int(offsets[i + 1]), f) for i, f in enumerate(facts)]
    return clips


def padded(clips, frames=0):
    """[B,80,T], T a multiple of 4"""
    longest = (max([frames] + [c.frames for c in clips]) + 3) // 4 * 4
    x = np.empty((len(clips), longest, 80), np.float32)
    for i, clip in enumerate(clips):
        x[i] = clip.facts["pad"]
        x[i, : clip.frames] = clip.features()
    return torch.from_numpy(x).transpose(1, 2)


def byte_times(facts):
    """Seconds at which every byte of the clip's text, a token, is spoken: those of its character."""
    if "times" not in facts:
        lengths = [len(character.encode()) for character in facts["text"]]
        facts["times"] = np.repeat(_character_times(facts), lengths).astype(np.float32)
    return facts["times"]


def _character_times(facts):
    """Linear inside a word, which ends where the next one begins."""
    out, ends, at = np.zeros(len(facts["text"]), np.float32), [], 0
    for text, _, end in facts["segments"]:
        at += len(text)
        ends.append((at, end))
    words = [w for w in facts["words"] if w[2] > 0]  # espeak also reports an empty word at the end
    for k, (start, first, length) in enumerate(words):
        last, end = next((e for e in ends if e[0] > first), ends[-1])
        if k + 1 < len(words) and words[k + 1][1] < last:
            last, end = words[k + 1][1], words[k + 1][0]
        share = (np.minimum(np.arange(last - first), length - 1) + 0.5) / max(1, length)
        out[first:last] = start + share * (max(end, start) - start)
    return np.maximum.accumulate(out)


def _target(facts, stamped, prompt, said):
    """`said`: the language that the decoder is told. -> input ids, labels, the time at which every label is spoken (-1: none)"""
    lead = [START_OF_PREVIOUS] + encode(prompt) if prompt else []
    times = byte_times(facts) if facts["text"] else []
    body, when, at = [], [], 0
    if not facts["text"]:
        body, when = ([FIRST_TIMESTAMP], [-1.0]) if stamped else ([], [])
    elif not stamped:
        body, when = encode(facts["text"]), list(times)
    else:
        for text, start, end in facts["segments"]:
            tokens = encode(text)
            body += [timestamp(start)] + tokens + [timestamp(end)]
            when += [start] + list(times[at : at + len(tokens)]) + [end]
            at += len(tokens)
    told = LANGUAGE_TOKENS[said]
    ids = lead + [START, told, TRANSCRIBE] + ([] if stamped else [NO_TIMESTAMPS]) + body
    labels, skip = ids[1:] + [END], len(lead)
    for k, label in enumerate(labels):
        if k < skip or (label in (TRANSCRIBE, NO_TIMESTAMPS) and k > skip):
            labels[k] = IGNORED
    labels[skip] = LANGUAGE_TOKENS[facts["language"]] if facts["text"] else NO_SPEECH
    return ids, labels, [-1.0] * (len(ids) - len(body) - 1) + when + [-1.0]


@dataclass
class Batch:
    features: torch.Tensor   # [B,80,T]
    ids: torch.Tensor        # [B,L]
    labels: torch.Tensor     # [B,L]
    times: torch.Tensor      # [B,L], seconds, -1: none
    phonemes: torch.Tensor   # [B,T/4]
    counts: torch.Tensor     # [B,T/4]: bytes spoken so far

    def to(self, device):
        return Batch(*(x.to(device) for x in self.__dict__.values()))


def collate(clips, more_frames, stamped, prompts, r, corrupt, mistaken):
    """corrupt: share of the decoder's input bytes that are replaced by others of the clip, so that it learns to listen. mistaken: share of clips
    whose language the decoder is told wrongly, so that it writes what was said also then."""
    features = padded(clips, max(c.frames for c in clips) + more_frames)
    n = features.shape[2] // 4
    phonemes, counts, rows = np.zeros((len(clips), n), np.int64), np.zeros((len(clips), n), np.float32), []
    for i, clip in enumerate(clips):
        facts = clip.facts
        labels = facts["phonemes"][:n]
        phonemes[i, : len(labels)] = labels
        if facts["text"]:
            times = byte_times(facts)
            counts[i] = np.interp(np.arange(n) * FRAME_SECONDS, times, np.arange(1, len(times) + 1), left=0)
        said = r.choice(LANGUAGES) if r.random() < mistaken else facts["language"]
        rows.append(_target(facts, stamped, prompts[i] if prompts else "", said))
    longest = max(len(ids) for ids, _, _ in rows)
    shape = (len(rows), longest)
    ids, labels, times = torch.full(shape, END), torch.full(shape, IGNORED), torch.full(shape, -1.0)
    for i, (row, wanted, when) in enumerate(rows):
        heard = [r.choice(row) if t < 256 and r.random() < corrupt else t for t in row]
        heard = [h if t < 256 and h < 256 else t for t, h in zip(row, heard)]
        ids[i, : len(row)], labels[i, : len(row)], times[i, : len(row)] = map(torch.tensor, (heard, wanted, when))
    return Batch(features, ids, labels, times, torch.from_numpy(phonemes), torch.from_numpy(counts))


def epoch(clips, r, frames, most):
    """Batches of indices, of similar length and about `frames` frames each, in random order."""
    order, out = list(range(len(clips))), []
    r.shuffle(order)
    for k in range(0, len(order), 600):
        row = []
        for i in sorted(order[k : k + 600], key=lambda i: clips[i].frames):
            if row and (clips[i].frames * (len(row) + 1) > frames or len(row) == most):
                out.append(row)
                row = []
            row.append(i)
        out.append(row)
    r.shuffle(out)
    return out
