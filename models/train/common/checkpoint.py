"""Checkpoints that continue exactly: network, optimiser, counters and the state of every generator of random numbers. A run that is
stopped and resumed takes the same steps as one that was not (on the same machine and thread count).
"""
import os
import random

import torch


def save(path, **parts):
    """Atomically: an interrupted save leaves the old file."""
    torch.save(parts, path + ".tmp")
    os.replace(path + ".tmp", path)


def load(path, device="cpu"):
    return torch.load(path, map_location=device)


def generators(*sources: random.Random):
    """The states of torch's generator and of these sources."""
    return {"torch": torch.get_rng_state(), "sources": [s.getstate() for s in sources]}


def restore(states, *sources: random.Random):
    torch.set_rng_state(states["torch"].cpu())
    for source, state in zip(sources, states["sources"]):
        source.setstate(state)


def halved(state):
    """A small copy of a state dict: float16 where there are many numbers."""
    return {k: v.half() if v.is_floating_point() and v.numel() >= 1024 else v for k, v in state.items()}


def whole(state):
    return {k: v.float() if v.is_floating_point() else v for k, v in state.items()}


def mean(ours, theirs, share):
    """The weighted mean of two state dicts; `share` is that of `theirs`."""
    return {k: ours[k] * (1 - share) + theirs[k] * share for k in ours}
