"""A small network behind the Whisper contract: input_features [B,80,T] -> last_hidden_state [B,T/2,d]; a decoder with cached keys and values.

What differs from a literal Whisper, all of it invisible from outside:
- the encoder is convolutional (translation-equivariant, cheap on processors) and works at 25 frames a second; export.py repeats every frame
  once, which leaves the attention's result unchanged;
- the encoder counts: a rate (characters a frame) is predicted and summed up, and the sinusoid of the sum is added to the hidden state, so
  that decoder position n and "the place where n characters have been spoken" look alike. That keeps the attention in step over 30 s;
- decoder positions count from <|startoftranscript|>, so a prompt in front does not shift them. The place of that token travels in one
  channel of layer 0's key cache;
- while training, the embeddings of the 1501 timestamps may be one linear function of the sinusoid of their time (`smooth_stamps`), so that
  what is learnt at one time holds at all of them. `settle` turns them into rows of the table, as the contract has them.
"""
import math
from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from common.checkpoint import load, whole
from ears.features import (
    END, FIRST_TIMESTAMP, LANGUAGE_TOKENS, NO_TIMESTAMPS, START, TIMESTAMPS, TIMESTAMP_SECONDS, TRANSCRIBE, VOCABULARY,
)

FRAME_SECONDS = 0.04   # of the encoder


@dataclass
class Config:
    d: int = 176
    heads: int = 4
    blocks: int = 6
    layers: int = 3
    wide: int = 4             # hidden units of a decoder layer's feed-forward part, for each of the d channels
    mels: int = 80
    vocabulary: int = VOCABULARY
    positions: int = 896      # bytes of 30 s of fast speech, timestamps and a prompt
    phonemes: int = 256
    smooth_stamps: bool = False


def sinusoid(position, n):
    """[...] -> [..., n]; periods from 2 pi to 2 pi x 1000"""
    frequency = torch.exp(-math.log(1000.0) / (n // 2 - 1) * torch.arange(n // 2, device=position.device).float())
    angle = position[..., None] * frequency
    return torch.cat([angle.sin(), angle.cos()], -1)


class Convolution(nn.Module):
    """Conv1d over [B,T,C]: a matrix product while training (fast and right on processors), a Conv in the exported graph."""

    def __init__(self, inputs, outputs, kernel, stride=1, dilation=1):
        super().__init__()
        self.kernel, self.stride, self.dilation = kernel, stride, dilation
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel) * (inputs * kernel) ** -0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        pad = self.dilation * (self.kernel // 2)
        if torch.onnx.is_in_onnx_export():
            return F.conv1d(x.transpose(1, 2), self.weight, self.bias, self.stride, pad, self.dilation).transpose(1, 2)
        n = (x.shape[1] - 1) // self.stride + 1
        x = F.pad(x, (0, 0, pad, pad + self.stride))
        starts = [i * self.dilation for i in range(self.kernel)]
        taps = torch.cat([x[:, s : s + n * self.stride : self.stride] for s in starts], 2)
        return F.linear(taps, self.weight.transpose(1, 2).reshape(self.weight.shape[0], -1), self.bias)


class Encoder(nn.Module):
    EDGE = 20  # frames near the right border that see it

    def __init__(self, c):
        super().__init__()
        d = c.d
        self.conv1, self.conv2, self.conv3 = Convolution(c.mels, d, 3), Convolution(d, d, 3, 2), Convolution(d, d, 3, 2)
        dilations = [1, 2] * (c.blocks // 2) + [1] * (c.blocks % 2)
        self.norm = nn.ModuleList(nn.LayerNorm(d) for _ in dilations)
        self.conv = nn.ModuleList(Convolution(d, d, 5, 1, x) for x in dilations)
        self.layer_norm, self.rate = nn.LayerNorm(d), nn.Linear(d, 1)
        nn.init.constant_(self.rate.bias, -0.6)

    def frames(self, features):
        """[B,80,T] -> hidden [B,T/4,d] without positions, characters a frame [B,T/4]"""
        x = F.gelu(self.conv3(F.gelu(self.conv2(F.gelu(self.conv1(features.transpose(1, 2)))))))
        for norm, conv in zip(self.norm, self.conv):
            x = x + F.gelu(conv(norm(x)))
        x = self.layer_norm(x)
        return x, F.softplus(self.rate(x)[..., 0])

    def lengthened(self, hidden, rate, frames):
        """As if the clip had been padded to that many frames: the last frame that does not see the border goes on. It must be padding."""
        if frames <= hidden.shape[1]:
            return hidden, rate
        more = frames - hidden.shape[1] + self.EDGE
        last = slice(-self.EDGE - 1, -self.EDGE)
        return (
            torch.cat([hidden[:, : -self.EDGE], hidden[:, last].expand(-1, more, -1)], 1),
            torch.cat([rate[:, : -self.EDGE], rate[:, last].expand(-1, more)], 1),
        )

    def place(self, hidden, rate):
        """Adds the two positions: characters so far in one half of the channels, time in the other."""
        n = hidden.shape[2] // 2
        count = torch.cumsum(rate, 1) - rate / 2 + 3
        time = torch.cumsum(torch.ones_like(rate), 1) - 1
        return hidden + 0.5 * torch.cat([sinusoid(count, n), sinusoid(time, n)], 2)

    def forward(self, features):
        return self.place(*self.frames(features))


class Attention(nn.Module):
    keep = None  # a list: the probabilities of head 0 are left there

    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.scale = heads, (d // heads) ** -0.5
        self.k_proj, self.v_proj = nn.Linear(d, d, bias=False), nn.Linear(d, d)
        self.q_proj, self.out_proj = nn.Linear(d, d), nn.Linear(d, d)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def keys(self, x):
        return self.split(self.k_proj(x)), self.split(self.v_proj(x))

    def queries(self, x):
        return self.split(self.q_proj(x) * self.scale)

    def attend(self, q, k, v, mask=None):
        scores = q @ k.transpose(2, 3)
        p = (scores if mask is None else scores + mask).softmax(-1)
        if self.keep is not None:
            self.keep.append(p[:, 0])
        o = (p @ v).transpose(1, 2)
        return self.out_proj(o.reshape(o.shape[0], o.shape[1], o.shape[2] * o.shape[3]))


class Layer(nn.Module):
    def __init__(self, d, heads, wide):
        super().__init__()
        self.self_attn, self.self_attn_layer_norm = Attention(d, heads), nn.LayerNorm(d)
        self.encoder_attn, self.encoder_attn_layer_norm = Attention(d, heads), nn.LayerNorm(d)
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(d, wide * d), nn.Linear(wide * d, d), nn.LayerNorm(d)
        with torch.no_grad():  # head 0 starts by comparing the decoder's position with the encoder's count
            shared = torch.zeros(d // heads, d)
            shared[:, : d // 2].normal_(std=0.16)
            self.encoder_attn.q_proj.weight[: d // heads] = shared
            self.encoder_attn.k_proj.weight[: d // heads] = shared


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c.d
        self.positions = c.positions
        self.embed_tokens, self.embed_positions = nn.Embedding(c.vocabulary, d), nn.Embedding(c.positions, d)
        nn.init.normal_(self.embed_tokens.weight, std=0.03)
        with torch.no_grad():
            self.embed_positions.weight.zero_()
            self.embed_positions.weight[:, : d // 2] = sinusoid(torch.arange(c.positions).float(), d // 2) * 0.15
        self.layers, self.layer_norm = nn.ModuleList(Layer(d, c.heads, c.wide) for _ in range(c.layers)), nn.LayerNorm(d)
        mark = torch.zeros(c.heads, 1, d // c.heads)
        mark[0, 0, 0] = 1
        self.register_buffer("mark", mark, persistent=False)
        self.stamps = None
        if c.smooth_stamps:
            self._add_stamps(d)

    def _add_stamps(self, d):
        seconds = torch.arange(TIMESTAMPS).float() * TIMESTAMP_SECONDS
        self.register_buffer("stamp_features", sinusoid(seconds / FRAME_SECONDS, d), persistent=False)
        self.stamps = nn.Linear(d, d)
        nn.init.normal_(self.stamps.weight, std=0.03 * (2 / d) ** 0.5)

    def smooth_stamps(self):
        """The timestamps' rows become a function of their time, fitted to the rows that were there."""
        rows = self.embed_tokens.weight[FIRST_TIMESTAMP:].detach()
        self._add_stamps(rows.shape[1])
        x = torch.cat([self.stamp_features, torch.ones(TIMESTAMPS, 1)], 1).double()
        ridge = 1e-2 * torch.eye(x.shape[1]).double()
        fit = torch.linalg.solve(x.t() @ x + ridge, x.t() @ rows.double()).float()
        with torch.no_grad():
            self.stamps.weight.copy_(fit[:-1].t())
            self.stamps.bias.copy_(fit[-1])

    def settle(self):
        """The function's values become rows of the table again."""
        if self.stamps is not None:
            with torch.no_grad():
                self.embed_tokens.weight[FIRST_TIMESTAMP:] = self.stamps(self.stamp_features)
            self.stamps = None

    def widen(self, wide):
        """More hidden units, whose output counts nothing until they are trained: the network computes what it did."""
        for layer in self.layers:
            for name, dimension in (("fc1", 0), ("fc2", 1)):
                old = getattr(layer, name)
                d = layer.final_layer_norm.weight.shape[0]
                new = nn.Linear(d, wide * d) if name == "fc1" else nn.Linear(wide * d, d)
                with torch.no_grad():
                    if name == "fc2":
                        new.weight.zero_()
                        new.bias.copy_(old.bias)
                    else:
                        new.bias[: len(old.bias)].copy_(old.bias)
                    new.weight.narrow(dimension, 0, old.weight.shape[dimension]).copy_(old.weight)
                setattr(layer, name, new)

    def table(self):
        if self.stamps is None:
            return self.embed_tokens.weight
        return torch.cat([self.embed_tokens.weight[:FIRST_TIMESTAMP], self.stamps(self.stamp_features)])

    def cross(self, hidden):
        return [layer.encoder_attn.keys(hidden) for layer in self.layers]

    def hidden(self, ids, cross, past=None, table=None):
        """past: [(key, value)] a layer -> the last hidden state, and the present of every layer"""
        start, n = (ids == START).float(), ids.shape[1]
        if past is None:
            before, mask, starts = 0, torch.full((n, n), -1e9, device=ids.device).triu(1), start
        else:
            before, starts = past[0][0].shape[2], torch.cat([past[0][0][:, 0, :, 0], start], 1)
            # So that several tokens may be read at once: a draft is checked in one call instead of one a token.
            later = torch.arange(before + n, device=ids.device)[None] > torch.arange(n, device=ids.device)[:, None] + before
            mask = later.float() * -1e9
        position = torch.arange(n, device=ids.device)[None] + before - starts.argmax(1)[:, None]
        embedded = self.embed_tokens(ids) if table is None else F.embedding(ids, table)
        x = embedded + self.embed_positions(torch.where(position < 0, position + self.positions, position))
        present = []
        for i, layer in enumerate(self.layers):
            y = layer.self_attn_layer_norm(x)
            k, v = layer.self_attn.keys(y)
            q = layer.self_attn.queries(y)
            if i == 0:
                k, q = k * (1 - self.mark) + start[:, None, :, None] * self.mark, q * (1 - self.mark)
            if past is not None:
                k, v = torch.cat([past[i][0], k], 2), torch.cat([past[i][1], v], 2)
            present.append((k, v))
            x = x + layer.self_attn.attend(q, k, v, mask)
            y = layer.encoder_attn_layer_norm(x)
            x = x + layer.encoder_attn.attend(layer.encoder_attn.queries(y), *cross[i])
            x = x + layer.fc2(F.gelu(layer.fc1(layer.final_layer_norm(x))))
        return self.layer_norm(x), present

    def step(self, ids, cross, past=None, table=None):
        h, present = self.hidden(ids, cross, past, table)
        return h @ (self.embed_tokens.weight if table is None else table).t(), present


class Ears(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.phoneme = nn.Linear(config.d, config.phonemes)  # for training alone

    def smooth_stamps(self):
        if not self.config.smooth_stamps:
            self.decoder.smooth_stamps()
            self.config.smooth_stamps = True

    def settle(self):
        self.decoder.settle()
        self.config.smooth_stamps = False

    def widen(self, wide):
        self.decoder.widen(wide)
        self.config.wide = wide

    @torch.no_grad()
    def greedy(self, features, limit, languages):
        """[B,80,T] and a language a clip -> token lists without the end, without timestamps"""
        d, batch, device = self.decoder, features.shape[0], features.device
        table, cross = d.table(), d.cross(self.encoder(features))
        prompt = [[START, LANGUAGE_TOKENS[language], TRANSCRIBE, NO_TIMESTAMPS] for language in languages]
        logits, past = d.step(torch.tensor(prompt, device=device), cross, None, table)
        out, done = [[] for _ in range(batch)], [False] * batch
        for _ in range(limit):
            token = logits[:, -1].argmax(-1)
            for b in range(batch):
                done[b] = done[b] or int(token[b]) == END
                if not done[b]:
                    out[b].append(int(token[b]))
            if all(done):
                break
            logits, past = d.step(token[:, None], cross, past, table)
        return out

    def saved(self):
        return dict(network=self.state_dict(), config=asdict(self.config))


def from_checkpoint(path):
    parts = load(path)
    network = Ears(Config(**parts["config"]))
    network.load_state_dict(whole(parts["network"]))
    return network
