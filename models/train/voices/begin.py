"""The published files -> a checkpoint, which `voices.train --init` goes on from: the weights up to the rounding to float16, without the state of
the optimiser.

  python3 -m voices.begin ../kokoro-demo --out work/voices.pt
"""
import argparse
from pathlib import Path

from common import torchsetup  # noqa: F401
import onnx
import torch
from onnx import numpy_helper

from common import checkpoint
from voices.network import Synthesiser


def tensors(path):
    """Names without the mark of what is stored as float16 -> float32 tensors."""
    graph = onnx.load(str(path)).graph
    return graph, {t.name.removesuffix("_h"): torch.from_numpy(numpy_helper.to_array(t).copy()).float() for t in graph.initializer}


def state_of(folder):
    graph, found = tensors(folder / "model.onnx")
    found.update(tensors(folder / "style_encoder.onnx")[1])
    # The exporter folds the transposition of a Linear's weight into a tensor of another name: it is found by its use.
    for node in graph.node:
        for layer in ("position", "frame_out"):
            if node.op_type == "MatMul" and node.output[0] == f"/{layer}/MatMul_output_0":
                found[f"network.{layer}.weight"] = found[node.input[1]].t().contiguous()
    names = Synthesiser().state_dict()
    return {name: found[f"network.{name}"].reshape(values.shape) for name, values in names.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    checkpoint.save(options.out, network=state_of(options.folder))


if __name__ == "__main__":
    main()
