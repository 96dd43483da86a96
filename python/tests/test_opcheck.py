"""torch.library.opcheck of every op that takes tensors: its schema, autograd, fake tensors, and the
graph that is traced with symbolic sizes."""

import pytest
import torch
import translution
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

if not hasattr(torch.library, "opcheck"):
    pytest.skip(f"torch.library.opcheck needs PyTorch 2.4, this is {torch.__version__}",
                allow_module_level=True)

OPS = torch.ops.translution
METHODS = OPS.method_names()
# They make, check or convert modules, before there is a graph, and read what tensors hold.
BUILDERS = {"attention_start", "attention_layout", "convert_weights", "from_authors",
            "require_finite", "require_shapes", "to_authors",
            "generate", "regrid_offsets", "regrid_places",
            "point_pairs", "list_points", "pack_points", "unpack_points"}  # as many pairs and rows as there are
SUCCESS = dict.fromkeys(["test_schema", "test_autograd_registration", "test_faketensor",
                         "test_aot_dispatch_dynamic"], "SUCCESS")


def randn(*shape):
    return torch.randn(*shape).requires_grad_()


def fixed(*shape):
    return torch.randn(*shape)


class Recorder(TorchDispatchMode):
    """Records the arguments of the library's ops, by name."""

    def __init__(self):
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.namespace == "translution":
            self.calls.setdefault(op._opname, args)
        return op(*args, **(kwargs or {}))


def make(method, **options):
    torch.manual_seed(0)
    return translution.Attention(16, heads=2, dim_head=8, grid=(2, 3), cls=True, method=method,
                                 **options)


def leaf(tensor):
    return tensor.detach().clone().requires_grad_(tensor.dtype == torch.float)  # angles are double


def layer_calls(method, batch=3, **options):
    """The calls that a layer makes in forward and backward."""
    layer, recorder = make(method, **options), Recorder()
    with recorder:
        layer(randn(batch, 7, 16), rows=[0, 4]).square().sum().backward()
    return recorder.calls


def methods_calls():
    """One call of each function that takes weights."""
    shared = [randn(16, 8) for _ in range(3)]
    return {
        "translution": (randn(3, 4, 16), *[randn(9, 16, 8) for _ in range(3)], "2x2", 2),
        "alpha_translution": (randn(3, 4, 16), shared, [randn(16, 4) for _ in range(3)],
                              [randn(9, 4, 4) for _ in range(3)], randn(4, 8), "2x2", 2, "mean"),
        "self_attention": (randn(3, 4, 16), *shared, 2, "2x2 causal", randn(5, 8), None,
                           randn(5, 2)),
    }


def plain_calls():
    gradients = [fixed(3, 4), fixed(5)]
    state = [[torch.zeros_like(g) for g in gradients] for _ in range(3)]
    logits, target = randn(4, 5), torch.tensor([0, 4, 1, 1])
    d, log_sums = torch.tensor(1.0), logits.detach().logsumexp(1)
    return {
        "layer_norm": (randn(2, 3, 8), randn(8), randn(8), 1e-5),
        "layer_norm_backward": (fixed(2, 3, 8), fixed(2, 3, 8), fixed(8), 1e-5),
        "gelu": (randn(2, 5), True),
        "gelu_backward": (fixed(2, 5), fixed(2, 5), False),
        "cross_entropy": (logits, target, 0.1),
        "cross_entropy_backward": (d, logits.detach(), target, log_sums, 0.1),
        "sum_first": (randn(5, 3),),
        "add_shared": (randn(3, 4, 2), randn(4, 2)),
        "project": (randn(2, 3, 8), [randn(8, 5), randn(8, 6)], [randn(5), randn(6)]),
        "gradient_norm": (gradients,),
        "adamw_": (state[0], gradients, state[1], state[2], 1, 0.1, 0.9, 0.99, 1e-8, 0.1),
    }


def point_calls():
    """The calls of a layer between points, in forward and backward."""
    torch.manual_seed(0)
    layer, recorder = translution.PointAttention(16, 2, axes=2, spacing=0.5, neighbours=3), Recorder()
    known = layer.pairs(fixed(7, 2), torch.tensor([0, 7]))
    with recorder:
        pairs = layer.pairs(randn(7, 2), torch.tensor([0, 7]), (known.query, known.key))
        layer.attend(randn(7, 16), pairs).square().sum().backward()
    return recorder.calls


def check(name, args):
    torch.manual_seed(0)
    found = torch.library.opcheck(getattr(OPS, name).default, args, raise_exception=False)
    assert found == SUCCESS, f"{name}: {found}"


@pytest.mark.parametrize("name", sorted({**plain_calls(), **methods_calls()}))
def test_op(name):
    check(name, {**plain_calls(), **methods_calls()}[name])


@pytest.mark.parametrize("method", METHODS)
def test_ops_of_a_layer(method):
    for name, args in layer_calls(method).items():
        backward = name.endswith("_backward")
        check(name, tree_map_only(torch.Tensor, torch.Tensor.detach if backward else leaf, args))


def test_ops_of_points(monkeypatch):
    calls, op = [], OPS.point_attention
    monkeypatch.setattr(OPS, "point_attention", lambda *args: calls.append(args) or op(*args))
    point_calls()
    monkeypatch.undo()
    check("point_attention", calls[0])
    for name, args in point_calls().items():
        backward = name.endswith("_backward")
        check(name, tree_map_only(torch.Tensor, torch.Tensor.detach if backward else leaf, args))


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_ops_of_a_layer_with_the_batch_last(precision):
    calls = layer_calls("alpha_translution", batch=17, precision=precision)
    for name in ("attention", "attention_backward"):
        assert True in calls[name][-2:]  # batch_last
        check(name, tree_map_only(torch.Tensor, torch.Tensor.detach, calls[name]))


def test_attention_with_saved_encodings():
    layer, recorder = translution.Translution(72, heads=2, dim_head=8, grid=(2, 2)), Recorder()
    with recorder:
        layer(randn(3, 4, 72)).square().sum().backward()
    kept = recorder.calls["attention_backward"][3]
    assert kept.numel() > 0
    for name in ("attention", "attention_backward"):
        check(name, tree_map_only(torch.Tensor, torch.Tensor.detach, recorder.calls[name]))


@pytest.mark.parametrize("method", METHODS)
def test_attention_layer(method, monkeypatch):
    layer, calls = make(method), []
    op = OPS.attention_layer
    monkeypatch.setattr(OPS, "attention_layer", lambda *args: calls.append(args) or op(*args))
    if method == "gated_position":
        layer(randn(3, 7, 16))  # its map with the gate is not traced
    else:
        layer.forward_with_map(randn(3, 7, 16))
    monkeypatch.undo()
    check("attention_layer", calls[0])


def test_no_op_is_left_out():
    schemas = [schema for schema in torch._C._jit_get_all_schemas()
               if schema.name.startswith("translution::")]
    takes_tensors = {schema.name[len("translution::"):] for schema in schemas
                     if any("Tensor" in str(argument.type) for argument in schema.arguments)}
    checked = {*plain_calls(), *methods_calls(), *point_calls(), "attention_layer", "point_attention"}
    for method in METHODS:
        checked.update(layer_calls(method))
    assert takes_tensors - BUILDERS == checked
