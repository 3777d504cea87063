"""What a checkpoint hears in the test clips of whisper-demo-en/eval, in PyTorch: renews `heard` and `wer` of transcripts.json, which tests
compare the engine with. The clips are padded to 30 s, as the published layout has it.

  python3 -m ears.listen work/ears.pt ../whisper-demo-en/eval
"""
import argparse
import json
import wave
from pathlib import Path

from common import torchsetup  # noqa: F401
import numpy as np
import torch

from ears.evaluate import FASTEST_CHARACTERS, distance, words
from ears.features import decode, log_mel
from ears.network import from_checkpoint

WINDOW_FRAMES = 3000


def samples_of(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def heard(network, samples):
    mel, pad = log_mel(samples)
    window = np.full((1, WINDOW_FRAMES, mel.shape[1]), pad, np.float32)
    window[0, : len(mel)] = mel[:WINDOW_FRAMES]
    ids = network.greedy(torch.from_numpy(window).transpose(1, 2), int(FASTEST_CHARACTERS * len(samples) / 16000) + 30, ["en"])
    return decode(ids[0]).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    network = from_checkpoint(options.checkpoint).eval()
    network.settle()
    for parameter in network.parameters():  # as the files store it
        parameter.data = parameter.data.half().float()
    path = options.folder / "transcripts.json"
    rows = json.loads(path.read_text(encoding="utf8"))
    wrong = total = 0
    for row in rows:
        row["heard"] = heard(network, samples_of(options.folder / row["file"]))
        said = words(row["text"])
        edits = distance(said, words(row["heard"]))
        row["wer"], wrong, total = round(edits / len(said), 3), wrong + edits, total + len(said)
        print(row["file"], row["wer"], "|", row["heard"])
    path.write_text(json.dumps(rows, indent=1), encoding="utf8")
    print(f"{wrong} of {total} words wrong")


if __name__ == "__main__":
    main()
