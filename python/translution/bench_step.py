"""Times a training step here beside the same step of the C++ program, in turns.

    PYTHONPATH=python /usr/bin/python3 -m translution.bench_step --program build/translution

A step is forward, cross entropy, backward, and AdamW with gradients clipped to norm 1, on one batch
of random images: what `translution bench step` times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import torch

from . import AdamW, ViT, runtime

MODEL: Dict[str, Any] = dict(image_size=84, channels=1, classes=10)
CLIP = 1.0


def make_step(model_name: str, method: Any, batch: int) -> Callable[[], None]:
    torch.manual_seed(0)
    model = ViT.named(model_name, method=method, **MODEL)
    optimizer = AdamW(model.parameters(), weight_decay=0.0, clip=CLIP)
    images = torch.randn(batch, MODEL["channels"], MODEL["image_size"], MODEL["image_size"])
    labels = torch.randint(MODEL["classes"], (batch,))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def time_here(step: Callable[[], None], repeats: int) -> List[float]:
    """Milliseconds of each step, after one that is not counted."""
    step()
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        samples.append(1e3 * (time.perf_counter() - start))
    return samples


def time_there(arguments: argparse.Namespace) -> float:
    """Milliseconds of the best of as many steps of the program."""
    command = [arguments.program, "bench", "step", "--model", arguments.model, "--method",
               arguments.method, "--batch", arguments.batch, "--repeats", arguments.repeats,
               "--threads", torch.get_num_threads(), "--json"]
    for name, value in MODEL.items():
        command += ["--" + name.replace("_", "-"), value]
    result = subprocess.run([str(word) for word in command], check=True, capture_output=True,
                            text=True)
    return json.loads(result.stdout)["step_ms"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m translution.bench_step",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=Path("build/translution"))
    parser.add_argument("--model", default="vit-a/12")
    parser.add_argument("--method", default="translution")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5, help="steps of a round")
    parser.add_argument("--rounds", type=int, default=4, help="of Python and C++ in turn")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if not arguments.program.is_file():
        parser.error(f"{arguments.program} does not exist; name the C++ program with --program")
    torch.set_num_threads(runtime.threads)  # as the program does
    step = make_step(arguments.model, arguments.method, arguments.batch)
    here: List[float] = []
    there: List[float] = []
    for _ in range(arguments.rounds):
        here.append(min(time_here(step, arguments.repeats)))
        there.append(time_there(arguments))
    if arguments.json:
        print(json.dumps({"python_ms": min(here), "cpp_ms": min(there)}))
        return
    print(f"{arguments.model} with {arguments.method}: batch {arguments.batch}, "
          f"{torch.get_num_threads()} threads, {arguments.rounds} rounds of {arguments.repeats}\n")
    for name, samples in [("Python", here), ("C++", there)]:
        print(f"  {name:8}{min(samples):9.1f} ms  (median of the rounds' best "
              f"{statistics.median(samples):.1f})")
    print(f"  Python / C++: {min(here) / min(there):.3f}")


if __name__ == "__main__":
    main()
