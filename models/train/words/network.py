"""A llama whose parameters have the names of GGUF's tensors."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from common.checkpoint import load, whole

HEAD_WIDTH = 32


@dataclass
class Config:
    vocabulary: int = 2560
    d: int = 192
    layers: int = 5
    heads: int = 6
    kv_heads: int = 3
    feed_forward: int = 512
    context: int = 8192
    epsilon: float = 1e-5
    rope_base: float = 10000.0


class Norm(nn.Module):
    def __init__(self, d, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(d)), epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotated(x, cos, sin):
    """Interleaved pairs, as llama.cpp does for this architecture: queries and keys need no permutation."""
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


def attention(q, k, v, allowed=None):
    """[batch, heads, tokens, width] each. allowed: which keys a query may see [..., queries, keys]; by default all the earlier ones. Without it
    there are as many keys as queries, or a single query, behind all keys."""
    causal = allowed is None and q.shape[2] > 1
    if hasattr(F, "scaled_dot_product_attention"):      # since PyTorch 2
        return F.scaled_dot_product_attention(q, k, v, allowed, is_causal=causal)
    if causal:
        allowed = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).tril()
    with torch.autocast(q.device.type, enabled=False):      # otherwise every score is converted several times
        scores = q * q.shape[-1] ** -0.5 @ k.transpose(2, 3)
        if allowed is not None:
            scores = scores + torch.where(allowed, 0.0, -1e9).to(scores.dtype)
        return scores.softmax(-1) @ v


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.width = c.heads, c.kv_heads, c.d // c.heads

        def linear(inputs, outputs):
            return nn.Linear(inputs, outputs, bias=False)

        self.attn_norm, self.attn_q = Norm(c.d, c.epsilon), linear(c.d, c.d)
        self.attn_k, self.attn_v = linear(c.d, c.kv_heads * self.width), linear(c.d, c.kv_heads * self.width)
        self.attn_output, self.ffn_norm = linear(c.d, c.d), Norm(c.d, c.epsilon)
        self.ffn_gate, self.ffn_up = linear(c.d, c.feed_forward), linear(c.d, c.feed_forward)
        self.ffn_down = linear(c.feed_forward, c.d)

    def forward(self, x, cos, sin, past=None, allowed=None):
        """past: None, or a list that holds the keys and values of earlier tokens and is renewed"""
        batch, n, d = x.shape
        precision = torch.bfloat16 if torch.is_autocast_cpu_enabled() or torch.is_autocast_enabled() else torch.float32
        y = self.attn_norm(x).to(precision)

        def split(z, heads):
            return z.view(batch, n, heads, self.width).transpose(1, 2)

        q = rotated(split(self.attn_q(y), self.heads), cos, sin).to(precision)
        k, v = rotated(split(self.attn_k(y), self.kv_heads), cos, sin).to(precision), split(self.attn_v(y), self.kv_heads)
        if past is not None:
            if past:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            past[:] = [k, v]
        group = self.heads // self.kv_heads
        o = attention(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1), allowed)
        x = x + self.attn_output(o.transpose(1, 2).reshape(batch, n, d))
        y = self.ffn_norm(x).to(precision)
        return x + self.ffn_down(F.silu(self.ffn_gate(y)) * self.ffn_up(y))


class Words(nn.Module):
    def __init__(self, config=None):
        super().__init__()
        c = self.config = config or Config()
        self.token_embd = nn.Embedding(c.vocabulary, c.d)
        self.blk = nn.ModuleList([Block(c) for _ in range(c.layers)])
        self.output_norm = Norm(c.d, c.epsilon)
        for p in self.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02 if p.shape[0] == c.vocabulary else p.shape[1] ** -0.5)
        for block in self.blk:
            nn.init.zeros_(block.attn_output.weight)
            nn.init.zeros_(block.ffn_down.weight)
        width = c.d // c.heads
        frequency = c.rope_base ** (-torch.arange(0, width, 2).double() / width)
        angle = torch.arange(c.context).double()[:, None] * frequency[None]
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def forward(self, ids, past=None):
        n = ids.shape[1]
        before = past[0][0].shape[2] if past and past[0] else 0
        cos, sin = self.cos[before : before + n], self.sin[before : before + n]
        x = self.token_embd(ids)
        for i, block in enumerate(self.blk):
            x = block(x, cos, sin, None if past is None else past[i])
        return self.output_norm(x) @ self.token_embd.weight.t()

    @torch.no_grad()
    def greedy(self, ids, most, stop):
        past, out = [[] for _ in self.blk], []
        x = torch.tensor([ids], device=self.cos.device)
        for _ in range(most):
            token = self(x, past)[0, -1].argmax().item()
            if token in stop:
                break
            out.append(token)
            x = torch.tensor([[token]], device=self.cos.device)
        return out


def sized(vocabulary, d, layers, feed_forward):
    """A head is always 32 wide; two share a key and value head."""
    return Config(vocabulary=vocabulary, d=d, layers=layers, heads=d // HEAD_WIDTH, kv_heads=d // HEAD_WIDTH // 2, feed_forward=feed_forward)


def config_of(state):
    """The sizes of a network, from the shapes of its tensors. A head is always 32 wide."""
    vocabulary, d = state["token_embd.weight"].shape
    keys, feed_forward = state["blk.0.attn_k.weight"].shape[0], state["blk.0.ffn_gate.weight"].shape[0]
    layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("blk."))
    return Config(
        vocabulary=vocabulary, d=d, layers=layers, heads=d // HEAD_WIDTH, kv_heads=keys // HEAD_WIDTH, feed_forward=feed_forward,
    )


def from_checkpoint(path):
    """Reads checkpoints of train.py, and the first one, which was a bare state dict."""
    saved = load(path)
    state = whole(saved.get("network", saved))
    network = Words(config_of(state))
    network.load_state_dict(state)
    return network
