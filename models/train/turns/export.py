"""Writes the weights of the voice-activity network as a safetensors file (float32, little-endian), their checksum, and what PyTorch
computes for an evaluation clip, for the tests.

  python3 -m turns.export work/turns/activity.pt ../turns-demo
"""
import argparse
import hashlib
import json
import struct
import wave
from pathlib import Path

from common import torchsetup  # noqa: F401
import numpy as np
import torch

from turns.features import band_energies
from turns.network import Activity

CLIP = Path(__file__).resolve().parents[2] / "whisper-demo-en" / "eval" / "01-en-us.wav"
EVERY = 10  # hops between the values of the reference


def safetensors(tensors):
    """{name: float32 array} -> bytes: length of the header, header as JSON, values."""
    header, data = {}, b""
    for name, values in sorted(tensors.items()):
        raw = values.astype("<f4").tobytes()
        header[name] = dict(dtype="F32", shape=list(values.shape), data_offsets=[len(data), len(data) + len(raw)])
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shift", type=float, default=0.8, help="taken from the output's logit: a threshold of 0.5 is a probability of 0.69")
    options = parser.parse_args()
    state = torch.load(options.checkpoint)
    state["out.bias"] -= options.shift
    data = safetensors({name: value.numpy() for name, value in state.items()})
    (options.out / "activity.safetensors").write_bytes(data)
    (options.out / "SHA256SUMS").write_text(f"{hashlib.sha256(data).hexdigest()}  activity.safetensors\n")
    network = Activity()
    network.load_state_dict(state)
    with wave.open(str(CLIP)) as file:
        x = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    with torch.no_grad():
        p = torch.sigmoid(network(torch.from_numpy(band_energies(x))[None]))[0, ::EVERY]
    reference = dict(every=EVERY, probabilities=[round(float(v), 5) for v in p])
    (options.out / "reference.json").write_text(json.dumps(reference) + "\n")
    print(f"{sum(value.numel() for value in state.values())} parameters, {len(data)} bytes")


if __name__ == "__main__":
    main()
