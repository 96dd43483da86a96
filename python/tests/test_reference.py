"""The layers in plain PyTorch: against the literal formulas, against the library, and on their own."""

import copy
import pickle

import pytest
import torch
from literal import Pairs
from test_literal import METHODS, compare

import translution
from translution.reference import ReferenceAttention, attend

needs_library = pytest.mark.skipif(not translution.library_torch, reason="the library is not loaded")
GRIDS = {
    "5x3": dict(grid=(5, 3)),
    "2x4_cls": dict(grid=(2, 4), cls=True),
    "causal": dict(grid=(6,), causal=True),
    "causal_cls": dict(grid=(3, 2), cls=True, causal=True),
    "3d": dict(grid=(2, 1, 3)),
    "single": dict(grid=(1,)),
}
NAMES = ["self_attention_no_pos", "self_attention", "relative_key", "relative_value", "relative_bias",
         "gated_position", "rotary", "alpha_translution", "translution", "convolution"]


def make(method="translution", **options):
    torch.manual_seed(0)
    return ReferenceAttention(**{**dict(dim=12, heads=3, dim_head=4, grid=(3, 4), cls=True,
                                        dtype=torch.float64, method=method), **options})


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("method", METHODS)
def test_method_is_its_formula(method, grid):
    options = {**GRIDS[grid], **METHODS[method]}
    D = 12 if grid == "3d" else 8  # rotary needs pairs for every axis
    layer = ReferenceAttention(10, heads=2, dim_head=D, dtype=torch.float64, **options)
    compare(layer)


@pytest.mark.parametrize("options", [dict(method="translution", grid=(7, 2), sharing=sharing, radius=r,
                                          cls=True) for sharing in ("direction", "logarithmic")
                                     for r in (0, 1, 2)] + [dict(method="translution", grid=12, radius=1,
                                                                 sharing="logarithmic", causal=True)])
def test_sharing_is_its_formula(options):
    compare(ReferenceAttention(5, heads=2, dim_head=3, dtype=torch.float64, **options))


@pytest.mark.parametrize("method", ["translution", "alpha_translution", "relative_key",
                                    "relative_value", "gated_position", "rotary", "convolution"])
def test_only_the_rows_asked_for(method):
    compare(make(method), rows=torch.tensor([0, 7, 4]))


@pytest.mark.parametrize("mirror", [(), (0, 2, 1)])
@pytest.mark.parametrize("method", ["translution", "alpha_translution", "relative_bias"])
def test_relation_of_the_caller(method, mirror):
    slots = [[0, 1, -1, 1], [2, 0, 1, -1], [-1, 2, 0, 1], [2, -1, 2, 0]]
    relation = translution.Relation(torch.tensor(slots), 3, mirror)
    layer = ReferenceAttention(5, heads=2, dim_head=3, method=method, relation=relation,
                               dtype=torch.float64)
    compare(layer, Pairs.of_relation(slots, (0, 2, 1)))


def test_relation_without_pairs_gives_the_bias():
    slots = torch.full((3, 3), -1)
    layer = ReferenceAttention(5, heads=2, dim_head=3, relation=translution.Relation(slots, 1))
    assert torch.equal(layer(torch.randn(2, 3, 5)), layer.out.bias.expand(2, 3, 5))


# Options that change how the library starts, rounds or reads a layer.
OTHERS = {**METHODS,
          "qkv_bias": dict(method="relative_bias", qkv_bias=True),
          "angles": dict(method="rotary", angles="float"),
          "authors": dict(method="translution", init="authors")}


@needs_library
@pytest.mark.parametrize("grid", ["5x3", "2x4_cls", "causal_cls"])
@pytest.mark.parametrize("method", OTHERS)
def test_library_has_the_same_weights_and_results(method, grid):
    options = dict(dim=10, heads=2, dim_head=8, dtype=torch.float64, **GRIDS[grid], **OTHERS[method])
    torch.manual_seed(1)
    own = ReferenceAttention(**options)
    torch.manual_seed(1)
    library = translution.Attention(**options)
    assert own.tokens == library.tokens
    assert {**own.options, "workspace": 0} == {**library.options, "workspace": 0}
    state = library.state_dict()
    assert list(own.state_dict()) == list(state)
    assert all(torch.equal(value, state[name]) for name, value in own.state_dict().items())
    own.load_state_dict(state)
    library.load_state_dict(own.state_dict())
    x = randn(2, own.tokens, 10).requires_grad_()
    results = []
    for layer in (own, library):
        y, map = layer.forward_with_map(x)
        grads = torch.autograd.grad(y.square().sum(), [x, *layer.parameters()], allow_unused=True)
        results.append([y, map, *grads])
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@needs_library
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("method", NAMES)
def test_bf16_products_round_as_those_of_the_library(method, biases):
    options = dict(precision="bf16", dtype=torch.float32, qkv_bias=biases and method != "convolution")
    own, library = make(method, **options), translution.Attention(
        12, heads=3, dim_head=4, grid=(3, 4), cls=True, method=method, **options)
    for parameter in own.parameters() if biases else ():
        parameter.data.masked_fill_(parameter.data == 0, 0.2)  # biases start at zero
    library.load_state_dict(own.state_dict())
    x = torch.randn(2, 13, 12)
    torch.testing.assert_close(own(x), library(x), rtol=0.02, atol=0.005)


@needs_library
def test_weights_that_do_not_fit_are_explained():
    with pytest.raises(RuntimeError, match="the weights have 52 offsets, this layer 38"):
        make().load_state_dict(make(grid=(4, 4)).state_dict())
    with pytest.raises(RuntimeError, match=r"saved with grid \[3, 4\], this layer has grid \[4, 3\]"):
        make(grid=(4, 3)).load_state_dict(make().state_dict())


def function_of(layer):
    """The layer before its projection as a function of x and its weights, and the weights."""
    names = layer._names
    weights = [getattr(layer, name).detach().clone().requires_grad_() for name in names]

    def call(x, *values):
        return attend(x, dict(zip(names, values)), layer.structure(), layer.options)[0]

    return call, weights


@pytest.mark.parametrize("method", NAMES)
def test_gradcheck(method):
    call, weights = function_of(make(method, dim=3, heads=1, grid=(2, 2)))
    x = randn(1, 5, 3).requires_grad_()
    assert torch.autograd.gradcheck(call, [x, *weights], fast_mode=True)


@pytest.mark.parametrize("method", ["translution", "alpha_translution", "gated_position"])
def test_second_derivatives(method):
    call, weights = function_of(make(method, dim=3, heads=1, grid=(2, 2), relative_dim=2))
    x = randn(1, 5, 3).requires_grad_()
    assert torch.autograd.gradgradcheck(call, [x, *weights], fast_mode=True)


def count_products(layer, monkeypatch):
    counted, bmm = [], torch.bmm
    monkeypatch.setattr(torch, "bmm", lambda a, b: counted.append(a.shape) or bmm(a, b))
    layer(torch.zeros(2, layer.tokens, layer.options["dim"], dtype=torch.float64))
    monkeypatch.undo()
    return len(counted)


@pytest.mark.parametrize("grid, cls, expected", [((7, 7), True, 25), ((7, 7), False, 25),
                                                 ((5, 3), False, 11), ((5, 3), True, 11),
                                                 ((2, 2), True, 3), ((9,), True, 9)])
def test_slots_with_equally_many_pairs_are_one_product(grid, cls, expected, monkeypatch):
    for roles in ("qkv", "kv", "v"):
        layer = make(grid=grid, cls=cls, roles=roles)
        most = torch.tensor(grid).prod().item() + 3
        assert expected <= most
        assert count_products(layer, monkeypatch) == expected * len(roles)
    layer = make("alpha_translution", grid=grid, cls=cls, relative_dim=1)
    assert count_products(layer, monkeypatch) == 3 * expected


def test_no_tensor_has_a_matrix_per_pair():
    """The largest is the table, or the tokens of all pairs."""
    largest = []

    class Record(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            largest.extend(t.numel() for t in (out if isinstance(out, (list, tuple)) else [out])
                           if isinstance(t, torch.Tensor))
            return out

    layer, B, C = make(dim=8, heads=1, dim_head=8, grid=(6, 6)), 3, 8
    x = randn(B, 37, C)
    with Record():
        layer(x)
    assert max(largest) <= max(37 * 37 * B * C, layer.query.numel())


@pytest.mark.parametrize("method", NAMES)
def test_masked_keys_have_no_influence(method):
    layer, x = make(method), randn(2, 13, 12)
    mask = torch.ones(2, 13, dtype=torch.bool)
    mask[0, 9:] = mask[1, [0, 4]] = False
    other = torch.where(mask[..., None], x, randn(2, 13, 12) * 100)
    other[0, 12] = float("nan")
    x.requires_grad_()
    expected, map = layer.forward_with_map(x, key_padding_mask=mask)
    assert not map.masked_select(~mask[:, None, None]).any()
    assert torch.equal(layer(other, key_padding_mask=mask)[mask], expected[mask])
    expected[mask].square().sum().backward()
    assert not x.grad[~mask].any()
    assert x.grad[mask].abs().min() > 0
    everything = torch.ones_like(mask)
    torch.testing.assert_close(layer(x, key_padding_mask=everything), layer(x), rtol=0, atol=1e-14)


@pytest.mark.parametrize("method", ["self_attention_no_pos", "relative_bias"])
def test_masked_padding_is_as_if_it_were_not_there(method):
    layer, x = make(method, grid=(9,), cls=False), randn(2, 9, 12)
    mask = (torch.arange(9) < 6).expand(2, 9)
    torch.testing.assert_close(layer(x, key_padding_mask=mask)[:, :6], layer(x[:, :6]))


@pytest.mark.parametrize("method", NAMES)
def test_a_row_whose_keys_are_all_masked_is_zero(method):
    layer, x = make(method), randn(2, 13, 12).requires_grad_()
    mask = torch.ones(2, 13, dtype=torch.bool)
    mask[1] = False
    weights = {name: getattr(layer, name) for name in layer._names}
    out, map = attend(x, weights, layer.structure(), layer.options, mask)
    assert not out[1].any() and not map[1].any()
    out.square().sum().backward()
    assert not x.grad[1].any()
    assert all(value.grad is None or torch.isfinite(value.grad).all() for value in weights.values())
    assert torch.equal(layer(x, key_padding_mask=mask)[1], layer.out.bias.expand(13, 12))


def corner_rows(small, large):
    """The row of the larger layer's tables for each row of the smaller one's."""
    place = {tuple(offset): row for row, offset in enumerate(large._slots.offsets[:-3].tolist())}
    M, top = len(small._slots.offsets) - 3, len(large._slots.offsets) - 3
    return [place[tuple(offset)] for offset in small._slots.offsets[:M].tolist()] + [top, top + 1, top + 2]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("method", NAMES)
def test_a_smaller_grid_reads_the_slots_of_its_offsets(method, causal):
    large, small = make(method, grid=(4, 5), causal=causal), make(method, grid=(2, 3), causal=causal)
    state = dict(large.state_dict())
    for name, value in small.named_parameters():
        if state[name].shape != value.shape:
            state[name] = state[name][corner_rows(small, large)]
    small.load_state_dict(state)
    x = randn(2, 7, 12)
    torch.testing.assert_close(large(x, grid=(2, 3)), small(x))
    torch.testing.assert_close(large(x, [0, 5], grid=(2, 3)), small(x)[:, [0, 5]])
    with pytest.raises(RuntimeError, match="expected a grid of at most 4x5, got 6x1"):
        large.structure((6, 1))


@pytest.mark.parametrize("method", ["translution", "relative_key", "rotary", "convolution"])
def test_shorter_input_is_the_start_of_the_sequence(method):
    layer, x = make(method, grid=9, cls=False, causal=True), randn(2, 9, 12)
    torch.testing.assert_close(layer(x[:, :5]), layer(x)[:, :5])


def test_any_length_without_positions():
    layer = make("self_attention_no_pos", grid=(), cls=False, causal=True)
    x = randn(2, 8, 12)
    torch.testing.assert_close(layer(x[:, :5]), layer(x)[:, :5])


def test_many_structures_do_not_pile_up():
    layer = make(grid=(30,), cls=False)
    for n in range(1, 30):
        layer(randn(1, n, 12))
    assert len(layer.structures) <= 16


@pytest.mark.parametrize("method", NAMES)
def test_types_and_copies(method, tmp_path):
    layer = make(method, dtype=torch.float32)
    x = randn(2, 13, 12)
    expected = copy.deepcopy(layer).double()(x)
    assert not any(name.startswith("structures") for name in layer.state_dict())
    for dtype, tolerance in [(torch.float32, 1e-5), (torch.bfloat16, 0.1), (torch.float64, 1e-12)]:
        changed = copy.deepcopy(layer).to(dtype)
        assert all(buffer.dtype in (dtype, torch.long, torch.bool) for buffer in changed.buffers())
        y = changed(x.to(dtype))
        assert y.dtype == dtype
        torch.testing.assert_close(y.double(), expected, rtol=tolerance, atol=tolerance)
    # Angles and features are exact again after a detour through bfloat16.
    again = copy.deepcopy(layer).bfloat16().double()
    again.load_state_dict({name: value.double() for name, value in layer.state_dict().items()})
    assert torch.equal(again(x), expected)
    assert torch.equal(pickle.loads(pickle.dumps(again))(x), expected)


@pytest.mark.parametrize("method", NAMES)
def test_meta_device(method):
    layer = make(method, device="meta")
    assert all(tensor.is_meta for tensor in [*layer.parameters(), *layer.buffers()])
    layer = layer.to_empty(device="cpu")
    layer.reset_parameters()
    torch.manual_seed(0)
    layer.reset_parameters()
    x = randn(1, 13, 12)
    assert torch.equal(layer(x), make(method)(x))


def test_dropout_only_while_training():
    layer, x = make(dropout=0.5), randn(2, 13, 12)
    torch.manual_seed(3)
    first = layer(x)
    assert not torch.equal(first, layer(x))
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


@pytest.mark.parametrize("options, expected", [
    (dict(method="translation"), "unknown method 'translation'; expected self_attention_no_pos,"),
    (dict(roles="qx"), "roles: expected some of q, k, v, or none, got 'qx'"),
    (dict(heads=0), "expected heads of 1 or more, got 0"),
    (dict(grid=()), "grid: expected one or more sides for translution, got none"),
    (dict(grid=(3, -1)), "grid: expected sides above 0"),
    (dict(dim_head=6, method="rotary"), "a head of 6 channels does not split into pairs for 2"),
    (dict(dropout=1.0), "expected a dropout probability in"),
    (dict(rotary=True), "has no shared queries and keys to rotate"),
    (dict(kernel_size=4), "expected an odd kernel_size of 1 or more, got 4"),
    (dict(method="convolution", qkv_bias=True), "qkv_bias needs W^q, W^k, W^v, got convolution"),
    (dict(method="alpha_translution", shared_qkv=False, qkv_bias=True), "got alpha_translution without"),
    (dict(encoding="absolute", sharing="direction"), "encoding absolute takes neither sharing"),
    (dict(method="alpha_translution", relative_dim=0, shared_qkv=False), "relative_dim 0 needs"),
    (dict(method="gated_position", sharing="direction"), "gated_position: expected the offsets"),
])
def test_options_that_make_no_sense(options, expected):
    with pytest.raises(ValueError) as raised:
        make(**options)
    assert expected in str(raised.value)
    if translution.library_torch:
        with pytest.raises(ValueError):
            translution.Attention(**{**dict(dim=12, heads=3, dim_head=4, grid=(3, 4)), **options})


def test_inputs_that_do_not_fit():
    layer = make()
    for call, message in [
            (lambda: layer(randn(2, 12, 12)), "x has 12 tokens, this layer was built for 13"),
            (lambda: layer(randn(2, 13, 11)), r"x must be \[B, N, 12\], got \[2, 13, 11\]"),
            (lambda: layer(randn(2, 13, 12), [13]), "expected query rows from 0 to 12, got")]:
        with pytest.raises((RuntimeError, ValueError), match=message):
            call()


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this PyTorch has no torch.compile")
@pytest.mark.parametrize("method", NAMES)
def test_compiles_as_a_whole(method):
    torch._dynamo.reset()
    layer, x = make(method, grid=(2, 3)), randn(2, 7, 12).requires_grad_()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[:, 5:] = False
    layer.structure((2, 2))
    for arguments in (dict(), dict(key_padding_mask=mask), dict(grid=(2, 2))):
        given = x[:, :5] if "grid" in arguments else x
        found, expected = compiled(given, **arguments), layer(given, **arguments)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found.square().sum(), x),
                                   torch.autograd.grad(expected.square().sum(), x))


# Without the library.

def run_without(run_python, tmp_path, code):
    return run_python(code, check=False, TRANSLUTION_LIBRARY=str(tmp_path / "no.so"))


def test_import_without_the_library(run_python, tmp_path):
    """One warning, layers that work, and one error for what needs the library."""
    result = run_without(run_python, tmp_path, """
import torch, translution
layer = translution.Translution(12, heads=3, dim_head=4, grid=(3, 4), cls=True)
assert isinstance(layer, translution.Attention)
assert translution.Attention is translution.ReferenceAttention
assert translution.LoRTranslution(8, grid=2).options["method"] == "alpha_translution"
layer(torch.randn(2, 13, 12)).sum().backward()
assert layer.query.grad.any()
assert translution.library_path == translution.library_torch == ""
weight = torch.nn.Parameter(torch.ones(2)); weight.grad = torch.ones(2)
uses = [lambda: translution.ViT(model="vit-a/56"), lambda: translution.GPT(),
        lambda: translution.AdamW([weight]).step(), lambda: translution.runtime.threads,
        lambda: translution.Linear(2, 2)(torch.ones(1, 2)),
        lambda: translution.LayerNorm(2)(torch.ones(1, 2)),
        lambda: translution.from_gpt2({"a": torch.ones(1)}),
        lambda: torch.ops.translution.build_info()]
for use in uses:
    try:
        use()
    except translution.LibraryError as error:
        print(error)
""")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("Warning") == 1
    assert "no.so, which does not exist; set it to the path of libtranslution.so" in result.stderr
    assert "attention layers are plain PyTorch (translution.reference)" in result.stderr
    errors = result.stdout.splitlines()
    assert len(errors) == 8
    assert all("needs libtranslution.so, which is not loaded; translution: TRANSLUTION_LIBRARY names"
               in error for error in errors)


@needs_library
def test_weights_saved_with_the_library_load_without_it(run_python, tmp_path):
    options = dict(dim=12, heads=3, dim_head=4, grid=(3, 4), cls=True, method="alpha_translution")
    layer, x = translution.Attention(**options), torch.randn(2, 13, 12)
    torch.save([layer.state_dict(), x, layer(x).detach()], tmp_path / "layer.pt")
    result = run_without(run_python, tmp_path, f"""
import torch, translution
state, x, expected = torch.load({str(tmp_path / "layer.pt")!r})
layer = translution.Attention(**{options!r})
layer.load_state_dict(state)
torch.testing.assert_close(layer(x), expected)
""")
    assert result.returncode == 0, result.stderr
