"""Products with matrices that all tokens share."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Linear(nn.Linear):
    """torch.nn.Linear through the library's own product, which is faster on a CPU and gives the
    same bits for any number of threads."""

    def forward(self, input: Tensor) -> Tensor:
        biases = [] if self.bias is None else [self.bias]
        return torch.ops.translution.project(input, [self.weight], biases, True)[0]
