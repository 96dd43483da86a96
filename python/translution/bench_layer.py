"""Times our layers beside the same layers in plain PyTorch, compiled with torch.compile, in turns.

    python3 -m translution.bench_layer

A layer of 7x7 patches with a class token, 192 channels, 3 heads of 64: forward and backward with all
gradients. The plain layers are what a careful user writes: Translution gathers a matrix for every
pair and makes one batched product per role and query, alpha-Translution gathers its small matrices,
and self-attention calls scaled_dot_product_attention. They have the weights of ours, and their
results are compared first. The last line is a training step of a ViT with our layers, compiled
against not compiled. Needs PyTorch 2 and a C++ compiler for torch.compile.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor, nn

from . import Attention, ViT, _layout, runtime
from ._signatures import Method

DIM, HEADS, GRID, TOKENS = 192, 3, (7, 7), 50
CASES: List[Tuple[Method, int]] = [("translution", 4), ("translution", 32), ("alpha_translution", 64), ("self_attention", 64),
         ("self_attention", 256)]


def make_layer(method: Method) -> Attention:
    grid = GRID if method != "self_attention" else ()
    return Attention(DIM, heads=HEADS, dim_head=DIM // HEADS, grid=grid, cls=bool(grid),
                     method=method)


class Careful(nn.Module):
    """The layer in plain PyTorch; it shares the parameters of ours."""

    slots: Tensor
    key_slots: Tensor

    def __init__(self, layer: Attention) -> None:
        super().__init__()
        self.layer = layer
        slots, mirror, _ = _layout.grid_slots(GRID, cls=True)
        self.register_buffer("slots", slots.flatten())
        self.register_buffer("key_slots", mirror[slots].flatten())

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (HEADS, -1))


class CarefulTranslution(Careful):
    def gather(self, table: Tensor, slots: Tensor) -> Tuple[Tensor, ...]:
        """One [N, C, C'] per query. The gradient of unbind is one stack; that of indexing would add
        a complete [N, N, C, C'] for each query."""
        return table.index_select(0, slots).unflatten(0, (TOKENS, TOKENS)).unbind()

    def forward(self, x: Tensor) -> Tensor:
        tokens, layer = x.transpose(0, 1), self.layer  # [N, B, C]
        tables = zip(tokens.unbind(), self.gather(layer.query, self.slots),
                     self.gather(layer.key, self.key_slots), self.gather(layer.value, self.slots))
        rows = []
        for query, wq, wk, wv in tables:
            q, k, v = query.expand_as(tokens) @ wq, tokens @ wk, tokens @ wv  # [N, B, C']
            scores = (self.heads(q) * self.heads(k)).sum(-1, keepdim=True)
            weights = (scores / math.sqrt(DIM // HEADS)).softmax(0)
            rows.append((weights * self.heads(v)).sum(0).flatten(1))  # [B, C']
        return layer.out(torch.stack(rows, 1))


class CarefulAlpha(Careful):
    def encode(self, rows: Tensor, table: Tensor, slots: Tensor) -> Tensor:
        """rows [N, N, B, r] of all pairs times the matrix of each pair."""
        return torch.matmul(rows, table.index_select(0, slots).unflatten(0, (TOKENS, TOKENS)))

    def forward(self, x: Tensor) -> Tensor:
        w, (B, N, _) = self.layer, x.shape
        q, k, v = (self.heads(x @ weight).transpose(1, 2) for weight in (w.query, w.key, w.value))
        small_q, small_k, small_v = ((x @ down).transpose(0, 1)  # [N, B, r]
                                     for down in (w.query_down, w.key_down, w.value_down))
        shape = (N, N, B, -1)
        Q = self.encode(small_q[:, None].expand(shape), w.query_offsets, self.slots)
        K = self.encode(small_k[None].expand(shape), w.key_offsets, self.key_slots)
        relative = (self.heads(Q) * self.heads(K)).sum(-1).permute(2, 3, 0, 1)  # [B, H, N, N]
        scores = (q @ k.transpose(-1, -2) + relative) / math.sqrt(DIM // HEADS)
        weights = scores.softmax(-1)
        V = self.heads(self.encode(small_v[None].expand(shape), w.value_offsets, self.slots))
        small = (weights.permute(2, 3, 0, 1)[..., None] * V).sum(1).flatten(2)  # [N, B, r]
        out = (weights @ v).transpose(1, 2).flatten(2) + (small @ w.value_up).transpose(0, 1)
        return w.out(out)


class CarefulAttention(Careful):
    def forward(self, x: Tensor) -> Tensor:
        w = self.layer
        qkv = x @ torch.cat([w.query, w.key, w.value], 1)
        q, k, v = qkv.unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        out = nn.functional.scaled_dot_product_attention(q, k, v)
        return w.out(out.transpose(1, 2).flatten(2))


CAREFUL = dict(translution=CarefulTranslution, alpha_translution=CarefulAlpha,
               self_attention=CarefulAttention)


def pass_of(module: Any, x: Tensor, d: Tensor) -> Callable[[], None]:
    """Forward and backward with all gradients."""
    def run() -> None:
        module.zero_grad(set_to_none=True)
        x.grad = None
        module(x).backward(d)
    return run


def require_same(module: Any, other: Any, layer: Attention) -> None:
    """Outputs and gradients of both on the same input."""
    results = []
    for each in (module, other):
        generator = torch.Generator().manual_seed(0)
        x, d = (torch.randn(2, TOKENS, DIM, generator=generator) for _ in range(2))
        x.requires_grad_()
        layer.zero_grad(set_to_none=True)
        out = each(x)
        out.backward(d)
        results.append([out.detach(), x.grad, *(p.grad for p in layer.parameters())])
    for ours, theirs in zip(*results):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4 * float(theirs.abs().max()))


def in_turns(runs: Dict[str, Callable[[], None]], rounds: int) -> Dict[str, float]:
    """Median milliseconds of each. Two passes per turn, of which the second is timed, as in a training:
    the memory of the first is that of another layer."""
    samples: Dict[str, List[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            run()
            start = time.perf_counter()
            run()
            samples[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(times) for name, times in samples.items()}


def time_layer(method: Method, batch: int, rounds: int) -> Dict[str, Any]:
    torch.manual_seed(0)
    layer = make_layer(method)
    careful = CAREFUL[method](layer)
    require_same(layer, careful, layer)
    x, d = torch.randn(batch, TOKENS, DIM, requires_grad=True), torch.randn(batch, TOKENS, DIM)
    times = in_turns({"ours": pass_of(layer, x, d), "plain": pass_of(careful, x, d),
                      "compiled": pass_of(torch.compile(careful), x, d)}, rounds)
    return {"what": f"{method}, batch {batch}", **times, "ratio": times["compiled"] / times["ours"]}


def time_model(method: Method, rounds: int) -> Dict[str, Any]:
    """A training step of a ViT with our layers, compiled and not."""
    torch.manual_seed(0)
    model = ViT.named("vit-a/12", method=method, image_size=84, channels=1, classes=10)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    images, labels = torch.randn(64, 1, 84, 84), torch.randint(10, (64,))

    def step_of(forward: Any) -> Callable[[], None]:
        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(forward(images), labels).backward()
            optimizer.step()
        return step
    times = in_turns({"eager": step_of(model), "compiled": step_of(torch.compile(model))}, rounds)
    return {"what": f"step of vit-a/12, {method}, batch 64", **times,
            "ratio": times["compiled"] / times["eager"]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m translution.bench_layer",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="of all, in turns (default 5)")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their names")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if not hasattr(torch, "compile"):
        parser.error(f"expected PyTorch 2 for torch.compile, got {torch.__version__}")
    torch.set_num_threads(runtime.threads)
    results = [time_layer(method, batch, arguments.rounds) for method, batch in CASES
               if arguments.only in f"{method}, batch {batch}"]
    results += [time_model(method, arguments.rounds) for method in ("alpha_translution",)
                if arguments.only in f"step, {method}"]
    if arguments.json:
        print(json.dumps({"torch": torch.__version__, "threads": runtime.threads,
                          "rounds": arguments.rounds, "results": results}))
        return
    print(f"PyTorch {torch.__version__}, {runtime.threads} threads, median of {arguments.rounds}; ms "
          "of forward and backward\n")
    for result in results:
        shown = "  ".join(f"{name} {result[name]:8.1f}" for name in ("ours", "eager", "plain", "compiled")
                          if name in result)
        print(f"{result['what']:45}{shown}   ratio {result['ratio']:.2f}")


if __name__ == "__main__":
    main()
