"""The library's optimizer."""

from __future__ import annotations

import math
import warnings
from typing import Any, Callable, Dict, Iterable, List, Literal, Optional, Tuple, Union

import torch
from torch import Tensor

# Arguments of torch.optim.AdamW that are not available here, with their defaults.
_NOT_AVAILABLE: Dict[str, Any] = dict(amsgrad=False, foreach=None, capturable=False,
                                      differentiable=False, fused=None)
_DECAYS = ("all", "matrices")


def _check_group(group: Dict[str, Any]) -> None:
    for name, default in _NOT_AVAILABLE.items():
        if group.get(name, default) != default:
            raise ValueError(f"AdamW: expected {name}={default}, got {group[name]}; it is not "
                             "available here: leave it out, or use torch.optim.AdamW")
    if group.get("decay", "all") not in _DECAYS:
        raise ValueError(f"AdamW: expected decay 'all' or 'matrices', got {group['decay']!r}")


class AdamW(torch.optim.AdamW):
    """torch.optim.AdamW in one pass over weights, gradients and moments, on all threads, with the
    same bits for any number of threads. Arguments, defaults, parameter groups and state_dicts are
    those of torch.optim.AdamW; amsgrad, foreach, capturable, differentiable and fused must have
    their defaults. Three options more, which change nothing unless they are set:

    decay           "all", or "matrices": weight decay only for tensors of two or more dimensions,
                    not for norms and biases. Also an option of a parameter group
    clip            largest global norm of the gradients; larger ones are scaled down to it in the
                    update. None or 0: no clipping
    skip_nonfinite  a step whose global gradient norm is not finite changes nothing. The first one
                    gives a warning; `skipped` counts them

    `norm` is the norm before clipping in the last step; None without clip and skip_nonfinite, which
    need it.
    """

    def __init__(self, params: Iterable[Any], lr: Union[float, Tensor] = 1e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: Optional[bool] = None, capturable: bool = False,
                 differentiable: bool = False, fused: Optional[bool] = None,
                 decay: Literal["all", "matrices"] = "all", clip: Optional[float] = None,
                 skip_nonfinite: bool = False) -> None:
        torch.ops.translution.adamw_  # raises LibraryError without the library
        _check_group(dict(amsgrad=amsgrad, foreach=foreach, capturable=capturable,
                          differentiable=differentiable, fused=fused, decay=decay))
        if clip is not None and not clip >= 0:
            raise ValueError(f"AdamW: expected a clip of 0 or more, got {clip}")
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                         maximize=maximize)
        self.defaults["decay"] = decay
        for group in self.param_groups:
            group.setdefault("decay", decay)
        self.clip = clip
        self.skip_nonfinite = skip_nonfinite
        self.norm: Optional[float] = None
        self.skipped = 0

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        _check_group(param_group)
        super().add_param_group(param_group)

    def __getstate__(self) -> Dict[str, Any]:  # of copies and pickles
        own = ("clip", "skip_nonfinite", "norm", "skipped")
        return {**super().__getstate__(), **{name: getattr(self, name) for name in own}}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("decay", self.defaults.get("decay", "all"))
            if group["amsgrad"]:
                raise ValueError("AdamW: the state was saved with amsgrad=True, which is not "
                                 "available here; use torch.optim.AdamW")

    def _state_of(self, parameter: Tensor) -> Dict[str, Any]:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        return state

    def _update(self, group: Dict[str, Any], parameters: List[Tensor], scale: float) -> None:
        """Updates the parameters of a group; those that are at the same step in one call."""
        by_step: Dict[int, List[Tensor]] = {}
        for parameter in parameters:
            state = self._state_of(parameter)
            state["step"] += 1
            by_step.setdefault(int(state["step"]), []).append(parameter)
        for steps, alike in by_step.items():
            states = [self.state[parameter] for parameter in alike]
            torch.ops.translution.adamw_(
                alike, [parameter.grad for parameter in alike],
                [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states],
                steps, float(group["lr"]), *map(float, group["betas"]), group["eps"],
                group["weight_decay"], -scale if group["maximize"] else scale,
                group["decay"] == "all")

    def _scale(self, gradients: List[Tensor]) -> Optional[float]:
        """The factor of the gradients; None for a step that is skipped."""
        if not self.clip and not self.skip_nonfinite:
            return 1.0
        self.norm = torch.ops.translution.gradient_norm(gradients).item() if gradients else 0.0
        if self.skip_nonfinite and not math.isfinite(self.norm):
            if self.skipped == 0:
                warnings.warn(f"AdamW: the norm of the gradients is {self.norm}; such steps change "
                              "nothing, and optimizer.skipped counts them", RuntimeWarning,
                              stacklevel=5)
            self.skipped += 1
            return None
        return self.clip / self.norm if self.clip and not self.norm <= self.clip else 1.0

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One update; `closure` computes the loss again and returns it."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = [(group, [p for p in group["params"] if p.grad is not None])
                  for group in self.param_groups]
        gradients = [p.grad for _, parameters in groups for p in parameters]
        if any(gradient.is_sparse for gradient in gradients):
            raise RuntimeError("AdamW does not support sparse gradients")
        scale = self._scale(gradients)
        if scale is not None:
            for group, parameters in groups:
                self._update(group, parameters, scale)
        return loss
