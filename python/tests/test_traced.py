"""Layers where tensors have no contents: the structure of a layer is a constant of a traced graph."""

import pytest
import torch
import translution
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.stateless import functional_call

METHODS = ["self_attention_no_pos", "self_attention", "relative_key", "relative_value",
           "relative_bias", "gated_position", "rotary", "alpha_translution", "translution",
           "convolution"]
# Their layers have tables beside their weights, which 1.13 does not take into a graph.
WITH_TABLES = ("gated_position", "rotary")


def make(method):
    torch.manual_seed(0)
    return translution.Attention(72, heads=3, dim_head=8, grid=(3, 4), cls=True, method=method)


def gradients(layer, x, weights):
    """Output and gradients of a layer as a function of its input and weights."""
    out = functional_call(layer, weights, x)
    return (out, *torch.autograd.grad(out.square().sum(), [x, *weights.values()]))


def leaves(layer):
    return {name: value.detach().clone().requires_grad_() for name, value in layer.named_parameters()}


@pytest.mark.parametrize("method", [m for m in METHODS if m not in WITH_TABLES])
def test_forward_and_backward_are_traced_without_data(method):
    layer, x = make(method), torch.randn(5, 13, 72).requires_grad_()
    weights = leaves(layer)
    graph = make_fx(lambda x, w: gradients(layer, x, w), tracing_mode="fake")(x, weights)
    ops = [str(node.target) for node in graph.graph.nodes if "translution." in str(node.target)]
    name = "convolution" if method == "convolution" else "attention"
    assert ops.count(f"translution.{name}.default") == 1, ops
    assert ops.count(f"translution.{name}_backward.default") == 1, ops
    with torch.no_grad():  # the graph has its own backward
        traced = graph(x, weights)
    for ours, eager in zip(traced, gradients(layer, x, weights)):
        assert torch.equal(ours, eager)


@pytest.mark.parametrize("method", METHODS)
def test_meta_has_the_shapes_of_the_cpu(method):
    layer, x = make(method), torch.randn(2, 13, 72)
    out, map = layer.forward_with_map(x, rows=[0, 5])
    meta_out, meta_map = make(method).to("meta").forward_with_map(x.to("meta"), rows=[0, 5])
    assert meta_out.is_meta and meta_out.shape == out.shape
    assert meta_map.shape == map.shape
