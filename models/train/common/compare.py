"""How far two ONNX files, or two GGUF files, are apart: tensor by tensor. Shows that an export gives the shipped file.

  python3 -m common.compare work/whisper/onnx ../whisper-demo-en/onnx
"""
import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper


def onnx_tensors(path):
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(str(path)).graph.initializer}


def compare(a, b):
    if a.read_bytes() == b.read_bytes():
        return "equal bytes"
    if a.suffix != ".onnx":
        return "other bytes"
    ours, theirs = onnx_tensors(a), onnx_tensors(b)
    shapes = sorted((str(x.shape) for x in ours.values())) == sorted(str(x.shape) for x in theirs.values())
    if set(ours) == set(theirs) and all(ours[k].shape == theirs[k].shape for k in ours):
        apart = max(float(np.abs(ours[k].astype(np.float64) - theirs[k]).max(initial=0)) for k in ours)
        return f"{len(ours)} tensors of the same names, at most {apart:.3g} apart"
    contents = {x.tobytes() for x in theirs.values()}
    same = sum(x.tobytes() in contents for x in ours.values())
    return f"{same} of {len(ours)} tensors have equal bytes (other names){'' if shapes else ', other shapes'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=Path)
    parser.add_argument("theirs", type=Path)
    options = parser.parse_args()
    if options.ours.is_file():
        return print(compare(options.ours, options.theirs))
    for path in sorted(p for p in options.ours.rglob("*") if p.is_file()):
        other = options.theirs / path.relative_to(options.ours)
        print(path.relative_to(options.ours), compare(path, other) if other.exists() else "is not there")


if __name__ == "__main__":
    main()
