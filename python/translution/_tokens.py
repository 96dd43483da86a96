"""Which tokens a call is about: its query rows, its grid, and relations instead of a grid."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Union

import torch
from torch import Tensor

#: Query rows: token indices, as an int64 tensor or as plain ints; tracing records plain ints.
Rows = Union[Tensor, Sequence[int]]
#: The sides of a grid; a single int is a sequence of that length.
Grid = Union[int, Sequence[int]]


def row_list(rows: Optional[Rows]) -> List[int]:
    """Query rows as plain ints; an empty list means all."""
    if rows is None:
        return []
    if isinstance(rows, Tensor):
        if rows.dim() != 1 or rows.dtype != torch.long:
            raise ValueError("attention: rows must be a vector of int64 token indices, got "
                             f"{rows.dtype} {list(rows.shape)}")
        rows = rows.tolist()
    if len(rows) == 0:
        raise ValueError("attention: rows is empty; name one or more query rows")
    return [int(row) for row in rows]


def grid_list(grid: Optional[Grid]) -> List[int]:
    """The grid of a call as plain ints; an empty list means the layer's."""
    if grid is None:
        return []
    grid = [grid] if isinstance(grid, int) else grid
    if len(grid) == 0:
        raise ValueError("attention: grid is empty; name a side for each axis")
    return [int(side) for side in grid]


class Relation(NamedTuple):
    """A relation between tokens instead of the offsets of a grid, such as the bonds of a molecule.

    slots:     int64 [N, N]; the weight row of the pair "i gathers from j", or -1 for no pair
    num_slots: how many rows there are
    mirror:    the key row of each row; empty: the row of the reverse pair
    """

    slots: Tensor
    num_slots: int
    mirror: Sequence[int] = ()
