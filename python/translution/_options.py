"""Options as the JSON that the library reads."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping


def options_text(what: str, options: Mapping[str, Any]) -> str:
    """JSON has no word for nan and inf, so they are refused here, by name."""
    for name, value in options.items():
        for number in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(number, float) and not math.isfinite(number):
                raise ValueError(f"{what}: {name}: expected a finite number, got {number}")
    return json.dumps(options)
