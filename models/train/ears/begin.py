"""The published files -> a checkpoint, which `ears.train --init` goes on from: the weights up to the rounding to float16, without the head for
phonemes (training needs it alone) and the state of the optimiser.

  python3 -m ears.begin ../whisper-demo-en --out work/ears.pt
"""
import argparse
import json
import tempfile
from pathlib import Path

from common import torchsetup  # noqa: F401
import numpy as np
import onnx
import torch
from onnx import numpy_helper

from common import checkpoint
from ears.export import write_graphs
from ears.network import Config, Ears

def initialisers(path):
    tensors = onnx.load(str(path)).graph.initializer
    return {t.name.removesuffix("_h"): numpy_helper.to_array(t).astype(np.float32) for t in tensors}


def places_of(config):
    """Where the files keep each parameter -> {parameter: (file, tensor, whether it is transposed)}, found by exporting a network in which no two
    numbers are equal: the exporter and the merging of the branches rename most of them."""
    network, out = Ears(config).eval(), {}
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_()
    with tempfile.TemporaryDirectory() as folder:
        write_graphs(network, Path(folder))  # rounds the parameters to float16, too
        files = {name: initialisers(Path(folder) / name) for name in ("encoder_model.onnx", "decoder_model_merged.onnx")}
    for name, parameter in network.named_parameters():
        ours = parameter.detach().numpy()
        for file, tensors in files.items():
            for tensor, theirs in tensors.items():
                for turned in (False, True):
                    values = theirs.T if turned else theirs
                    if values.shape == ours.shape and np.array_equal(values, ours):
                        out.setdefault(name, (file, tensor, turned))
    return out


def read(folder):
    settings = json.loads((folder / "config.json").read_text(encoding="utf8"))
    return Config(
        d=settings["d_model"], heads=settings["encoder_attention_heads"], blocks=settings["encoder_layers"], layers=settings["decoder_layers"],
        wide=settings["decoder_ffn_dim"] // settings["d_model"],
        mels=settings["num_mel_bins"], vocabulary=settings["vocab_size"], positions=settings["max_target_positions"],
    )


def state_of(folder, config):
    files = {path.name: initialisers(path) for path in (folder / "onnx").glob("*.onnx")}
    found = {}
    for name, (file, tensor, turned) in places_of(config).items():
        values = files[file][tensor]
        found[name] = torch.from_numpy((values.T if turned else values).copy())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", required=True)
    parser.add_argument("--widen", type=int, help="give the decoder's feed-forward parts so many hidden units for each channel, the new ones without effect")
    options = parser.parse_args()
    config = read(options.folder)
    state = state_of(options.folder, config)
    network = Ears(config)
    missing = [name for name, _ in network.named_parameters() if name not in state and not name.startswith("phoneme.")]
    if missing:
        raise ValueError(f"{options.folder} lacks {', '.join(missing)}")
    network.load_state_dict({**network.state_dict(), **state})
    if options.widen:
        network.widen(options.widen)
    checkpoint.save(options.out, **network.saved())


if __name__ == "__main__":
    main()
