"""Checkpoint -> model.onnx, style_encoder.onnx (float16 storage, float32 arithmetic), voices/<id>.bin and config.json. The tokenizer is not
trained and stays as it is.

  python3 -m voices.export work/voices.pt ../kokoro-demo
"""
import argparse
import json
from pathlib import Path

from common import checkpoint, torchsetup  # noqa: F401
import numpy as np
import onnx
import torch

from common.onnxfiles import OPSET, halved
from common.sentences import Sentences
from voices.analysis import HOP, RATE_HZ
from voices.clips import clip_of
from voices.graphs import SpeechGraph, StyleGraph
from voices.network import STYLE, from_checkpoint
from voices.speakers import NAMED
from voices.symbols import IDS, SYMBOLS

ROWS = 510                 # of a voice file: one a number of symbols
SMALLEST_HALVED = 1024
TEXT_SEED = 4242


def style_of(network, voice, pitch, clips):
    """The mean style of freshly spoken clips."""
    sentences, styles = Sentences(TEXT_SEED), []
    while len(styles) < clips:
        clip = clip_of(sentences.draw("pattern"), voice, pitch)
        if clip is not None:
            frames = (clip.frames.envelope, clip.frames.correlation)
            styles.append(network.style(*(torch.from_numpy(x.astype(np.float32))[None] for x in frames))[0])
    return torch.stack(styles).mean(0).numpy()


def write_graph(module, example, path, inputs, outputs, axes):
    torch.onnx.export(
        module.eval(), example, str(path), opset_version=OPSET, input_names=inputs, output_names=outputs, dynamic_axes=axes,
    )
    onnx.save(halved(onnx.load(str(path)), SMALLEST_HALVED), str(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", type=int, default=60, help="whose mean a voice's style is")
    parser.add_argument("--mix", help="a later checkpoint of the same training: the weights are the mean of both")
    parser.add_argument("--share", type=float, default=0.25, help="of --mix in that mean")
    parser.add_argument("--keep-voices", action="store_true", help="leave voices/*.bin alone")
    options = parser.parse_args()
    network = from_checkpoint(options.checkpoint)
    if options.mix:
        later = from_checkpoint(options.mix)
        network.load_state_dict(checkpoint.mean(network.state_dict(), later.state_dict(), options.share))
    (options.folder / "voices").mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        if not options.keep_voices:
            for name, (voice, pitch) in NAMED.items():
                style = style_of(network, voice, pitch, options.clips)
                np.repeat(style[None], ROWS, 0).astype("<f4").tofile(options.folder / "voices" / f"{name}.bin")
        ids = torch.tensor([[0] + [IDS[c] for c in "həlˈoʊ ðˈɛɹ."] + [0]])
        write_graph(
            SpeechGraph(network), (ids, torch.zeros(1, STYLE), torch.ones(1)), options.folder / "model.onnx",
            ["input_ids", "style", "speed"], ["waveform", "durations"],
            dict(input_ids={1: "n"}, waveform={1: "samples"}, durations={1: "n"}),
        )
        write_graph(
            StyleGraph(network), (torch.randn(1, 60000) * 0.1,), options.folder / "style_encoder.onnx",
            ["audio"], ["style"], dict(audio={1: "samples"}),
        )
    settings = dict(
        model_type="kokoro", n_token=SYMBOLS, style_dim=STYLE, sample_rate=RATE_HZ, max_symbols=ROWS, hop=HOP, voices=list(NAMED),
        phonemes="espeak IPA, published Kokoro rewriting; single-letter diphthongs accepted as well",
        language=dict(a="en-us", b="en"), vocab=IDS,
    )
    (options.folder / "config.json").write_text(json.dumps(settings, ensure_ascii=False, indent=1), encoding="utf8")
    for path in sorted(options.folder.glob("*.onnx")):
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
