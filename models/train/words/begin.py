"""GGUF that export.py wrote -> checkpoint and merges, so that training can go on without the checkpoint of the run that made it.

  python3 -m words.begin ../llama-demo/llama-demo-Q8_0.gguf --out work/begin.pt --merges work/merges.json
"""
import argparse
import json
from pathlib import Path

from common import torchsetup  # noqa: F401
import torch

from common import checkpoint
from words import bpe, gguf
from words.network import Words, config_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--out", required=True)
    parser.add_argument("--merges", type=Path, required=True)
    options = parser.parse_args()
    facts, tensors = gguf.read(options.file)
    merges = [tuple(m.split(" ")) for m in facts["tokenizer.ggml.merges"]]
    tokens = bpe.Tokens(merges)
    assert tokens.vocabulary == facts["tokenizer.ggml.tokens"]
    state = {name: torch.tensor(array) for name, array in tensors.items()}
    Words(config_of(state)).load_state_dict(state)
    checkpoint.save(options.out, network=state)
    options.merges.write_text(json.dumps(merges), encoding="utf8")
    print(options.out, len(tokens.vocabulary), "tokens")


if __name__ == "__main__":
    main()
