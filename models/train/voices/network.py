"""The synthesiser's trained part: symbols and a style -> durations, and for every 10 ms an 80-band envelope, F0 and two voicing degrees; and
the style encoder, which makes the style from another clip of the same speaker. The wave is made by the fixed vocoder of graphs.py.

A style [256] is 175 learned numbers, then what is measured: the log of the mean pitch over TYPICAL_HZ, and the mean envelope of the voiced
frames, 80 bands, standardised. Pitch and envelope of the speech are predicted relative to these, so a stranger's are right by construction.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from common.checkpoint import load, whole
from voices.analysis import BANDS, LAGS, RATE_HZ
from voices.symbols import SYMBOLS

STYLE = 256
LEARNED = STYLE - 1 - BANDS  # numbers of a style
TYPICAL_HZ = 150
VOICED = 0.7      # autocorrelation of a voiced frame at its pitch; analysis.py has the same
LOUD = 0.01       # of the loudest frame's power: vowels, and little else
NEAR_PEAK = 0.92  # the shortest lag whose peak is so near the highest: a longer one is an octave too low
NEAR_MEDIAN = (0.6, 1.7)  # times the median pitch: no octave errors
WIDEST = 4.0      # standard deviations of a measured envelope
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
        self.style_norm, self.style_out = nn.LayerNorm(narrow), nn.Linear(narrow, LEARNED)

    def style(self, envelope, correlation):
        """Reference frames [B,T,80], [B,T,lags] -> style [B,256]; the mean over time, so any length will do."""
        x = torch.cat([(envelope - self.mean) / self.std, correlation], -1).transpose(1, 2)
        x = F.gelu(self.style_half(F.gelu(self.style_in(x))))
        x = x + F.gelu(self.style_mix(x))
        learned = torch.tanh(self.style_out(self.style_norm(x.mean(2))))
        pitch, mean_envelope = measured(envelope, correlation)
        return torch.cat([learned, pitch, ((mean_envelope - self.mean) / self.std).clamp(-WIDEST, WIDEST)], 1)

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
        pitch, voicing = out[..., BANDS] + style[:, LEARNED : LEARNED + 1], out[..., BANDS + 1 :]
        own = torch.sigmoid(voicing[..., :1]) * style[:, None, LEARNED + 1 :]  # pauses and hisses have little of the voice in them
        return (out[..., :BANDS] + own) * self.std + self.mean, pitch, voicing


def measured(envelope, correlation):
    """The voice in reference frames [B,T,80], [B,T,lags] -> log of its mean pitch over TYPICAL_HZ [B,1], mean envelope of the voiced
    frames [B,80]. Zero, and the mean of all frames, where nothing is voiced."""
    lags = torch.from_numpy(LAGS.astype(np.float32)).to(envelope.device, envelope.dtype)
    inner = lags[1:-1]
    before, at, after = correlation[..., :-2], correlation[..., 1:-1], correlation[..., 2:]
    power = envelope.exp().sum(2)
    loud = power > LOUD * power.max(1, keepdim=True)[0]
    earlier = torch.arange(len(inner), 0, -1, device=envelope.device).to(envelope.dtype)

    def peaks(allowed):
        inside = at * allowed
        strength = inside.max(2, keepdim=True)[0]
        good = (inside >= NEAR_PEAK * strength) & (at >= before) & (at >= after)
        return (good.to(at.dtype) * earlier).argmax(2, keepdim=True), (strength[..., 0] > VOICED) & loud

    index, voiced = peaks(torch.ones_like(inner))
    chosen = (torch.arange(len(inner), device=envelope.device) == index).to(at.dtype) * voiced[..., None].to(at.dtype)
    share = chosen.sum(1).cumsum(1)
    median = inner[((2 * share >= share[:, -1:]).to(at.dtype) * earlier).argmax(1)][:, None, None]
    index, voiced = peaks(((inner > median / NEAR_MEDIAN[1]) & (inner < median / NEAR_MEDIAN[0])).to(at.dtype))
    a, b, c = (torch.gather(x, 2, index) for x in (before, at, after))
    shift = (0.5 * (a - c) / (a - 2 * b + c).clamp(max=-1e-6)).clamp(-0.5, 0.5)
    spacing = (lags[2:] - lags[:-2]) / 2
    lag = (inner[index] + shift * spacing[index])[..., 0]
    weight = voiced.to(at.dtype)
    count = weight.sum(1, keepdim=True)
    pitch = (weight * torch.log(RATE_HZ / lag / TYPICAL_HZ)).sum(1, keepdim=True) / count.clamp(min=1)
    weight = torch.where(count > 0, weight, torch.ones_like(weight))
    return pitch, (weight[..., None] * envelope).sum(1) / weight.sum(1, keepdim=True)


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


def _widened(state):
    """A checkpoint from before anything was measured: its styles lose their last numbers, and the measured ones begin without influence."""
    if len(state["style_out.bias"]) == LEARNED:
        return state
    state = {**state, **{k: state[k][:LEARNED] for k in ("style_out.weight", "style_out.bias")}}
    for k in ("style_to_text.weight", "style_to_frames.weight"):
        state[k] = torch.cat([state[k][:, :LEARNED], torch.zeros(len(state[k]), STYLE - LEARNED)], 1)
    return state


def from_checkpoint(path, older=False):
    """older: a checkpoint of the earlier layout will do, to begin a training with; its voices are not those of the files."""
    saved = load(path)
    state = whole(saved.get("network", saved.get("model", saved)))
    network = Synthesiser()
    state = {_renamed(k): v for k, v in state.items()}
    network.load_state_dict(_widened(state) if older else state)
    return network.eval()
