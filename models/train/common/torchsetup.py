"""What every script that uses PyTorch does first. Import it before anything else computes.

Debian 12's torch 1.13 returns wrong gradients of Conv1d through oneDNN, silently; and OpenBLAS takes its own threads, which torch's setting
does not limit. So oneDNN is off and one process uses one core; run a second process for the second core.
"""
import os
import random

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402  (after the environment is set)
import torch  # noqa: E402

torch.backends.mkldnn.set_flags(False)
torch.set_num_threads(1)


def seed_everything(seed):
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    return random.Random(seed)


def largest_gradient_error(network, loss):
    """Compares the gradients of loss(network, dtype) with those of a float64 copy -> the largest relative error. Expect below 1e-4: run
    it (`train --check`) once on every new machine or torch."""
    import copy

    def gradients(net, dtype):
        net.zero_grad()
        loss(net, dtype).backward()
        return {n: p.grad.clone().double() for n, p in net.named_parameters() if p.grad is not None}

    single, double = gradients(network, torch.float32), gradients(copy.deepcopy(network).double(), torch.float64)
    return max(((single[n] - double[n]).norm() / (double[n].norm() + 1e-9)).item() for n in double)
