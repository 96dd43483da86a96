"""Times attention between points, part by part, beside the same in plain PyTorch, in turns.

    python3 -m translution.bench_points

Translution in three dimensions, forward and backward. Plain PyTorch gathers a row of channels for every
tap of every pair, as a careful user writes it; its encoding is one product per role. Dense pairs are timed
without plain PyTorch, which would need gigabytes.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from typing import Any, Callable, Dict, List

import torch

from . import _point_ops, runtime
from .points import PointAttention, ReferencePointAttention


def in_turns(runs: Dict[str, Callable[[], Any]], rounds: int) -> Dict[str, float]:
    """Median milliseconds of each, after one round that is not counted."""
    samples: Dict[str, List[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn > 0:
                samples[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(times) for name, times in samples.items()}


def time_case(radius: int, neighbours: int, batch: int, points: int, dim: int, rounds: int) -> Dict[str, Any]:
    torch.manual_seed(0)
    heads = max(1, dim // 64)
    # Points of a unit cube; the neighbours of one reach about as far as the lattice.
    reach = 0.62 * ((neighbours or points) / points) ** (1 / 3)
    options: Any = dict(dim=dim, heads=heads, axes=3, spacing=reach / radius, radius=radius,
                        neighbours=neighbours or None)
    layer, plain = PointAttention(**options), ReferencePointAttention(**options)
    plain.load_state_dict(layer.state_dict())
    x, positions = torch.randn(batch * points, dim, requires_grad=True), torch.rand(batch * points, 3)
    positions.requires_grad_()
    pairs = layer.pairs(positions, torch.arange(batch + 1) * points)
    pairs = pairs._replace(phi=pairs.phi.detach().requires_grad_())
    tables, ops = (layer.query, layer.key, layer.value), torch.ops.translution
    places, rows = pairs.rows[::3], list(zip(pairs.rows[1::3], pairs.rows[2::3]))
    query, key, slots, phi = pairs[:4]

    def leaf(encoded: torch.Tensor) -> torch.Tensor:
        return encoded.detach().requires_grad_()

    def encode() -> None:
        for table, row in zip(tables, rows):
            encoded = ops.point_encode(x, table, *row)
            encoded.backward(encoded)

    def mix() -> Callable[[], None]:
        q, k, v = (leaf(ops.point_encode(x, table, *row)) for table, row in zip(tables, rows))

        def run() -> None:
            scores = ops.pair_scores(q, places[0], k, places[1], query, key, slots, phi, heads)
            weights = ops.pair_softmax(scores, query, len(x), 0.125)
            ops.pair_mix(weights, v, places[2], query, key, slots, phi, len(x)).sum().backward()
        return run

    def plain_mix() -> Callable[[], None]:
        q, k, v = (leaf(_point_ops.point_encode(x, table)) for table in tables)
        mirror = list(range(len(layer.query)))[::-1]

        def run() -> None:
            scores = _point_ops.pair_scores(q, k, query, key, slots, phi, mirror, heads)
            weights = _point_ops.pair_softmax(scores, query, len(x), 0.125)
            _point_ops.pair_mix(weights, v, query, key, slots, phi, len(x)).sum().backward()
        return run

    def whole(module: Any) -> Callable[[], None]:
        return lambda: module.attend(x, pairs).sum().backward()

    runs = {"encode": encode, "mix": mix(), "layer": whole(layer)}
    if neighbours:
        runs.update({"plain mix": plain_mix(), "plain layer": whole(plain)})
    found: Dict[str, Any] = in_turns(runs, rounds)
    encoded_rows = sum(len(tokens) for tokens, _ in rows)
    found["encode GFLOP/s"] = 3 * 2e-6 * encoded_rows * dim * dim / found["encode"]
    return {"slots": len(layer.query), "neighbours": neighbours or points, "pairs": len(query),
            "rows of a token": encoded_rows / len(x) / 3, **found}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m translution.bench_points",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8, help="clouds (default 8)")
    parser.add_argument("--points", type=int, default=1024, help="of each cloud (default 1024)")
    parser.add_argument("--dim", type=int, default=192, help="channels, heads of 64 (default 192)")
    parser.add_argument("--neighbours", type=int, default=16, help="of a point; 0: all (default 16)")
    parser.add_argument("--radius", type=int, nargs="+", default=[1, 2], help="of the lattice (default 1 2)")
    parser.add_argument("--rounds", type=int, default=3, help="of all, in turns (default 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    a = parser.parse_args()
    torch.set_num_threads(runtime.threads)
    results = [time_case(radius, a.neighbours, a.batch, a.points, a.dim, a.rounds) for radius in a.radius]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if a.json:
        print(json.dumps({"torch": torch.__version__, "threads": runtime.threads, "results": results,
                          "peak_mib": peak}))
        return
    print(f"PyTorch {torch.__version__}, {runtime.threads} threads, {a.batch} clouds of {a.points} points, "
          f"{a.dim} channels; ms of forward and backward, median of {a.rounds}; peak {peak} MiB\n")
    names = list(results[0])
    rows = [[f"{r[name]:.0f}" if isinstance(r[name], float) else str(r[name]) for name in names] for r in results]
    widths = [max(len(cell) for cell in column) for column in zip(names, *rows)]
    for row in [names, *rows]:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths)))


if __name__ == "__main__":
    main()
