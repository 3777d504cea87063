"""Checkpoint -> GGUF for the adapter llama-gguf.

  python3 -m words.export work/words.pt work/merges.json ../llama-demo/llama-demo-Q8_0.gguf
"""
import argparse
import json
from pathlib import Path

from common import torchsetup  # noqa: F401

from words import bpe, gguf
from words.gguf import ARRAY, BOOL, F32, I32, STRING, U32
from words.network import from_checkpoint

_DEFINITIONS = (
    "{% if tools %}{{ '<|im_start|>system\\n' }}{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] + '\\n' }}{% endif %}"
    "{{ '<tools>\\n' }}{% for t in tools %}{{ (t['function'] | tojson) + '\\n' }}{% endfor %}{{ '</tools><|im_end|>\\n' }}{% endif %}"
)
_RESULT = (
    "{% if loop.first or messages[loop.index0 - 1]['role'] != 'tool' %}{{ '<|im_start|>user' }}{% endif %}"
    "{{ '\\n<tool_response>\\n' + m['content'] + '\\n</tool_response>' }}"
    "{% if loop.last or messages[loop.index0 + 1]['role'] != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}"
)
_CALLS = (
    "{{ '<|im_start|>assistant\\n' }}{% if m['content'] %}{{ m['content'] + '\\n' }}{% endif %}"
    "{% for c in m['tool_calls'] %}{% if not loop.first %}{{ '\\n' }}{% endif %}"
    "{{ '<tool_call>\\n{\"name\": \"' + c['function']['name'] + '\", \"arguments\": ' }}"
    "{{ c['function']['arguments'] if c['function']['arguments'] is string else c['function']['arguments'] | tojson }}"
    "{{ '}\\n</tool_call>' }}{% endfor %}{{ '<|im_end|>\\n' }}"
)
# Without tools it is plain ChatML. With tools: definitions, calls and results in the form of Hermes and Qwen.
CHATML = (
    _DEFINITIONS + "{% for m in messages %}{% if m['role'] == 'tool' %}" + _RESULT + "{% elif m['tool_calls'] %}" + _CALLS
    + "{% elif not (tools and loop.first and m['role'] == 'system') %}"
    "{{'<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n'}}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_NORMAL, _CONTROL = 1, 3            # token types
_FILE_TYPES = {"q8_0": 7, "f16": 1}


def facts(config, tokens, kind):
    ids = tokens.id
    return [
        ("general.architecture", STRING, "llama"), ("general.name", STRING, "llama-demo"),
        ("general.file_type", U32, _FILE_TYPES[kind]), ("general.quantization_version", U32, 2),
        ("llama.block_count", U32, config.layers), ("llama.context_length", U32, config.context),
        ("llama.embedding_length", U32, config.d), ("llama.feed_forward_length", U32, config.feed_forward),
        ("llama.attention.head_count", U32, config.heads), ("llama.attention.head_count_kv", U32, config.kv_heads),
        ("llama.attention.layer_norm_rms_epsilon", F32, config.epsilon),
        ("llama.rope.dimension_count", U32, config.d // config.heads), ("llama.rope.freq_base", F32, config.rope_base),
        ("llama.vocab_size", U32, config.vocabulary),
        ("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, "gpt-2"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens.vocabulary)),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [_CONTROL if t in bpe.CONTROL else _NORMAL for t in tokens.vocabulary])),
        ("tokenizer.ggml.merges", ARRAY, (STRING, [a + " " + b for a, b in tokens.merges])),
        ("tokenizer.ggml.bos_token_id", U32, ids["<|endoftext|>"]), ("tokenizer.ggml.eos_token_id", U32, ids["<|im_end|>"]),
        ("tokenizer.ggml.eot_token_id", U32, ids["<|im_end|>"]), ("tokenizer.ggml.padding_token_id", U32, ids["<|endoftext|>"]),
        ("tokenizer.ggml.add_bos_token", BOOL, False), ("tokenizer.chat_template", STRING, CHATML),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("merges", type=Path, help="merges.json beside it")
    parser.add_argument("file")
    parser.add_argument("--kind", choices=list(_FILE_TYPES), default="q8_0")
    options = parser.parse_args()
    network = from_checkpoint(options.checkpoint)
    tokens = bpe.Tokens(json.loads(options.merges.read_text(encoding="utf8")))
    tensors = [(n, t.numpy(), "f32" if t.ndim == 1 else options.kind) for n, t in network.state_dict().items()]
    gguf.write(options.file, facts(network.config, tokens, options.kind), tensors)
    print(options.file, Path(options.file).stat().st_size)


if __name__ == "__main__":
    main()
