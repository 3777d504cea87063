"""Checkpoint -> the GGUF of the chat model and the mmproj file of its tower, for the adapter llama-gguf.

  python3 -m sight.export work/sight.pt work/chat.json ../vision-demo
"""
import argparse
import json
from pathlib import Path

from common import torchsetup  # noqa: F401
import torch

from common.checkpoint import load
from sight.network import Tower
from sight.scenes import PATCH, SIZE
from words import bpe, export, gguf
from words.gguf import ARRAY, BOOL, F32, STRING, U32
from words.network import Words, config_of

NAME = "vision-demo"
_F16 = 1        # file type of llama.cpp
_MIDDLE = 0.5   # mean and deviation of a colour: 0 to 255 becomes -1 to 1


def read(path):
    """-> chat model, tower"""
    saved = load(path)
    words = Words(config_of(saved["words"]))
    words.load_state_dict(saved["words"])
    tower = Tower()
    tower.load_state_dict(saved["tower"])
    return words, tower


def tower_facts(tower):
    c = tower.config
    return [
        ("general.architecture", STRING, "clip"), ("general.type", STRING, "mmproj"), ("general.name", STRING, NAME),
        ("general.file_type", U32, _F16), ("general.quantization_version", U32, 2),
        ("clip.has_vision_encoder", BOOL, True), ("clip.projector_type", STRING, "mlp"), ("clip.use_gelu", BOOL, True),
        ("clip.vision.image_size", U32, SIZE), ("clip.vision.patch_size", U32, PATCH),
        ("clip.vision.embedding_length", U32, c.d), ("clip.vision.feed_forward_length", U32, c.feed_forward),
        ("clip.vision.block_count", U32, c.layers + 1), ("clip.vision.attention.head_count", U32, c.heads),
        ("clip.vision.attention.layer_norm_epsilon", F32, c.epsilon), ("clip.vision.projection_dim", U32, c.out),
        ("clip.vision.image_mean", ARRAY, (F32, [_MIDDLE] * 3)), ("clip.vision.image_std", ARRAY, (F32, [_MIDDLE] * 3)),
    ]


def tower_tensors(tower):
    c, state, out = tower.config, tower.state_dict(), {}
    for name, tensor in state.items():
        name = name.replace("mm0", "mm.0").replace("mm2", "mm.2")
        name = "v.position_embd.weight" if name == "position_embd" else name
        out[name if name.startswith(("mm", "v.")) else "v." + name] = tensor
    out["v.patch_embd.weight"] = out["v.patch_embd.weight"].view(c.d, 3, PATCH, PATCH)
    # Towers of LLaVA have one block more than is used. Zeros pack to nothing.
    last = f"v.blk.{c.layers - 1}."
    for name in [n for n in out if n.startswith(last)]:
        out[name.replace(last, f"v.blk.{c.layers}.")] = torch.zeros_like(out[name])
    return [(n, t.contiguous().numpy(), "f16" if t.ndim > 1 and "position" not in n else "f32") for n, t in out.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("merges", type=Path, help="of the tokenizer")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    words, tower = read(options.checkpoint)
    tokens = bpe.Tokens(json.loads(options.merges.read_text(encoding="utf8")))
    facts = [(k, kind, NAME if k == "general.name" else v) for k, kind, v in export.facts(words.config, tokens, "q8_0")]
    options.folder.mkdir(parents=True, exist_ok=True)
    chat, picture = options.folder / f"{NAME}-Q8_0.gguf", options.folder / f"mmproj-{NAME}-F16.gguf"
    gguf.write(chat, facts, [(n, t.numpy(), "f32" if t.ndim == 1 else "q8_0") for n, t in words.state_dict().items()])
    gguf.write(picture, tower_facts(tower), tower_tensors(tower))
    for file in (chat, picture):
        print(file, file.stat().st_size)


if __name__ == "__main__":
    main()
