"""The module that `swap` puts in place of another: the old object, of a class that derives from the
old one."""

from __future__ import annotations

import math
from typing import Any, Dict

import torch
from torch import Tensor, nn

from ._hosts import Host, Weights, host_of

_ROLES = ("query", "key", "value")
# Parameters that plain attention has as well.
_TAKEN = _ROLES + tuple(role + "_bias" for role in _ROLES) + ("out.weight", "out.bias")
# Zero at the start: of each group the first that a layer has. The others get a gradient from it.
_ZERO = (("query_offsets", "key_offsets"), ("value_offsets",), ("bias",), ("key_vectors",),
         ("value_vectors",))


class Swapped(nn.Module):
    """The base of swapped modules. Such a module is still an instance of its old class, with its
    hooks and attributes; its weights are in `attention`. It loads the old weights as well."""

    _host: Host
    _scale: float
    attention: Any

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        old = {name[len(prefix):]: name for name in list(state_dict) if name.startswith(prefix)
               and name[len(prefix):].split(".")[0] in self._host.parts}
        if old:
            tensors = {name: state_dict.pop(full) for name, full in old.items()}
            try:
                started = _started(self.attention, self._host.weights(tensors), self._scale)
            except (KeyError, RuntimeError):  # a missing name, another shape
                o, started = self.attention.options, self.attention.state_dict()
                shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in tensors.items())
                args[-1].append(f"{prefix[:-1]}: expected all weights of {self._host.name} with dim {o['dim']} "
                                f"and {o['heads']} heads of {o['dim_head']}, got {shapes}")
            if args[0].get("assign_to_params_buffers"):  # keeps the tensors, which are views for all slots
                started = {name: value.clone(memory_format=torch.contiguous_format)
                           for name, value in started.items()}
            state_dict.update({f"{prefix}attention.{name}": value for name, value in started.items()})
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __reduce__(self) -> Any:  # the class is made when it is needed, so pickle cannot name it
        return _blank, (type(self).__mro__[2],), self.__dict__


_classes: Dict[type, Any] = {}


def _swapped_class(base: type) -> Any:
    if base not in _classes:
        host = host_of(base)
        _classes[base] = type("Swapped" + base.__name__, (Swapped, base),
                              {"forward": host.forward, "_host": host, "__module__": __name__})
    return _classes[base]


def _blank(base: type) -> Any:
    made = _swapped_class(base)
    return made.__new__(made)


def _started(layer: Any, weights: Weights, scale: float) -> Dict[str, Tensor]:
    """The state of a layer that computes what `weights` do; other parameters as they are. Tables are
    views of one matrix."""
    state = dict(layer.state_dict())
    # Our scores are divided by sqrt(dim_head); another scale becomes part of the queries.
    factor = scale * math.sqrt(layer.options["dim_head"])
    for n, role in enumerate(_ROLES):
        matrix, bias = weights.roles[n], None if weights.biases is None else weights.biases[n]
        if role == "query" and not math.isclose(factor, 1):
            matrix, bias = matrix * factor, None if bias is None else bias * factor
        if bias is not None and state[role].dim() == 3:
            matrix = torch.cat([matrix, bias[None]])
        elif bias is not None:
            state[f"{role}_bias"] = bias
        state[role] = matrix.expand_as(state[role])
    zero = weights.out.new_zeros(())
    state["out.weight"] = weights.out
    none = torch.zeros_like(weights.out[:, 0]).requires_grad_(weights.out.requires_grad)
    state["out.bias"] = none if weights.out_bias is None else weights.out_bias
    for names in _ZERO:
        for name in [name for name in names if name in state][:1]:
            state[name] = zero.expand_as(state[name])
    return state


def replace(module: Any, layer: nn.Module) -> None:
    """Makes `module` a swapped one around `layer`, which takes its weights. Those that are frozen stay
    so, unless they become one per offset."""
    host, size = host_of(type(module)), host_of(type(module)).size(module)
    with torch.enable_grad():  # what is computed from a parameter requires a gradient if it does
        started = _started(layer, host.weights(dict(module.named_parameters())), size.scale)
    for name, value in started.items():
        target = layer.get_parameter(name)
        target.data.copy_(value.detach())
        if name in _TAKEN and target.dim() < 3:
            target.requires_grad_(value.requires_grad)
    for name in host.parts:
        if hasattr(module, name):
            delattr(module, name)
    module.__class__ = _swapped_class(type(module))
    module._scale = size.scale
    module.attention = layer.train(module.training)
