"""Checkpoint -> the published Whisper folder: onnx/encoder_model.onnx, onnx/decoder_model_merged.onnx (one If on use_cache_branch with shared
weights), tokenizer and configuration files. Weights are stored as float16; inputs, outputs and arithmetic stay float32.

  python3 -m ears.export work/ears.pt ../whisper-demo
"""
import argparse
import json
import os
from pathlib import Path

from common import torchsetup  # noqa: F401
import onnx
import torch
import torch.nn as nn
from onnx import TensorProto, helper

from common import checkpoint
from common.onnxfiles import OPSET, halved
from ears.features import (
    BYTE_CHARACTERS, END, FIRST_TIMESTAMP, LANGUAGE_TOKENS, LANGUAGES, NO_SPEECH, NO_TIMESTAMPS, SPECIALS, START, START_OF_LM, START_OF_PREVIOUS,
    TIMESTAMPS, TIMESTAMP_SECONDS, TRANSCRIBE, TRANSLATE, encode,
)
from ears.network import from_checkpoint

SMALLEST_HALVED = 256


class EncoderGraph(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.encoder = network.encoder

    def forward(self, input_features):
        x = self.encoder(input_features)  # 25 frames a second -> 50: repeated keys change nothing in the attention
        return x.unsqueeze(2).expand(-1, -1, 2, -1).reshape(x.shape[0], -1, x.shape[2])


class FirstGraph(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.decoder = network.decoder

    def forward(self, input_ids, encoder_hidden_states):
        cross = self.decoder.cross(encoder_hidden_states)
        logits, present = self.decoder.step(input_ids, cross)
        return (logits,) + tuple(t for (k, v), (a, b) in zip(present, cross) for t in (k, v, a, b))


class NextGraph(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.decoder = network.decoder

    def forward(self, input_ids, *past):
        layers = range(len(past) // 4)
        cross = [past[4 * i + 2 : 4 * i + 4] for i in layers]
        logits, present = self.decoder.step(input_ids, cross, [past[4 * i : 4 * i + 2] for i in layers])
        return (logits,) + tuple(t for pair in present for t in pair)


class Merger:
    """Two decoder graphs -> one; equal initialisers are shared by both branches."""

    def __init__(self, config):
        self.weights, self.by_content = [], {}
        self.heads, self.width = config.heads, config.d // config.heads

    def _shared(self, tensor):
        key = (tuple(tensor.dims), tensor.data_type, tensor.raw_data)
        if key not in self.by_content:
            self.by_content[key] = f"w{len(self.weights)}"
            copy = onnx.TensorProto()
            copy.CopyFrom(tensor)
            copy.name = self.by_content[key]
            self.weights.append(copy)
        return self.by_content[key]

    def branch(self, graph, tag, names):
        renamed = {t.name: self._shared(t) for t in graph.initializer}
        outer, own, nodes, outputs = {i.name for i in graph.input}, {o.name for o in graph.output}, [], []

        def name(x):
            return x if x == "" or x in outer else renamed.get(x, tag + x)

        for old in graph.node:
            node = onnx.NodeProto()
            node.CopyFrom(old)
            node.name = tag + node.name
            node.input[:], node.output[:] = [name(x) for x in old.input], [name(x) for x in old.output]
            nodes.append(node)
        for x in ["logits"] + ["present." + n for n in names]:
            if x in own:
                nodes.append(helper.make_node("Identity", [name(x)], [f"{tag}out_{x}"]))
            else:  # what was fed stays as it is: a copy of it would cost an eighth of a token
                empty = helper.make_tensor(f"{tag}empty", TensorProto.FLOAT, [0, self.heads, 1, self.width], [])
                nodes.append(helper.make_node("Constant", [], [f"{tag}out_{x}"], value=empty))
            outputs.append(helper.make_tensor_value_info(f"{tag}out_{x}", TensorProto.FLOAT, None))
        return helper.make_graph(nodes, tag + "branch", [], outputs)

    def merge(self, first, following, names, config):
        fresh, cached = self.branch(first.graph, "first_", names), self.branch(following.graph, "next_", names)

        def info(name, *shape, kind=TensorProto.FLOAT):
            return helper.make_tensor_value_info(name, kind, list(shape))

        def cache(prefix, name, decoder_length):
            length = decoder_length if "decoder" in name else "encoder_sequence_length_out"
            return info(prefix + name, "batch_size", config.heads, length, config.d // config.heads)

        inputs = [
            info("input_ids", "batch_size", "decoder_sequence_length", kind=TensorProto.INT64),
            info("encoder_hidden_states", "batch_size", "encoder_sequence_length", config.d),
            *[cache("past_key_values.", n, "past_decoder_sequence_length") for n in names],
            info("use_cache_branch", 1, kind=TensorProto.BOOL),
        ]
        outputs = [
            info("logits", "batch_size", "decoder_sequence_length", config.vocabulary),
            *[cache("present.", n, "total_sequence_length") for n in names],
        ]
        switch = helper.make_node("If", ["use_cache_branch"], [o.name for o in outputs], then_branch=cached, else_branch=fresh)
        graph = helper.make_graph([switch], "decoder_merged", inputs, outputs, initializer=self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def write_graphs(network, folder):
    config = network.config
    names = [f"{i}.{side}.{t}" for i in range(config.layers) for side in ("decoder", "encoder") for t in ("key", "value")]
    with torch.no_grad():
        for parameter in network.parameters():  # so that torch and the files agree exactly
            parameter.data = parameter.data.half().float()
        features = torch.randn(1, config.mels, 3000)
        hidden = EncoderGraph(network)(features)
        ids = torch.tensor([[START, LANGUAGE_TOKENS["en"], TRANSCRIBE, NO_TIMESTAMPS]])
        past = FirstGraph(network)(ids, hidden)[1:]
        length = {"decoder": "s", "encoder": "e"}
        presents = {"present." + n: {0: "b", 2: length[n.split(".")[1]]} for n in names}
        of_decoder = ["present." + n for n in names if "decoder" in n]
        plans = {
            "encoder": (
                EncoderGraph(network), (features,), ["input_features"], ["last_hidden_state"],
                dict(input_features={0: "batch_size", 2: "frames"}, last_hidden_state={0: "batch_size", 1: "encoder_sequence_length"}),
            ),
            "first": (
                FirstGraph(network), (ids, hidden), ["input_ids", "encoder_hidden_states"], ["logits", *presents],
                dict(input_ids={0: "b", 1: "s"}, encoder_hidden_states={0: "b", 1: "e"}, logits={0: "b", 1: "s"}, **presents),
            ),
            "next": (
                NextGraph(network), (torch.tensor([[5]]), *past), ["input_ids"] + ["past_key_values." + n for n in names],
                ["logits", *of_decoder],
                {
                    "input_ids": {0: "b", 1: "s"}, "logits": {0: "b", 1: "s"},
                    **{"past_key_values." + n: {0: "b", 2: "p" if "decoder" in n else "e"} for n in names},
                    **{n: {0: "b", 2: "t"} for n in of_decoder},
                },
            ),
        }
        graphs = {}
        for name, (module, example, inputs, outputs, axes) in plans.items():
            path = str(folder / f"unfinished-{name}")
            torch.onnx.export(
                module.eval(), example, path, opset_version=OPSET, input_names=inputs, output_names=outputs, dynamic_axes=axes,
            )
            graphs[name] = onnx.load(path)
            os.remove(path)
    onnx.save(halved(graphs["encoder"], SMALLEST_HALVED), str(folder / "encoder_model.onnx"))
    merged = Merger(config).merge(graphs["first"], graphs["next"], names, config)
    onnx.save(halved(merged, SMALLEST_HALVED), str(folder / "decoder_model_merged.onnx"))


def _tokenizer(special, stamps, vocabulary):
    def token(i, content, is_special):
        return dict(
            id=i, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=is_special,
        )

    added = [token(i, t, True) for t, i in special.items()] + [token(FIRST_TIMESTAMP + i, t, False) for i, t in enumerate(stamps)]
    byte_level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    lead, end = ["<|startoftranscript|>", "<|notimestamps|>"], "<|endoftext|>"

    def of(kind, name):
        return {kind: dict(id=name, type_id=0)}

    before = [of("SpecialToken", t) for t in lead]
    template = dict(
        type="TemplateProcessing", single=before + [of("Sequence", "A"), of("SpecialToken", end)],
        pair=before + [of("Sequence", "A"), of("Sequence", "B"), of("SpecialToken", end)],
        special_tokens={t: dict(id=t, ids=[special[t]], tokens=[t]) for t in [*lead, end]},
    )
    model = dict(
        type="BPE", dropout=None, unk_token=None, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False,
        byte_fallback=False, vocab=vocabulary, merges=[],
    )
    return added, dict(
        version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=None, pre_tokenizer=byte_level,
        post_processor=template, decoder=byte_level, model=model,
    )


def side_files(config, languages):
    """-> {name: content}, JSON but for merges.txt. `languages` are those that the model was trained on."""
    stamps = ["<|%.2f|>" % (i * TIMESTAMP_SECONDS) for i in range(TIMESTAMPS)]
    special = {t: 256 + i for i, t in enumerate(SPECIALS)}
    vocabulary = {t: i for i, t in enumerate(BYTE_CHARACTERS)}
    added, tokenizer = _tokenizer(special, stamps, vocabulary)
    end = "<|endoftext|>"
    roles = dict(bos_token=end, eos_token=end, unk_token=end, pad_token=end)
    ids = dict(decoder_start_token_id=START, bos_token_id=END, eos_token_id=END, pad_token_id=END)
    space, symbols = encode(" "), encode('"#()*+/<=>@[\\]^_`{|}~')
    never = sorted(symbols + [START, TRANSLATE, TRANSCRIBE, START_OF_LM, START_OF_PREVIOUS, NO_SPEECH])
    return {
        "vocab.json": vocabulary,
        "merges.txt": "#version: 0.2\n",
        "added_tokens.json": {**special, **{t: FIRST_TIMESTAMP + i for i, t in enumerate(stamps)}},
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": dict(
            tokenizer_class="WhisperTokenizer", add_prefix_space=False, **roles, errors="replace", model_max_length=config.positions,
            clean_up_tokenization_spaces=False, additional_special_tokens=SPECIALS,
            added_tokens_decoder={str(a["id"]): {k: v for k, v in a.items() if k != "id"} for a in added},
        ),
        "special_tokens_map.json": dict(**roles, additional_special_tokens=SPECIALS),
        "config.json": dict(
            model_type="whisper", architectures=["WhisperForConditionalGeneration"], vocab_size=config.vocabulary,
            num_mel_bins=config.mels, d_model=config.d, encoder_layers=config.blocks, decoder_layers=config.layers,
            encoder_attention_heads=config.heads, decoder_attention_heads=config.heads, encoder_ffn_dim=4 * config.d,
            decoder_ffn_dim=config.wide * config.d, max_source_positions=1500, max_target_positions=config.positions,
            activation_function="gelu", is_encoder_decoder=True, use_cache=True, scale_embedding=False,
            begin_suppress_tokens=space, suppress_tokens=never, **ids,
        ),
        "generation_config.json": dict(
            **ids, begin_suppress_tokens=space, suppress_tokens=never, no_timestamps_token_id=NO_TIMESTAMPS,
            prev_sot_token_id=START_OF_PREVIOUS, lang_to_id={f"<|{language}|>": LANGUAGE_TOKENS[language] for language in languages},
            task_to_id=dict(transcribe=TRANSCRIBE), is_multilingual=True, max_length=config.positions,
            max_initial_timestamp_index=50, return_timestamps=False, alignment_heads=[[i, 0] for i in range(config.layers)],
        ),
        "preprocessor_config.json": dict(
            feature_extractor_type="WhisperFeatureExtractor", processor_class="WhisperProcessor", feature_size=config.mels,
            sampling_rate=16000, hop_length=160, n_fft=400, chunk_length=30, n_samples=480000, nb_max_frames=3000,
            padding_value=0.0, padding_side="right", return_attention_mask=False,
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mix", help="a later checkpoint of the same training: the weights are the mean of both")
    parser.add_argument("--share", type=float, default=0.5, help="of --mix in that mean")
    parser.add_argument("--languages", default=" ".join(LANGUAGES), help="those that the files name; the tokens of the others stay in the vocabulary")
    options = parser.parse_args()
    network = from_checkpoint(options.checkpoint).eval()
    network.settle()
    if options.mix:
        later = from_checkpoint(options.mix)
        later.settle()
        network.load_state_dict(checkpoint.mean(network.state_dict(), later.state_dict(), options.share))
    (options.folder / "onnx").mkdir(parents=True, exist_ok=True)
    write_graphs(network, options.folder / "onnx")
    for name, content in side_files(network.config, options.languages.split()).items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1 if "config" in name else None, ensure_ascii=False)
        (options.folder / name).write_text(text, encoding="utf8")
    for path in sorted((options.folder / "onnx").iterdir()):
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
