"""What a checkpoint of the ears hears in the development shard: word errors by number of sentences and kind of voice, text where there is no
speech, errors of timestamps. For steering the training; the figures of the model card come from `npm run models:eval`.

  python3 -m ears.evaluate work/ears.pt work/ears
"""
import argparse
import json
import re
from pathlib import Path

from common import torchsetup  # noqa: F401
import numpy as np
import torch

from ears.examples import load_clips, padded
from ears.features import (
    END, FIRST_TIMESTAMP, LANGUAGE_TOKENS, LANGUAGES, NO_TIMESTAMPS, START, TIMESTAMP_SECONDS, TRANSCRIBE, decode,
)
from ears.network import from_checkpoint
from ears.speakers import BUILT_IN

FASTEST_CHARACTERS = 24       # a second; no person speaks faster
LATEST_FIRST_STAMP = 50       # steps: 1 s, as in generation_config.json


def words(text):
    return re.sub(r"[^\w' ]", "", text.lower()).split()


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        before, row[0] = row[:], i + 1
        for j, y in enumerate(b):
            row[j + 1] = min(before[j + 1] + 1, row[j] + 1, before[j] + (x != y))
    return row[-1]


def word_error_rate(clips, texts):
    wrong = sum(distance(words(c.facts["text"]), words(t)) for c, t in zip(clips, texts))
    return wrong / max(1, sum(len(words(c.facts["text"])) for c in clips))


def transcribe(network, clips, size=24):
    """Without timestamps -> texts"""
    order, out = sorted(range(len(clips)), key=lambda i: clips[i].frames), [""] * len(clips)
    device = next(network.parameters()).device
    for k in range(0, len(order), size):
        part = [clips[i] for i in order[k : k + size]]
        longest = max(c.frames for c in part)
        heard = network.greedy(
            padded(part, longest + 20).to(device), int(FASTEST_CHARACTERS * longest / 100) + 30, [c.facts["language"] for c in part],
        )
        for i, ids in zip(order[k : k + size], heard):
            out[i] = decode(ids).strip()
    return out


def _allowed(logits, ids):
    """Whisper's rules: a timestamp first, in pairs, never decreasing; and the most probable kind of token wins."""
    log = logits.log_softmax(-1).clone()
    log[NO_TIMESTAMPS] = -1e9
    stamps = [t for t in ids if t >= FIRST_TIMESTAMP]
    if not ids:
        log[:FIRST_TIMESTAMP] = -1e9
        log[FIRST_TIMESTAMP + LATEST_FIRST_STAMP + 1 :] = -1e9
    elif ids[-1] >= FIRST_TIMESTAMP:
        if len(ids) == 1 or ids[-2] >= FIRST_TIMESTAMP:
            log[FIRST_TIMESTAMP:] = -1e9
        else:
            log[:END] = -1e9
    if stamps:
        log[FIRST_TIMESTAMP : stamps[-1]] = -1e9
    if log[FIRST_TIMESTAMP:].logsumexp(0) > log[:FIRST_TIMESTAMP].max():
        log[:FIRST_TIMESTAMP] = -1e9
    return log


@torch.no_grad()
def segments(network, clip):
    """With timestamps -> [(text, start, end)]"""
    d = network.decoder
    table, device = d.table(), next(network.parameters()).device
    cross = d.cross(network.encoder(padded([clip], clip.frames + 40).to(device)))
    logits, past = d.step(torch.tensor([[START, LANGUAGE_TOKENS[clip.facts["language"]], TRANSCRIBE]], device=device), cross, None, table)
    ids, out, start, text = [], [], None, []
    for _ in range(int(FASTEST_CHARACTERS * clip.frames / 100) + 60):
        token = int(_allowed(logits[0, -1], ids).argmax())
        if token == END:
            break
        ids.append(token)
        logits, past = d.step(torch.tensor([[token]], device=device), cross, past, table)
    for token in ids:
        if token < FIRST_TIMESTAMP:
            text.append(token)
            continue
        seconds = (token - FIRST_TIMESTAMP) * TIMESTAMP_SECONDS
        if start is None:
            start = seconds
        else:
            out.append((decode(text), start, seconds))
            start, text = None, []
    return out


def stamp_errors(network, clips):
    """-> share of clips with the right number of segments; absolute errors of starts and of ends in those"""
    same, starts, ends = 0, [], []
    for clip in clips:
        got, wanted = segments(network, clip), clip.facts["segments"]
        if len(got) == len(wanted):
            same += 1
            starts += [abs(g[1] - w[1]) for g, w in zip(got, wanted)]
            ends += [abs(g[2] - w[2]) for g, w in zip(got, wanted)]
    return same / max(1, len(clips)), starts, ends


def report(network, clips, stamped=40):
    speaking = [c for c in clips if c.facts["text"]]
    silent = [c for c in clips if not c.facts["text"]]
    texts = dict(zip(map(id, speaking), transcribe(network, speaking)))

    def rate(chosen):
        return round(word_error_rate(chosen, [texts[id(c)] for c in chosen]), 4) if chosen else None

    def several(c):
        return len(c.facts["segments"])

    built_in = [c for c in speaking if set(c.facts["voices"]) <= set(BUILT_IN)]
    same, starts, ends = stamp_errors(network, speaking[:stamped])

    def quantile(errors, q):
        return round(float(np.percentile(errors, q)), 3) if errors else None

    return {
        "clips": len(clips), "all": rate(speaking),
        **{language: rate([c for c in speaking if c.facts["language"] == language]) for language in LANGUAGES}, "one sentence": rate([c for c in speaking if several(c) == 1]),
        "two or three": rate([c for c in speaking if 2 <= several(c) <= 3]), "four to six": rate([c for c in speaking if several(c) > 3]),
        "espeak": rate([c for c in speaking if not set(c.facts["voices"]) & set(BUILT_IN)]), "built-in": rate(built_in),
        "text without speech": sum(t != "" for t in transcribe(network, silent)), "without speech": len(silent),
        "right number of segments": round(same, 3), "start median": quantile(starts, 50), "start p90": quantile(starts, 90),
        "end median": quantile(ends, 50), "end p90": quantile(ends, 90),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("folder", type=Path, help="of data.py --development")
    parser.add_argument("--clips", type=int, default=10**6)
    options = parser.parse_args()
    network = from_checkpoint(options.checkpoint).eval()
    print(json.dumps(report(network, load_clips(options.folder, "development")[: options.clips]), indent=1))


if __name__ == "__main__":
    main()
