"""The synthesiser's trained part: symbols and a style -> durations, and for every 10 ms an 80-band envelope, F0 and two voicing degrees; and
the style encoder, which makes the style from another clip of the same speaker. The wave is made by the fixed vocoder of graphs.py.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

from common.checkpoint import load, whole
from voices.analysis import BANDS, LAGS
from voices.symbols import SYMBOLS

STYLE = 256
# How the parameters were called in the first checkpoint, which the shipped files were exported from.
_FIRST_NAMES = {
    "emb": "symbols", "st": "style_to_text", "sd": "style_to_frames", "enc": "text_blocks", "dur": "duration", "pos": "position",
    "dec": "frame_blocks", "out": "frame_out", "r1": "style_in", "r2": "style_half", "r3": "style_mix", "rn": "style_norm", "ro": "style_out",
}
_FIRST_BLOCK_NAMES = {"n": "norm", "c": "gated", "o": "out"}


class Block(nn.Module):
    """Gated residual convolution over [B,d,T]."""

    def __init__(self, width, kernel, dilation):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gated = nn.Conv1d(width, 2 * width, kernel, padding=dilation * (kernel // 2), dilation=dilation)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        a, b = self.gated(self.norm(x.transpose(1, 2)).transpose(1, 2)).chunk(2, 1)
        return x + self.out(torch.tanh(a) * torch.sigmoid(b))


class Synthesiser(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, width)
        self.style_to_text, self.style_to_frames = nn.Linear(STYLE, width), nn.Linear(STYLE, width)
        self.text_blocks = nn.ModuleList([Block(width, 5, d) for d in (1, 2, 4, 8)])
        self.duration = nn.Conv1d(width, 1, 1)
        self.position = nn.Linear(4, width)
        self.frame_blocks = nn.ModuleList([Block(width, 3, d) for d in (1, 2, 4, 8, 1)])
        self.frame_out = nn.Linear(width, BANDS + 3)
        self.register_buffer("mean", torch.zeros(BANDS))
        self.register_buffer("std", torch.ones(BANDS))
        narrow = 96
        self.style_in = nn.Conv1d(BANDS + len(LAGS), narrow, 5, stride=2, padding=2)
        self.style_half = nn.Conv1d(narrow, narrow, 5, stride=2, padding=2)
        self.style_mix = nn.Conv1d(narrow, narrow, 3, padding=1)
        self.style_norm, self.style_out = nn.LayerNorm(narrow), nn.Linear(narrow, STYLE)

    def style(self, envelope, correlation):
        """Reference frames [B,T,80], [B,T,lags] -> style [B,256]; the mean over time, so any length will do."""
        x = torch.cat([(envelope - self.mean) / self.std, correlation], -1).transpose(1, 2)
        x = F.gelu(self.style_half(F.gelu(self.style_in(x))))
        x = x + F.gelu(self.style_mix(x))
        return torch.tanh(self.style_out(self.style_norm(x.mean(2))))

    def text(self, ids, style):
        """-> hidden [B,d,N], log of the frames of every symbol at speed 1 [B,N]"""
        x = self.symbols(ids).transpose(1, 2) + self.style_to_text(style)[..., None]
        for block in self.text_blocks:
            x = block(x)
        return x, self.duration(x)[:, 0]

    def frames(self, text, index, position, style):
        """index [B,T]: the symbol of every frame -> envelope [B,T,80], log F0 [B,T], voicing logits [B,T,2]"""
        x = torch.gather(text, 2, index[:, None].expand(-1, text.shape[1], -1))
        x = x + self.position(position).transpose(1, 2) + self.style_to_frames(style)[..., None]
        for block in self.frame_blocks:
            x = block(x)
        out = self.frame_out(x.transpose(1, 2))
        return out[..., :BANDS] * self.std + self.mean, out[..., BANDS], out[..., BANDS + 1 :]


def positions(index, starts, lengths, speed):
    """Where every frame lies in its symbol [B,T,4], in units that do not change with the speed [B,1]."""
    time = torch.arange(index.shape[1], device=index.device).to(lengths.dtype)
    start, length = torch.gather(starts, 1, index), torch.gather(lengths, 1, index)
    inside = time[None] - start
    return torch.stack([
        inside / length.clamp(min=1.0), (inside * speed / 10).clamp(max=3.0), ((length - inside) * speed / 10).clamp(max=3.0),
        length * speed / 20,
    ], -1)


def _renamed(key):
    parts = key.split(".")
    out = [_FIRST_NAMES.get(parts[0], parts[0])]
    if parts[0] in ("enc", "dec"):
        out += [parts[1], _FIRST_BLOCK_NAMES[parts[2]]] + parts[3:]
    else:
        out += parts[1:]
    return ".".join(out)


def from_checkpoint(path):
    saved = load(path)
    state = whole(saved.get("network", saved.get("model", saved)))
    network = Synthesiser()
    network.load_state_dict({_renamed(k): v for k, v in state.items()})
    return network.eval()
