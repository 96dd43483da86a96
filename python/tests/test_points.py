"""Attention between points: exact on grids, equal to its formula, its gradients, and what it refuses."""

import itertools
import math

import pytest
import torch
import translution
from translution import Attention, PointAttention, ReferencePointAttention, _point_ops, runtime
from translution.points import METHODS

pytestmark = pytest.mark.skipif(not translution.library_torch, reason="the library is not loaded")
OPS = torch.ops.translution
VARIANTS = {
    **{method: dict(method=method) for method in METHODS},
    "q": dict(roles="q"), "v": dict(roles="v"), "kv": dict(roles="kv"), "qkv_bias": dict(qkv_bias=True),
    "alpha_qk": dict(method="alpha_translution", roles="qk"),
    "alpha_only": dict(method="alpha_translution", shared_qkv=False),
    "alpha_mean": dict(method="alpha_translution", mixing="mean"),
}
NEAR = {"all": {}, "neighbours": dict(neighbours=3), "cutoff": dict(cutoff=1.2),
        "window": dict(sharing="window"), "given": {}, "distances": dict(distances=True)}


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def make(layer=PointAttention, **options):
    torch.manual_seed(0)
    return layer(**{**dict(dim=6, heads=2, dim_head=3, axes=2, spacing=0.7, radius=1, init="authors",
                           dtype=torch.float64), **options})  # tables whose matrices differ


def cloud(tokens, axes, seed=0):
    torch.manual_seed(seed)
    return randn(tokens, axes)


def gradients(layer, x, positions, *rest, **named):
    x, positions = x.clone().requires_grad_(), positions.clone().requires_grad_()
    out = layer(x, positions, *rest, **named)
    weights = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
    found = torch.autograd.grad((out * weights).sum(), [x, positions, *layer.parameters()],
                                allow_unused=True)
    return [out.detach(), *(torch.zeros(()) if g is None else g for g in found)]


def require_close(ours, theirs, tolerance=1e-12):
    for a, b in zip(ours, theirs):
        a, b = torch.broadcast_tensors(a.detach(), b.detach())
        assert (a - b).abs().max() <= tolerance * max(1.0, float(b.abs().max()))


def given_pairs(sizes):
    """Some pairs within each cloud, unsorted, one of them twice; the second token has none."""
    query, key, first = [], [], 0
    for n in sizes:
        query += [first + (3 * i) % n for i in range(2 * n) if (3 * i) % n != 1]
        key += [first + (5 * i + 2) % n for i in range(2 * n) if (3 * i) % n != 1]
        first += n
    return torch.tensor(query + query[:1]), torch.tensor(key + key[:1])


def grid_positions(sides, cls):
    axes = [torch.arange(side, dtype=torch.float64) for side in sides]
    at = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).view(-1, len(sides))
    return torch.cat([torch.full((1, len(sides)), math.nan, dtype=at.dtype), at]) if cls else at


@pytest.mark.parametrize("cls", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_on_a_grid_it_is_the_grid_layer(variant, axes, cls):
    options = dict(dim=6, heads=2, dim_head=3, cls=cls, dtype=torch.float64, **VARIANTS[variant])
    side = 3 if axes < 3 else 2
    kernel = dict(kernel_size=2 * side - 1) if variant == "convolution" else {}
    grid = Attention(grid=(side,) * axes, **options, **kernel)
    points = PointAttention(axes=axes, spacing=0.25, radius=side - 1, **options)
    points.load_state_dict(grid.state_dict())
    at = 0.25 * grid_positions((side,) * axes, cls) + 3
    x, d = randn(2, len(at), 6), randn(2, len(at), 6)
    results = []
    for call in (lambda x: grid(x), lambda x: points(x, at.expand(2, -1, -1))):
        leaf = x.clone().requires_grad_()
        out = call(leaf)
        layer = grid if len(results) == 0 else points
        results.append([out, *torch.autograd.grad(out, [leaf, *layer.parameters()], d)])
    require_close(*results)


def literal(layer, x, positions):
    """Translution of one cloud: W(offset) is formed for every pair, in loops."""
    heads, width = layer.options["heads"], layer.options["dim_head"]
    m, N = layer.radius, len(x)

    def matrix(table, offset):
        u = [min(max(o / h, -m), m) for o, h in zip(offset, layer.spacing.tolist() * len(offset))]
        total = torch.zeros_like(table[0])
        for slot, anchor in enumerate(itertools.product(range(-m, m + 1), repeat=layer.axes)):
            total = total + math.prod(max(0.0, 1 - abs(a - b)) for a, b in zip(u, anchor)) * table[slot]
        return total

    out = torch.zeros(N, heads * width, dtype=x.dtype)
    for i in range(N):
        scores, values = [], []
        for j in range(N):
            offset = (positions[i] - positions[j]).tolist()
            q = x[i] @ matrix(layer.query, offset)
            k = x[j] @ matrix(layer.key, [-o for o in offset])
            scores.append((q * k).view(heads, width).sum(1) / math.sqrt(width))
            values.append((x[j] @ matrix(layer.value, offset)).view(heads, width))
        weights = torch.stack(scores).softmax(0)
        out[i] = (weights[..., None] * torch.stack(values)).sum(0).flatten()
    return layer.out(out)


@pytest.mark.parametrize("axes,radius", [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)])
def test_is_its_formula(axes, radius):
    layer = make(axes=axes, radius=radius)
    x, at = randn(5, 6), cloud(5, axes)
    require_close([layer(x, at)], [literal(layer, x, at)])


@pytest.mark.parametrize("near", NEAR)
@pytest.mark.parametrize("cls", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_are_plain_pytorch(variant, axes, cls, near):
    options = dict(axes=axes, cls=cls, learn_spacing=True, **NEAR[near], **VARIANTS[variant])
    ours, plain = make(**options), make(ReferencePointAttention, **options)
    plain.load_state_dict(ours.state_dict())
    x, at = randn(2, 7, 6), cloud(14, axes).view(2, 7, axes)
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[1, 5:] = False
    pairs = given_pairs([7, 5]) if near == "given" else None
    expected = gradients(plain, x, at, mask, pairs=pairs)
    require_close(gradients(ours, x, at, mask, pairs=pairs), expected)
    runtime.implementation = "portable"
    try:
        require_close(gradients(ours, x, at, mask, pairs=pairs), expected)
    finally:
        runtime.implementation = "fused"


def call_with(layer, values, x, positions, first, pairs):
    """The layer with other tensors as its parameters; the pairs must not change as points move."""
    kept = {}
    for name, value in values.items():
        owner, _, leaf = name.rpartition(".")
        module = layer.get_submodule(owner)
        kept[name] = module._parameters.pop(leaf)
        setattr(module, leaf, value)
    try:
        return layer._project(layer.attend(x, layer.pairs(positions, first, pairs)))
    finally:
        for name, parameter in kept.items():
            owner, _, leaf = name.rpartition(".")
            delattr(layer.get_submodule(owner), leaf)
            layer.get_submodule(owner).register_parameter(leaf, parameter)


@pytest.mark.parametrize("near", NEAR)
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_are_finite_differences(variant, axes, near):
    """Of x, positions, spacing and all weights, off the planes of the lattice."""
    layer = make(axes=axes, cls=axes == 2, learn_spacing=True, **NEAR[near], **VARIANTS[variant])
    x, at, first = randn(6, 6), 1.3 * cloud(6, axes, seed=3), torch.tensor([0, 4, 6])
    pairs = given_pairs([4, 2]) if near == "given" else layer.pairs(at, first)[:2]
    names = [name for name, _ in layer.named_parameters()]
    leaves = [t.detach().clone().requires_grad_() for t in (x, at, *layer.parameters())]
    assert torch.autograd.gradcheck(
        lambda x, at, *values: call_with(layer, dict(zip(names, values)), x, at, first, pairs),
        leaves, fast_mode=True, eps=1e-6, atol=1e-7)


@pytest.mark.parametrize("cls", [False, True])
@pytest.mark.parametrize("variant", ["translution", "alpha_translution", "relative_bias"])
def test_padded_is_packed_is_one_at_a_time(variant, cls):
    layer = make(cls=cls, neighbours=4, **VARIANTS[variant])
    sizes, N = [6, 1, 4], 6
    x, at = randn(3, N, 6), cloud(3 * N, 2).view(3, N, 2)
    mask = torch.arange(N) < torch.tensor(sizes)[:, None]
    x[~mask], at[~mask] = math.nan, math.nan  # never read
    padded = layer(x, at, mask)
    packed = layer(x[mask], at[mask], batch=mask.nonzero()[:, 0])
    alone = [layer(x[b, :n], at[b, :n]) for b, n in enumerate(sizes)]
    assert torch.equal(padded[mask], packed)
    require_close([packed], [torch.cat(alone)], 1e-14)
    assert torch.equal(padded[~mask], torch.zeros_like(padded[~mask]))


def test_moving_all_points_changes_nothing_and_their_gradients_cancel():
    layer = make(radius=2)
    x, at = randn(8, 6), cloud(8, 2).requires_grad_()
    out = layer(x, at)
    require_close([layer(x, at + 5.0)], [out], 1e-11)
    (d,) = torch.autograd.grad(out.square().sum(), at)
    assert d.abs().max() > 1e-3 and d.sum(0).abs().max() < 1e-12


def test_scaling_positions_and_spacing_changes_nothing():
    layer, larger = make(radius=2, spacing=0.7), make(radius=2, spacing=2.8)
    larger.load_state_dict(layer.state_dict())
    x, at = randn(8, 6), cloud(8, 2)
    assert torch.equal(layer(x, at), larger(x, 4 * at))


def test_a_finer_lattice_with_interpolated_tables_is_the_same():
    coarse, fine = make(axes=1, radius=2, spacing=0.8), make(axes=1, radius=4, spacing=0.4)
    state = coarse.state_dict()
    for name in ("query", "key", "value"):
        table = state[name]
        between = (table[1:] + table[:-1]) / 2
        finer = torch.stack([table[:-1], between], 1).flatten(0, 1)
        state[name] = torch.cat([finer, table[-1:]])
    fine.load_state_dict(dict(state))
    x, at = randn(8, 6), cloud(8, 1)
    require_close([fine(x, at)], [coarse(x, at)])


def test_beyond_the_lattice():
    x, near = randn(2, 6), torch.tensor([[0.0, 0.0], [0.7, 0.0]], dtype=torch.float64)
    far, farther = near * 3, near * 9  # outside of radius 1 along the first axis
    clamped = make()
    assert torch.equal(clamped(x, near), clamped(x, far)) and torch.equal(clamped(x, far), clamped(x, farther))
    alone = torch.stack([clamped(x[i:i + 1], near[i:i + 1])[0] for i in range(2)])
    assert torch.equal(make(sharing="window")(x, far), alone)  # only itself is left


@pytest.mark.parametrize("variant", ["translution", "alpha_translution", "relative_key"])
def test_same_bits_for_any_number_of_threads(variant):
    layer = make(dim=24, heads=3, dim_head=8, axes=3, spacing=0.5, cls=True, learn_spacing=True,
                 dtype=torch.float32, **VARIANTS[variant])
    x, at = torch.randn(2, 90, 24), torch.randn(2, 90, 3)
    before, results = runtime.threads, []
    try:
        for threads in (1, 2, 3, 8):
            runtime.threads = threads
            results.append(gradients(layer, x, at))
    finally:
        runtime.threads = before
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


@pytest.mark.parametrize("neighbours,cutoff", [(0, 0.0), (1, 0.0), (4, 0.0), (40, 0.0), (0, 1.0), (3, 1.0)])
def test_pairs_have_deterministic_ties(neighbours, cutoff):
    grid = grid_positions((5, 4), False)  # many equal distances
    at = torch.cat([grid, cloud(13, 2), grid[:1], grid[:1]])
    first = torch.tensor([0, 20, 33, 33, 35])
    special = torch.zeros(35, dtype=torch.bool)
    special[[0, 20]] = True
    for marks in (None, special):
        ours = OPS.point_pairs(at, first, neighbours, cutoff, marks)
        plain = _point_ops.point_pairs(at, first, neighbours, cutoff, marks)
        assert torch.equal(ours[0], plain[0]) and torch.equal(ours[1], plain[1])


def test_pairs_of_the_caller_in_any_order():
    layer = make()
    x, at = randn(5, 6), cloud(5, 2)
    query, key = torch.tensor([3, 0, 0, 4, 1, 2]), torch.tensor([1, 4, 2, 4, 0, 2])
    order = torch.tensor([5, 2, 0, 1, 4, 3])
    out = layer(x, at, pairs=(query, key))
    assert torch.equal(layer(x, at, pairs=(query[order], key[order])), out)
    alone = layer(x[[3, 1]], at[[3, 1]], pairs=(torch.tensor([0]), torch.tensor([1])))
    require_close([alone[0]], [out[3]])


def test_only_rows_that_pairs_read_are_encoded():
    layer = make(axes=3, radius=2)  # 125 slots, 8 taps
    x, at = randn(30, 6), 0.9 * cloud(30, 3).requires_grad_()
    given = (torch.arange(30), torch.arange(30).roll(1))
    pairs = layer.pairs(at, torch.tensor([0, 30]), given)
    assert [len(tokens) for tokens in pairs.rows[1::3]] == [8 * 30] * 3
    plain = make(ReferencePointAttention, axes=3, radius=2)
    plain.load_state_dict(layer.state_dict())
    require_close(gradients(layer, x, at.detach(), pairs=given), gradients(plain, x, at.detach(), pairs=given))


def test_on_a_grid_one_row_of_eight_is_encoded():
    layer, at = make(axes=3, radius=2, spacing=1.0), grid_positions((3, 3, 3), False)
    pairs = layer.pairs(at, torch.tensor([0, 27]))
    assert [len(tokens) for tokens in pairs.rows[1::3]] == [27 * 27] * 3
    at.requires_grad_()  # whose gradients read the other corners as well
    assert len(layer.pairs(at, torch.tensor([0, 27])).rows[1]) > 27 * 27


def test_learned_spacing_stays_within_bounds():
    layer = make(spacing=[0.5, 2.0], learn_spacing=True)
    assert torch.allclose(layer.spacing, torch.tensor([0.5, 2.0], dtype=torch.float64))
    with torch.no_grad():
        layer.log_spacing.copy_(torch.tensor([-40.0, 40.0]))
    assert torch.allclose(layer.spacing, torch.tensor([0.125, 8.0], dtype=torch.float64))
    layer.reset_parameters()
    assert torch.allclose(layer.log_spacing.exp(), torch.tensor([0.5, 2.0], dtype=torch.float64))


def test_large_coordinates_in_float64_beside_a_float32_layer():
    layer = make(dtype=torch.float32, learn_spacing=True)
    x, at = torch.randn(8, 6), cloud(8, 2)
    far = at + 2.0 ** 30  # differences are still known to 2 ** -22
    near, away = gradients(layer, x, at), gradients(layer, x, far)
    assert away[2].dtype == torch.float64
    require_close(away, near, 1e-4)
    assert not torch.allclose(layer(x, far.float()), near[0], atol=1e-2)


def test_offsets_that_overflow_are_beyond_the_lattice():
    layer, x = make(learn_spacing=True), randn(3, 6)
    at = torch.tensor([[0.0, 0.0], [1.7e308, 0.1], [-1.7e308, 0.2]], dtype=torch.float64)
    assert all(g.isfinite().all() for g in gradients(layer, x, at))


@pytest.mark.parametrize("neighbours", [0, 3])
def test_equal_points(neighbours):
    layer, at = make(neighbours=neighbours or None), torch.zeros(40, 2, dtype=torch.float64)
    pairs = layer.pairs(at, torch.tensor([0, 40]))
    assert pairs.key[pairs.query == 17].tolist() == (list(range(3)) if neighbours else list(range(40)))


def logit_spread(layer, offset):
    """The standard deviation of the score of a pair, by the offset on the lattice."""
    torch.manual_seed(1)
    x = torch.randn(2000, 48, dtype=torch.float64)
    at = torch.tensor([[0.0] * 3, [offset * 0.7] * 3], dtype=torch.float64).repeat(1000, 1)
    query = torch.arange(0, 2000, 2)
    pairs = layer.pairs(at, torch.arange(0, 2001, 2), (query, query + 1))
    q, k = (OPS.point_encode(x, table, *pairs.rows[3 * i + 1:3 * i + 3])
            for i, table in enumerate((layer.query, layer.key)))
    return float(OPS.pair_scores(q, pairs.rows[0], k, pairs.rows[3], *pairs[:4], 1).std())


def test_scores_start_as_wide_between_lattice_points_as_on_them():
    options = dict(dim=48, heads=1, dim_head=48, axes=3)
    apart, close = make(**options), make(**options, init="scaled")
    assert logit_spread(apart, 0.5) < 0.25 * logit_spread(apart, 1.0)  # why they start close
    assert 0.9 < logit_spread(close, 0.5) / logit_spread(close, 1.0) < 1.1
    differences = (close.query[1:] - close.query[:-1]).abs().mean() / close.query.abs().mean()
    assert 0.05 < differences < 0.3


@pytest.mark.parametrize("variant", VARIANTS)
def test_bf16_is_its_reference(variant):
    options = dict(dim=24, heads=2, dim_head=12, axes=2, cls=True, neighbours=5, learn_spacing=True,
                   precision="bf16", dtype=torch.float32, **VARIANTS[variant])
    ours, plain = make(**options), make(ReferencePointAttention, **options)
    plain.load_state_dict(ours.state_dict())
    x, at = torch.randn(40, 24), torch.randn(40, 2)
    expected, found = gradients(plain, x, at), gradients(ours, x, at)
    require_close(found[:1], expected[:1], 2e-3)
    require_close(found, expected, 4e-2)
    runtime.implementation = "portable"
    try:
        require_close(gradients(ours, x, at), found, 2e-2)
    finally:
        runtime.implementation = "fused"
    if variant in ("translution", "alpha_translution", "convolution"):
        exact = make(**{**options, "precision": "float32"})
        assert not torch.equal(exact(x, at), found[0])


def test_float32_and_repr():
    layer = make(dtype=torch.float32, neighbours=4)
    assert layer(torch.randn(5, 6), torch.randn(5, 2)).dtype == torch.float32
    assert repr(layer).startswith(
        "PointAttention(\n  6, heads=2, dim_head=3, axes=2, spacing=[0.7], radius=1, "
        "method=translution, neighbours=4")


@pytest.mark.parametrize("variant", ["translution", "alpha_translution", "self_attention", "convolution"])
def test_autocast_multiplies_in_bf16(variant):
    options = dict(axes=2, neighbours=5, dtype=torch.float32, **VARIANTS[variant])
    layer, rounded = make(**options), make(**options, precision="bf16")
    x, at = torch.randn(20, 6), torch.randn(20, 2)
    pairs = layer.pairs(at, torch.tensor([0, 20]))
    with torch.autocast("cpu", torch.bfloat16):
        found, whole = layer.attend(x.bfloat16().float(), pairs), layer(x.bfloat16(), at)
    assert torch.equal(found, rounded.attend(x, pairs))
    assert whole.isfinite().all()


def wrong_calls(kind=PointAttention):
    """Calls of a layer, and what the message says. PyTorch and LibTorch name types differently."""
    x, at = torch.zeros(4, 6), torch.zeros(4, 2)
    tokens = torch.arange(4)
    nan, far = at.clone(), torch.tensor([4, 0, 0, 0])
    nan[2, 1] = math.nan
    layer = make(kind, dtype=torch.float32)
    float32, int32 = ("Float", "Int") if kind is PointAttention else ("torch.float32", "torch.int32")

    def build(**options):
        return lambda: make(kind, dtype=torch.float32, **options)

    def call(*arguments, **named):
        return lambda: layer(*arguments, **named)
    return {
        "axes": (build(axes=4), "points: axes must be 1, 2 or 3, got 4"),
        "no axes": (build(axes=0), "points: axes must be 1, 2 or 3, got 0"),
        "radius": (build(radius=0), "points: radius must be 1 or more lattice points to each side, got 0"),
        "method": (build(method="rotary"), "points: method 'rotary' does not work on points; expected one of"),
        "gate": (build(method="gated_position"), "points: method 'gated_position' does not work on points"),
        "sharing": (build(sharing="none"), "points: sharing must be 'direction', which moves"),
        "neighbours": (build(neighbours=0), "points: neighbours must be 1 or more, or None for all; got 0"),
        "cutoff": (build(cutoff=-1.0), "points: cutoff must be positive, or None; got -1.0"),
        "grid": (build(grid=(2, 2)), "unexpected keyword argument 'grid'"),
        "causal": (build(causal=True), "unexpected keyword argument 'causal'"),
        "encoding": (build(encoding="absolute"), "unexpected keyword argument 'encoding'"),
        "precision": (build(precision="half"), "precision"),
        "spacing 0": (build(spacing=0.0), "points: spacing must be positive, got 0.0; give it in the unit"),
        "spacing negative": (build(spacing=[1.0, -2.0]), "points: spacing must be positive, got -2.0"),
        "spacing nan": (build(spacing=math.nan), "points: spacing must be positive, got nan"),
        "spacing inf": (build(spacing=math.inf), "points: spacing must be positive, got inf"),
        "spacings": (build(spacing=[1.0, 1.0, 1.0]),
                     "points: spacing must have 1 number or one for each of 2 axes, got 3"),
        "spacings of distances": (build(spacing=[1.0, 1.0], distances=True),
                                  "points: distances have one spacing, got 2"),
        "no spacing": (lambda: kind(6, 2, axes=2), "spacing"),
        "x dims": (call(torch.zeros(6), at), "points: x must be [B, N, 6] or packed [R, 6], got [6]"),
        "channels": (call(torch.zeros(4, 5), at), "points: x must have 6 channels, got 5"),
        "positions": (call(x, at[:3]), "points: x is [4, 6] and positions are [3, 2]; expected 2 coordinates "
                      "for every token"),
        "position axes": (call(x, torch.zeros(4, 3)), "positions are [4, 3]; expected 2 coordinates"),
        "padded positions": (call(x[None], at), "x is [1, 4, 6] and positions are [4, 2]; expected"),
        "whole positions": (call(x, tokens[:, None].expand(4, 2)),
                            "points: positions must be floating-point numbers, got"),
        "nan": (call(x, nan), "the position of token 2 is not finite"),
        "inf": (call(x, nan.nan_to_num(math.inf)), "the position of token 2 is not finite"),
        "mask type": (call(x[None], at[None], torch.ones(1, 4)),
                      f"points: the mask must be bool, true for a token, got {float32}; convert it"),
        "mask shape": (call(x[None], at[None], torch.ones(1, 3, dtype=torch.bool)),
                       "points: the mask must be [1, 4], got [1, 3]"),
        "mask packed": (call(x, at, torch.ones(1, 4, dtype=torch.bool)), "points: mask belongs to padded x"),
        "batch padded": (call(x[None], at[None], batch=tokens), "points: batch belongs to packed x"),
        "batch type": (call(x, at, batch=tokens.int()), f"points: batch must be int64 [4], got {int32} [4]"),
        "batch size": (call(x, at, batch=tokens[:3]), "points: batch must be int64 [4], got"),
        "batch order": (call(x, at, batch=torch.tensor([0, 1, 0, 1])), "points: batch must ascend from 0"),
        "batch negative": (call(x, at, batch=tokens - 1), "points: batch must ascend from 0 or more"),
        "pair type": (call(x, at, pairs=(tokens.int(), tokens)),
                      f"points: query of the pairs must be int64 [E], got {int32} [4]"),
        "pair range": (call(x, at, pairs=(tokens, far)),
                       "points: key of the pairs must be 0 to 3, the tokens, got 4"),
        "pair negative": (call(x, at, pairs=(tokens - 1, tokens)),
                          "points: query of the pairs must be 0 to 3, the tokens, got -1"),
        "pair count": (call(x, at, pairs=(tokens, tokens[:2])), "points: the pairs have 4 queries and 2 keys"),
        "pair across": (call(x, at, batch=tokens // 2, pairs=(tokens, tokens.flip(0))),
                        "points: pair 0 joins the tokens 0 and 3 of different clouds"),
    }


def wrong_ops():
    """Calls of the ops that would read beyond their arguments, or give something else."""
    at, query, one = torch.zeros(4, 2), torch.arange(4), torch.ones(1)
    q, phi, slots = torch.zeros(4, 6), torch.ones(4, 1), torch.zeros(4, 1, dtype=torch.long)
    far, places = torch.tensor([4, 0, 0, 0]), torch.arange(4)[:, None]
    ones, table = torch.ones(4, 2), torch.zeros(3, 6, 4)
    few = torch.tensor([0, 2, 4, 4])

    def scores(q=q, q_places=None, k=q, k_places=None, query=query, key=query, slots=None, phi=None, heads=2):
        return lambda: OPS.pair_scores(q, q_places, k, k_places, query, key, slots, phi, heads)

    def encode(x=q, table=table, tokens=query % 2, first=few):
        return lambda: OPS.point_encode(x, table, tokens, first)
    backward, mix = OPS.pair_scores_backward, OPS.pair_mix
    return {
        "unsorted": (scores(query=query.flip(0)), "pair_scores: the pairs must be sorted by query"),
        "query": (scores(query=query + 1), "pair_scores: query must be 0 to 3, the tokens of the encoding, got 4"),
        "key": (lambda: mix(ones, q, None, query, far, None, None, 4),
                "pair_mix: key must be 0 to 3, the tokens of the encoding, got 4"),
        "negative": (scores(key=query - 1), "pair_scores: key must be 0 to 3, the tokens of the encoding, got -1"),
        "slots": (scores(q_places=places, slots=slots + 3, phi=phi),
                  "pair_scores: slots must be 0 to 0, the slots of the encoding, got 3"),
        "places": (scores(q_places=places + 1, slots=slots, phi=phi),
                   "pair_scores: places must be -1 to 3, the rows of the encoding, or -1 for none, got 4"),
        "places type": (scores(q_places=places.int(), slots=slots, phi=phi),
                        "pair_scores: q_places must be int64, got Int"),
        "taps": (scores(q_places=places), "pair_scores: an encoding with places needs slots [E, T] and phi"),
        "phi": (scores(q_places=places, slots=slots, phi=phi.expand(4, 2)),
                "pair_scores: slots are [4, 1] but phi is [4, 2]"),
        "slots alone": (scores(slots=slots), "pair_scores: slots [E, T] and phi [E, T] come together"),
        "heads": (scores(heads=4), "pair_scores: the width 6 of q does not split evenly among 4 heads"),
        "no heads": (scores(heads=0), "pair_scores: expected 1 or more heads, got 0"),
        "width": (scores(k=q[:, :3], heads=3), "pair_scores: k has size 3 in dimension 1, expected 6"),
        "types": (scores(k=q.double()), "pair_scores: k is Double but q is Float"),
        "index type": (lambda: OPS.pair_softmax(ones, query.int(), 4, 1.0),
                       "pair_softmax: query must be int64, got Int"),
        "tokens": (lambda: OPS.pair_softmax(ones, query, 3, 1.0),
                   "pair_softmax: query must be 0 to 2, the tokens, got 3"),
        "backward key": (lambda: backward(ones, q, None, q, None, query, far, None, None, False),
                         "pair_scores: key must be 0 to 3, the tokens of the encoding, got 4"),
        "backward shape": (lambda: backward(ones[:3], q, None, q, None, query, query, None, None, False),
                           "pair_scores: d has size 3 in dimension 0, expected 4"),
        "mix tokens": (lambda: mix(ones, q, None, query, query, None, None, 3),
                       "pair_mix: query must be 0 to 2, the tokens, got 3"),
        "mix weights": (lambda: mix(ones[:3], q, None, query, query, None, None, 4),
                        "pair_mix: weights has size 3 in dimension 0, expected 4"),
        "encode table": (encode(table=torch.zeros(3, 5, 4)),
                         "point_encode: table has size 5 in dimension 1, expected 6"),
        "encode tokens": (encode(tokens=query + 2),
                          "point_encode: the tokens of a slot must ascend within 0 to 3, got 4 in row 2"),
        "encode order": (encode(tokens=query.flip(0)), "point_encode: the tokens of a slot must ascend"),
        "encode first": (encode(first=few + 1), "point_encode: first must rise from 0 to 4, the number of rows"),
        "encode slots": (encode(first=few[:3]),
                         "point_encode: first must be int64 [4], one more than there are slots"),
        "taps axes": (lambda: OPS.point_phi(torch.zeros(4, 4), one, query, query, 1),
                      "point_taps: expected 1 to 3 axes, got 4"),
        "taps spacing": (lambda: OPS.point_phi(at, -one, query, query, 1),
                         "point_taps: spacing must be positive, got -1"),
        "taps radius": (lambda: OPS.point_phi(at, one, query, query, -1),
                        "point_taps: expected a radius of 0 or more, got -1"),
        "taps key": (lambda: OPS.point_slots(at, one, query, far, 1),
                     "point_taps: key must be 0 to 3, the tokens, got 4"),
        "first": (lambda: OPS.point_pairs(at, torch.tensor([0, 3])),
                  "point_pairs: first must rise from 0 to 4, the number of tokens"),
        "special": (lambda: OPS.point_pairs(at, torch.tensor([0, 4]), 0, 0.0, torch.ones(3, dtype=torch.bool)),
                    "point_pairs: special must be bool [4], one for each token"),
        "list": (lambda: OPS.point_attention(q, "query", [table], [q], 2, 3),
                 "point_attention: expected the 13 tensors of list_points, got 1"),
    }


def refuse(calls, name):
    call, message = calls[name]
    with pytest.raises((ValueError, RuntimeError, TypeError)) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", [PointAttention, ReferencePointAttention])
@pytest.mark.parametrize("name", wrong_calls() if translution.library_torch else [])
def test_wrong_calls_get_a_message(name, kind):
    refuse(wrong_calls(kind), name)


@pytest.mark.parametrize("implementation", ["fused", "portable"])
@pytest.mark.parametrize("name", wrong_ops() if translution.library_torch else [])
def test_wrong_ops_get_a_message(name, implementation):
    runtime.implementation = implementation
    try:
        refuse(wrong_ops(), name)
    finally:
        runtime.implementation = "fused"
