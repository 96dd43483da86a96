"""How the ops behave under torch.func.vmap: rules for a tensor that has one dimension more.

Where only features are mapped, the mapped dimension joins the batch, and the op is called once.
Otherwise (mapped weights, gradients of each sample) the op is called for each index and the results
are stacked.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

#: Ops with features [B, ...]: the arguments that have this dimension, or the items of a list.
_BATCHED: Dict[str, Dict[int, Optional[Tuple[int, ...]]]] = {
    "add_shared": {0: None},
    "attention": {0: (0, 1, 2, 3, 5, 7), 6: None, 7: None},  # features of terms, keep, mask
    "convolution": {0: None, 6: None},  # features, mask
    "rotary": {0: None},
}
#: Ops with features [..., C].
_LEADING = ("gelu", "layer_norm", "project")
_OTHERS = ("attention_backward", "convolution_backward", "cross_entropy", "cross_entropy_backward",
           "gelu_backward", "layer_norm_backward", "project_backward", "sum_first")
_WORKSPACE = 11  # the argument of attention: what is saved for backward has no batch dimension


def _loop(op: Any, size: int, in_dims: Any, args: Sequence[Any]) -> Tuple[Any, Any]:
    values, spec = tree_flatten(args)
    dims, _ = tree_flatten(in_dims)
    results: List[List[Tensor]] = []
    for index in range(size):
        picked = [value if dim is None else value.select(dim, index)
                  for value, dim in zip(values, dims)]
        parts, result_spec = tree_flatten(op(*tree_unflatten(picked, spec)))
        results.append(parts)
    stacked = [torch.stack(parts) for parts in zip(*results)]
    return (tree_unflatten(stacked, result_spec), tree_unflatten([0] * len(stacked), result_spec))


def _mapped(dims: Any) -> bool:
    return any(dim is not None for dim in tree_flatten(dims)[0])


def _only_features(in_dims: Sequence[Any], features: Dict[int, Optional[Tuple[int, ...]]]) -> bool:
    for at, dims in enumerate(in_dims):
        items = features.get(at, ())
        if items is not None and isinstance(dims, (list, tuple)):
            dims = [dim for item, dim in enumerate(dims) if item not in items]
        if items is not None and _mapped(dims):
            return False
    return True


def _join(value: Optional[Tensor], dim: Optional[int], size: int) -> Optional[Tensor]:
    """[.., size, ..] or without that dimension -> [size * B, ...]."""
    if value is None:
        return None
    value = value.expand(size, *value.shape) if dim is None else value.movedim(dim, 0)
    return value.flatten(0, 1)


def _fold(op: Any, size: int, in_dims: Any, args: Sequence[Any],
          features: Dict[int, Optional[Tuple[int, ...]]]) -> Tuple[Any, Any]:
    joined = list(args)
    for at, items in features.items():
        if at >= len(joined):
            continue
        if items is None:
            joined[at] = _join(joined[at], in_dims[at], size)
        else:
            joined[at] = [_join(value, in_dims[at][item], size) if item in items else value
                          for item, value in enumerate(joined[at])]
    if len(joined) > _WORKSPACE:
        joined[_WORKSPACE] = 0
    parts, spec = tree_flatten(op(*joined))
    # Results of one dimension are empty: outputs that this call does not have.
    dims = [0 if part.dim() > 1 else None for part in parts]
    parts = [part if dim is None else part.unflatten(0, (size, part.shape[0] // size))
             for part, dim in zip(parts, dims)]
    return tree_unflatten(parts, spec), tree_unflatten(dims, spec)


def _lead(op: Any, size: int, in_dims: Any, args: Sequence[Any]) -> Tuple[Any, Any]:
    parts, spec = tree_flatten(op(args[0].movedim(in_dims[0], 0), *args[1:]))
    return tree_unflatten(parts, spec), tree_unflatten([0] * len(parts), spec)


def _rule(name: str) -> Callable[..., Tuple[Any, Any]]:
    op = getattr(torch.ops.translution, name).default

    def rule(info: Any, in_dims: Any, *args: Any) -> Tuple[Any, Any]:
        size, features = info.batch_size, _BATCHED.get(name, {0: None})
        if name in _OTHERS or not _only_features(in_dims, features):
            return _loop(op, size, in_dims, args)
        if name in _LEADING:
            return _lead(op, size, in_dims, args)
        return _fold(op, size, in_dims, args, features)

    return rule


def register() -> None:
    """Registers the rules. They stay for the life of the process."""
    for name in (*_BATCHED, *_LEADING, *_OTHERS):
        torch.library.register_vmap(f"translution::{name}", _rule(name))
