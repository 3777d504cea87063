"""Makes the network of a checkpoint larger without changing what it says, but for rounding and a little noise: more channels, layers
and tokens. Numbers are spelled digit by digit afterwards.

What is new reads the old channels at random and writes zeros, so training begins with the old abilities. A new token begins with the mean
of the embeddings of its two parts.

  python3 -m words.grow work/begin.pt work/merges.json --out work/grown.pt --to work/grown.json --width 192 --feed-forward 512 --layers 5
"""
import argparse
import json
from pathlib import Path

from common import torchsetup  # noqa: F401
import torch

from common import checkpoint
from words import bpe
from words.network import HEAD_WIDTH, Config, Words, from_checkpoint
from words.train import texts_of_corpora, texts_of_old

NOISE = 0.02        # of the embeddings in new channels, so that these can learn


def larger(old, width, feed_forward, layers):
    """-> a network with more channels, in groups of two heads that share a key and value head, and with layers behind the old ones"""
    before = old.config
    after = Config(
        vocabulary=before.vocabulary, d=width, layers=layers, heads=width // HEAD_WIDTH, kv_heads=width // HEAD_WIDTH // 2,
        feed_forward=feed_forward,
    )
    network, scale = Words(after), (before.d / width) ** 0.5
    state, former = network.state_dict(), old.state_dict()
    for name, new in state.items():
        one = former.get(name)
        if one is None:
            continue        # of a new layer, which begins by adding zeros
        if one.ndim == 1:
            new[:] = one.mean() * scale
            new[: before.d] = one * scale
        elif name == "token_embd.weight":
            new.normal_(std=NOISE)
            new[:, : before.d] = one
        else:
            if name.endswith(("attn_output.weight", "ffn_down.weight")):
                new.zero_()
            else:
                new[: one.shape[0]] = 0
            new[: one.shape[0], : one.shape[1]] = one
    network.load_state_dict(state)
    return network


def with_tokens(network, merges, more):
    """-> state and merges without numbers of two digits, and with `more` tokens for text that the old ones spell in many pieces"""
    before = bpe.Tokens(merges)
    kept = [m for m in before.merges if not "".join(m).isdigit()]
    after = bpe.Tokens(bpe.extend(kept, texts_of_corpora(), more, texts_of_old()) if more else kept)
    state = network.state_dict()
    rows = dict(zip(before.vocabulary, state["token_embd.weight"]))
    for a, b in after.merges[len(kept):]:
        rows[a + b] = (rows[a] + rows[b]) / 2
    state["token_embd.weight"] = torch.stack([rows[token] for token in after.vocabulary])
    return state, after.merges


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("merges", type=Path)
    parser.add_argument("--out", required=True)
    parser.add_argument("--to", type=Path, required=True, help="merges of the larger network")
    parser.add_argument("--width", type=int, help="channels; the old ones by default")
    parser.add_argument("--feed-forward", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--more", type=int, default=0, help="tokens to add")
    options = parser.parse_args()
    torchsetup.seed_everything(1)
    network = from_checkpoint(options.checkpoint)
    if options.width:
        network = larger(network, options.width, options.feed_forward, options.layers or network.config.layers)
    merges = [tuple(m) for m in json.loads(options.merges.read_text(encoding="utf8"))]
    state, merges = with_tokens(network, merges, options.more)
    checkpoint.save(options.out, network=state)
    options.to.write_text(json.dumps(merges), encoding="utf8")
    print(options.out, sum(t.numel() for t in state.values()), "parameters,", state["token_embd.weight"].shape[0], "tokens")


if __name__ == "__main__":
    main()
