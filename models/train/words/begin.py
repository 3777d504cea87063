"""GGUF that export.py wrote -> checkpoint and merges, so that training can go on without the checkpoint of the run that made it.

Tokens for the text of tools.py are added; a new token begins with the mean of the embeddings of its two parts. The tokens of the older
text stay as they are.

  python3 -m words.begin ../llama-demo/llama-demo-Q8_0.gguf --out work/begin.pt --merges work/merges.json --more 256
"""
import argparse
import json
from pathlib import Path

from common import torchsetup  # noqa: F401
import torch

from common import checkpoint
from words import bpe, gguf
from words.network import Words, config_of
from words.train import with_tool_tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--out", required=True)
    parser.add_argument("--merges", type=Path, required=True)
    parser.add_argument("--more", type=int, default=0, help="tokens to add")
    options = parser.parse_args()
    facts, tensors = gguf.read(options.file)
    merges = [tuple(m.split(" ")) for m in facts["tokenizer.ggml.merges"]]
    before = bpe.Tokens(merges)
    assert before.vocabulary == facts["tokenizer.ggml.tokens"]
    if options.more:
        merges = with_tool_tokens(merges, options.more)
    after = bpe.Tokens(merges)
    state = {name: torch.tensor(array) for name, array in tensors.items()}
    rows = dict(zip(before.vocabulary, state["token_embd.weight"]))
    for a, b in merges[len(before.merges):]:
        rows[a + b] = (rows[a] + rows[b]) / 2
    state["token_embd.weight"] = torch.stack([rows[token] for token in after.vocabulary])
    Words(config_of(state)).load_state_dict(state)
    checkpoint.save(options.out, network=state)
    options.merges.write_text(json.dumps(merges), encoding="utf8")
    print(options.out, len(after.vocabulary), "tokens; added:", " ".join(a + b for a, b in merges[len(before.merges):]))


if __name__ == "__main__":
    main()
