"""Options as the JSON that the library reads."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping


#: In which numbers matrices are multiplied. "bf16": operands of products are rounded to bfloat16;
#: sums, scores, softmax, norms, and gradients of weights stay in float32.
PRECISIONS = ("float32", "bf16")


def check_precision(precision: str) -> str:
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision '{precision}'; expected one of {', '.join(PRECISIONS)}")
    return precision


def options_text(what: str, options: Mapping[str, Any]) -> str:
    """JSON has no word for nan and inf, so they are refused here, by name."""
    for name, value in options.items():
        for number in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(number, float) and not math.isfinite(number):
                raise ValueError(f"{what}: {name}: expected a finite number, got {number}")
    return json.dumps(options)
