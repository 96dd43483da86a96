"""The library's optimizer."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, List, Optional, Tuple

import torch
from torch import Tensor


class AdamW(torch.optim.Optimizer):
    """AdamW with decoupled weight decay on the CPU: one pass over weights, gradients and moments on
    all threads, with the same bits for any number of threads.

    weight_decay applies to tensors of two or more dimensions only, not to norms and biases
    clip         largest global norm of the gradients, which are scaled down to it; 0: no clipping.
                 `norm` is the norm before clipping in the last step. If it is not finite, the step
                 changes nothing.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, clip: float = 0.0) -> None:
        if not (lr >= 0 and eps >= 0 and weight_decay >= 0 and clip >= 0
                and all(0 <= beta < 1 for beta in betas)):
            raise ValueError(f"AdamW: expected lr, eps, weight_decay and clip from 0 and betas in "
                             f"[0, 1), got {lr}, {eps}, {weight_decay}, {clip} and {betas}")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.clip = clip
        self.norm = 0.0

    def _moments(self, parameter: Tensor) -> Tuple[Tensor, Tensor]:
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            state["exp_avg_sq"] = torch.zeros_like(state["exp_avg"])
        return state["exp_avg"], state["exp_avg_sq"]

    def _update(self, group: Any, parameters: List[Tensor], steps: int, scale: float) -> None:
        """Updates parameters that are at the same step, in one call."""
        moments = [self._moments(parameter) for parameter in parameters]
        torch.ops.translution.adamw_(
            parameters, [parameter.grad for parameter in parameters], [m for m, _ in moments],
            [v for _, v in moments], steps, group["lr"], *group["betas"], group["eps"],
            group["weight_decay"], scale)
        for parameter in parameters:
            self.state[parameter]["step"] = steps

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = [(group, [p for p in group["params"] if p.grad is not None])
                  for group in self.param_groups]
        self.norm = torch.ops.translution.gradient_norm(
            [p.grad for _, parameters in groups for p in parameters]).item()
        if not math.isfinite(self.norm):
            return loss
        scale = self.clip / self.norm if 0 < self.clip < self.norm else 1.0
        for group, parameters in groups:
            by_step: dict = {}
            for parameter in parameters:
                done = self.state[parameter].get("step", 0)
                by_step.setdefault(done + 1, []).append(parameter)
            for steps, alike in by_step.items():
                self._update(group, alike, steps, scale)
        return loss
