"""The voice-activity network: three hops of band energies -> ReLU layer -> two GRUs -> the logit of speech in the hop before the newest."""
import torch
from torch import nn

from turns.features import BANDS

WIDTH = 32
MEAN, SCALE = -5.0, 1.6  # of the log10 energies; fixed, so that the product needs no statistics


class Activity(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(3 * BANDS, WIDTH)
        self.first = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.second = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x):
        """[batch, hops, BANDS] -> logits [batch, hops]. Before the first hop there is silence (-9)."""
        x = (x - MEAN) / SCALE
        before = torch.full_like(x[:, :2], (-9 - MEAN) / SCALE)
        padded = torch.cat([before, x], 1)
        x = torch.cat([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]], 2)
        x = torch.relu(self.front(x))
        x, _ = self.first(x)
        x, _ = self.second(x)
        return self.out(x)[..., 0]
