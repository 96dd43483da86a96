"""Colours of the page as colour-blind people see them."""

import re
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIGHT, DARK = (ROOT / "translution/report/chart.css").read_text().split("@media", 1)
RUNS = re.search(r"\[([\d, ]+)\]\[index", (ROOT / "apps/translution/serve/page/colours.js").read_text()).group(1).split(", ")

# What linear red, green and blue become: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation
# of Color Vision Deficiency", 2009, severity 1.
SEEN = {
    "all cones": [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
    "no red": [(0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)],
    "no green": [(0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)],
    "no blue": [(1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)],
}
XYZ = [(0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)]
WHITE = (0.9505, 1.0, 1.089)


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def lab(colour, eyes):
    """CIELAB of a colour "#rrggbb"."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    shares = [x / w for x, w in zip(times(XYZ, [min(1, max(0, v)) for v in times(SEEN[eyes], linear)]), WHITE)]
    x, y, z = (share ** (1 / 3) if share > 0.008856 else 7.787 * share + 16 / 116 for share in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("eyes", SEEN)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_differ(theme, eyes):
    def difference(one, other):  # 2 is just noticed side by side
        first, second = (lab(re.search(rf"{name}[:{{ a-z]+(#\w{{6}})", theme).group(1), eyes) for name in (one, other))
        return sum((a - b) ** 2 for a, b in zip(first, second)) ** 0.5

    assert difference("--right", "--wrong") > 25
    runs = [f"[.]c{number} " for number in RUNS]
    assert difference(*runs[:2]) > 50
    assert min(difference(*pair) for pair in combinations(runs[:5], 2)) > 10
