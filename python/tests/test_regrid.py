"""Layers and models on another grid, against the definition written out."""

import copy
import itertools

import pytest
import torch

import translution
from translution.functional import pairs_text

METHODS = torch.ops.translution.method_names()


def offsets_of(layer):
    """The offset of every row of a table, in order; None for those of the class token."""
    o = layer.options
    reach = [range(1 - side, side) for side in o["grid"]]
    if o["causal"]:
        reach = [range(o["grid"][0])]
    if o["method"] == "convolution":
        half = o["kernel_size"] // 2
        reach = [range(max(-half, 1 - side), min(half, side - 1) + 1) for side in o["grid"]]
    return [*itertools.product(*reach), *([None] * 3 if o["cls"] else [])]


def positions_of(grid, cls):
    return [*([None] if cls else []), *itertools.product(*map(range, grid))]


def nearest(old, new, rows):
    """Equal points have equal rows; others that of the nearest, the first of several."""
    def distance(a, b):
        return (a is None) != (b is None), sum((x - y) ** 2 for x, y in zip(a or (), b or ()))

    places = iter([n for n, point in enumerate(old) if point is None])
    source = [next(places) if point is None else
              min(range(len(old)), key=lambda n: distance(old[n], point)) for point in new]
    return rows[source]


def bicubic(old, new, old_sides, new_sides, rows):
    """Rows of old points; the rest of the old box stretched over the new one."""
    first = 1 if old[0] is None else 0
    box = rows[first:first + old_sides[0] * old_sides[1]].reshape(*old_sides, -1)
    stretched = torch.nn.functional.interpolate(box.permute(2, 0, 1)[None], new_sides, mode="bicubic",
                                                align_corners=True)[0]
    stretched = stretched.permute(1, 2, 0).reshape(-1, *rows.shape[1:])
    expected = nearest(old, new, rows)
    for n, point in enumerate(new):
        if point is not None and point not in old:
            expected[n] = stretched[n - first]
    return expected


def is_table(name, tensor):
    return tensor.dim() == 3 or name in ("key_vectors", "value_vectors", "bias")


@pytest.mark.parametrize("kind", [translution.Attention, translution.ReferenceAttention])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grid", [(5, 4), (2, 2), (1, 6), (3, 4)])
def test_rows_of_a_layer(kind, method, grid):
    torch.manual_seed(0)
    layer = kind(8, heads=2, dim_head=4, grid=(3, 4), cls=True, method=method, dropout=0.1,
                 dtype=torch.float64).eval()
    layer.out.bias.requires_grad_(False)
    before = copy.deepcopy(layer.state_dict())
    new, notes = translution.regrid(layer, grid=grid)
    assert type(new) is type(layer) and new.options == {**layer.options, "grid": list(grid)}
    old, points, noted = offsets_of(layer), offsets_of(new), {}
    for name, tensor in new.state_dict().items():
        expected = before[name]
        if is_table(name, expected):
            kept = sum(point is None or point in old for point in points)
            noted[name] = (len(old), len(points), kept, len(points) - kept)
            expected = nearest(old, points, expected)
        assert torch.equal(tensor, expected), name
    assert {note.name: note[1:5] for note in notes} == noted
    assert not new.training and not new.out.bias.requires_grad and new.out.weight.requires_grad
    assert all(torch.equal(tensor, before[name]) for name, tensor in layer.state_dict().items())
    assert new(torch.randn(2, grid[0] * grid[1] + 1, 8, dtype=torch.float64)).isfinite().all()


def test_pairs_are_those_of_the_layers():
    for options in [dict(grid=(3, 4), cls=True), dict(grid=9, causal=True), dict(grid=(2, 3, 4)),
                    dict(grid=(5, 5), sharing="direction", radius=2),
                    dict(grid=(5, 5), sharing="logarithmic", radius=1, cls=True),
                    dict(grid=(2, 3), encoding="absolute", causal=True)]:
        layer = translution.Attention(8, method="relative_bias", **options)
        assert pairs_text(**options) == layer._pairs


def test_shared_offsets_and_sequences():
    layer = translution.Attention(4, grid=6, causal=True, method="relative_bias")
    new, [note] = translution.regrid(layer, grid=9)
    assert torch.equal(new.bias, nearest(offsets_of(layer), offsets_of(new), layer.bias))
    assert str(note) == "bias: 6 -> 9 rows, 6 kept, 3 filled from the nearest"
    shared = translution.Attention(4, grid=(6, 6), sharing="direction", radius=2, cls=True,
                                   method="relative_bias")
    assert len(shared.bias) == translution.functional.count_rows((6, 6), cls=True,
                                                                 sharing="direction", radius=2)
    new, [note] = translution.regrid(shared, grid=(8, 7))
    assert (note.kept, note.filled) == (len(shared.bias), 0) and torch.equal(new.bias, shared.bias)


@pytest.mark.parametrize("image_size", [(24, 16), 8, (12, 20), (16, 12)])
@pytest.mark.parametrize("fill", ["nearest", "bicubic"])
def test_a_vit(image_size, fill):
    torch.manual_seed(0)
    model = translution.ViT(depth=2, dim=8, heads=2, dim_head=4, mlp_dim=8, image_size=(16, 12),
                            patch_size=4, channels=1, classes=3, input_embedding=True,
                            init="authors")
    new, notes = translution.regrid(model, image_size=image_size, fill=fill)
    size = [image_size] * 2 if isinstance(image_size, int) else list(image_size)
    assert new.options == {**model.options, "image_size": size}
    if size == [16, 12]:
        assert all(note.filled == 0 for note in notes)
    before = model.state_dict()
    sides = [model.plan["grid"], new.plan["grid"]]
    for name, tensor in new.state_dict().items():
        expected, points = before[name], None
        if name == "position_embedding":
            points, boxes = [positions_of(grid, True) for grid in sides], sides
        elif expected.dim() == 3:
            points = [offsets_of(m.backbone.blocks[0].attention) for m in (model, new)]
            boxes = [[2 * side - 1 for side in grid] for grid in sides]
        if points:
            expected = (nearest(*points, expected) if fill == "nearest"
                        else bicubic(*points, *boxes, expected))
        torch.testing.assert_close(tensor, expected, msg=name)
    assert len(notes) == 1 + 2 * 3
    assert new(torch.randn(2, 1, *size)).shape == (2, 3)


def test_a_gpt_reads_longer_and_shorter_texts():
    model = translution.GPT(depth=1, dim=8, heads=2, dim_head=4, mlp_dim=8, length=5, vocabulary=7,
                            input_embedding=True).eval()
    tokens = torch.randint(7, (2, 5))
    for length in (3, 8):
        new, notes = translution.regrid(model, length=length)
        assert new.options["length"] == length and not new.training
        some = tokens[:, :length]
        torch.testing.assert_close(new(some), model(some))
        assert [note.name for note in notes][0] == "position_embedding"
    assert new(torch.randint(7, (1, 8))).isfinite().all()


def test_type_and_random_numbers_stay():
    layer = translution.Translution(4, grid=(2, 2), dtype=torch.bfloat16)
    new, _ = translution.regrid(layer, grid=(3, 3))
    assert new.query.dtype == torch.bfloat16
    again = translution.Attention(**new.options)  # the options say how to initialise
    assert again.options["init"] == "scaled" and again.query.abs().max() <= 0.5


def test_refusals():
    layer = translution.Translution(4, grid=(2, 2))
    vit = translution.ViT(depth=1, dim=4, heads=1, mlp_dim=4, patch_size=4, image_size=8, classes=2)
    absolute = translution.Translution(4, grid=(2, 2), encoding="absolute")
    relation = translution.Translution(
        4, relation=translution.Relation(torch.zeros(3, 3, dtype=torch.long), 1))
    rotary = translution.Attention(4, grid=(2, 2), method="rotary")
    calls = [
        (lambda: translution.regrid(layer), "expected grid for Translution, got nothing"),
        (lambda: translution.regrid(layer, image_size=8), "expected grid for .*, got image_size"),
        (lambda: translution.regrid(vit, grid=(2, 2)), "expected image_size for ViT, got grid"),
        (lambda: translution.regrid(vit, image_size=10), "does not divide into patches of 4x4"),
        (lambda: translution.regrid(layer, grid=(2, 2, 2)), "expected a grid of 2 sides, got"),
        (lambda: translution.regrid(rotary, grid=4), "expected a grid of 2 sides, got 4"),
        (lambda: translution.regrid(absolute, grid=(3, 3)), "only rows per offset can move"),
        (lambda: translution.regrid(relation, grid=(3, 3)), "got one with a relation"),
        (lambda: translution.regrid(layer, grid=(3, 3), fill="linear"), "unknown fill 'linear'"),
        (lambda: translution.regrid(torch.nn.Linear(2, 2), grid=2), "replace its layers"),
    ]
    for call, message in calls:
        with pytest.raises((ValueError, RuntimeError), match=message):
            call()
