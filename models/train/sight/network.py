"""A tower in front of the chat model. Its parameters have the names of llama.cpp's mmproj files, without "v." (projector type mlp)."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from sight.scenes import COLOURS, PATCH, SHAPES, SIZE, SLOTS, THINGS

ROWS = (SIZE // PATCH) ** 2


@dataclass
class Config:
    d: int = 128
    layers: int = 4
    heads: int = 4
    feed_forward: int = 512
    projected: int = 256
    out: int = 128          # the width of the chat model
    epsilon: float = 1e-6


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.ln1, self.ln2 = nn.LayerNorm(c.d, c.epsilon), nn.LayerNorm(c.d, c.epsilon)
        self.attn_q, self.attn_k, self.attn_v, self.attn_out = (nn.Linear(c.d, c.d) for _ in range(4))
        self.ffn_up, self.ffn_down = nn.Linear(c.d, c.feed_forward), nn.Linear(c.feed_forward, c.d)

    def forward(self, x):
        batch, n, d = x.shape
        width = d // self.heads
        y = self.ln1(x)
        q, k, v = (f(y).view(batch, n, self.heads, width).transpose(1, 2) for f in (self.attn_q, self.attn_k, self.attn_v))
        mixed = ((q * width**-0.5) @ k.transpose(2, 3)).softmax(-1) @ v
        x = x + self.attn_out(mixed.transpose(1, 2).reshape(batch, n, d))
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ln2(x)), approximate="tanh"))


class Tower(nn.Module):
    def __init__(self, config=None):
        super().__init__()
        c = self.config = config or Config()
        self.patch_embd = nn.Linear(3 * PATCH * PATCH, c.d)
        self.position_embd = nn.Parameter(torch.randn(ROWS, c.d) * 0.02)
        self.blk = nn.ModuleList([Block(c) for _ in range(c.layers)])
        self.post_ln = nn.LayerNorm(c.d, c.epsilon)
        self.mm0, self.mm2 = nn.Linear(c.d, c.projected), nn.Linear(c.projected, c.out)
        for block in self.blk:
            nn.init.zeros_(block.attn_out.weight)
            nn.init.zeros_(block.ffn_down.weight)

    def forward(self, pictures):
        """uint8 [batch, 96, 96, 3] -> [batch, 36, d]"""
        n = SIZE // PATCH
        x = (pictures.float() / 255 - 0.5) / 0.5
        # Inside a patch: colour, line, column, the order of a convolution's weights.
        x = x.view(-1, n, PATCH, n, PATCH, 3).permute(0, 1, 3, 5, 2, 4).reshape(-1, n * n, 3 * PATCH * PATCH)
        x = self.patch_embd(x) + self.position_embd
        for block in self.blk:
            x = block(x)
        return self.post_ln(x)

    def rows(self, seen):
        """What the tower saw -> rows as the chat model reads them"""
        return self.mm2(F.gelu(self.mm0(seen), approximate="tanh"))


class Heads(nn.Module):
    """For training alone: the thing in each patch, in each slot of the scene, the colour of writing, the cell of each shape and colour, and
    the colour of each shape, if there is exactly one of it."""

    def __init__(self, d):
        super().__init__()
        self.patches, self.slots, self.ink = nn.Linear(d, THINGS), nn.Linear(d, SLOTS * THINGS), nn.Linear(d, len(COLOURS))
        self.cells, self.colours = nn.Linear(d, (len(SHAPES) + len(COLOURS)) * (1 + SLOTS)), nn.Linear(d, len(SHAPES) * (1 + len(COLOURS)))

    def forward(self, seen):
        whole = seen.mean(1)
        single = self.cells(whole).view(-1, 1 + SLOTS), self.colours(whole).view(-1, 1 + len(COLOURS))
        return self.patches(seen), self.slots(whole).view(-1, SLOTS, THINGS), self.ink(whole), *single


def read(words, ids, rows, positions=None, allowed=None, past=None):
    """Hidden states [batch, n, d] of sequences of tokens and of rows of pictures, which are the negative numbers -1, -2, ... in rows."""
    x = words.token_embd(ids.clamp(min=0))
    if rows is not None:
        shown = ids < 0
        x = x.masked_scatter(shown[..., None], rows[-1 - ids[shown]])
    n = ids.shape[1]
    if positions is None:
        before = past[0][0].shape[2] if past and past[0] else 0
        positions = torch.arange(before, before + n)[None]
    cos, sin = words.cos[positions][:, None], words.sin[positions][:, None]
    for i, block in enumerate(words.blk):
        x = block(x, cos, sin, None if past is None else past[i], None if allowed is None else allowed[:, None])
    return words.output_norm(x)
