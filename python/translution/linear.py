"""Products with matrices that all tokens share."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._library import has_kernels
from ._options import check_precision


class Linear(nn.Linear):
    """torch.nn.Linear through the library's own product, which is faster on a CPU and gives the
    same bits for any number of threads.

    precision  "float32", or "bf16": input and weight are rounded to bfloat16 and multiplied, sums
               are float32. The weight may be float32 or bfloat16
    """

    precision = "float32"  # of modules that were saved before there was a choice

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 device: Any = None, dtype: Any = None, *, precision: str = "float32") -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self.precision = check_precision(precision)

    def forward(self, input: Tensor) -> Tensor:
        if self.precision == "float32" and not has_kernels(input):
            return F.linear(input, self.weight, self.bias)
        biases = [] if self.bias is None else [self.bias]
        return torch.ops.translution.project(input, [self.weight], biases, True,
                                             self.precision)[0]

    def extra_repr(self) -> str:
        shown = "" if self.precision == "float32" else f", precision={self.precision}"
        return super().extra_repr() + shown
