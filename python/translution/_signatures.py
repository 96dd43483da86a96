"""The arguments of layers and models, with their types. Made by scripts/python-signatures from the
library's tables of options; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, Type, TypeVar, Union

import torch

if TYPE_CHECKING:
    from ._tokens import Relation

Method = Literal["self_attention_no_pos", "self_attention", "relative_key", "relative_value",
    "relative_bias", "gated_position", "rotary", "alpha_translution", "translution", "convolution"]
Encoding = Literal["relative", "absolute"]
Sharing = Literal["none", "direction", "logarithmic", "window"]
Angles = Literal["double", "float"]
Mixing = Literal["sum", "mean"]
Init = Literal["scaled", "authors", "none"]
Precision = Literal["float32", "bf16"]
Gelu = Literal["exact", "tanh"]
Pooling = Literal["cls", "mean"]
Coordinates = Literal["given", "centred"]


class AttentionArguments:
    _build: Any

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        dim_head: Optional[int] = None,
        grid: Union[int, Sequence[int]] = (),
        *,
        cls: bool = False,
        causal: bool = False,
        method: Method = "translution",
        roles: str = "qkv",
        encoding: Encoding = "relative",
        sharing: Sharing = "none",
        radius: int = 0,
        rotary: bool = False,
        angles: Angles = "double",
        kernel_size: int = 3,
        relative_dim: int = 8,
        relative_dim_out: int = 0,
        shared_qkv: bool = True,
        mixing: Mixing = "sum",
        qkv_bias: bool = False,
        dropout: float = 0.0,
        init: Init = "scaled",
        workspace: Optional[int] = None,
        precision: Precision = "float32",
        relation: Optional[Relation] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        """dim, heads, dim_head and grid may be given by place, all others by name.

        dim               input and output channels
        heads             number of attention heads (1)
        dim_head          channels per head (dim / heads)
        grid              sides of the token grid, as in 160, (7, 7), (4, 7, 7) (())
        cls               class token before the other tokens (False)
        causal            causal mask: tokens attend only to themselves and earlier tokens (False)
        method            attention method; see `translution list`: self_attention_no_pos,
                          self_attention, relative_key, relative_value, relative_bias,
                          gated_position, rotary, alpha_translution, translution, convolution
                          (translution)
        roles             roles with a matrix per offset: some of q, k, v, or none (qkv)
        encoding          one matrix per offset or per token pair: relative, absolute (relative)
        sharing           weight sharing of offsets beyond the radius: none, direction, logarithmic,
                          window (none)
        radius            sharing radius, or lattice points to each side (cloud) (0)
        rotary            rotary position for queries and keys that are not relative (False)
        angles            precision of rotary angles: double, float (double)
        kernel_size       side of the convolution window (3)
        relative_dim      relative channels per head (8)
        relative_dim_out  relative channels per head after the matrices; 0: the same as before (0)
        shared_qkv        additional W^q, W^k, W^v shared by all offsets (True)
        mixing            combination of the shared and the relative part: sum, mean (sum)
        qkv_bias          bias on queries, keys and values (False)
        dropout           dropout probability of attention (0.0)
        init              weight initialisation: scaled, authors, none (scaled)
        workspace         maximum bytes of encoded queries and keys saved for backward (the
                          runtime's workspace)
        precision         precision of matrix products: float32, bf16 (float32)
        relation          instead of the grid
        device            of the parameters (cpu)
        dtype             of the parameters (PyTorch's default)
        """
        self._build(dict(
            dim=dim, heads=heads, dim_head=dim_head, grid=grid, cls=cls, causal=causal,
            method=method, roles=roles, encoding=encoding, sharing=sharing, radius=radius,
            rotary=rotary, angles=angles, kernel_size=kernel_size, relative_dim=relative_dim,
            relative_dim_out=relative_dim_out, shared_qkv=shared_qkv, mixing=mixing,
            qkv_bias=qkv_bias, dropout=dropout, init=init, workspace=workspace, precision=precision), relation, device, dtype)


class TranslutionArguments:
    _build: Any

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        dim_head: Optional[int] = None,
        grid: Union[int, Sequence[int]] = (),
        *,
        cls: bool = False,
        causal: bool = False,
        method: Literal["translution"] = "translution",
        roles: str = "qkv",
        encoding: Encoding = "relative",
        sharing: Sharing = "none",
        radius: int = 0,
        rotary: bool = False,
        angles: Angles = "double",
        kernel_size: int = 3,
        relative_dim: int = 8,
        relative_dim_out: int = 0,
        shared_qkv: bool = True,
        mixing: Mixing = "sum",
        qkv_bias: bool = False,
        dropout: float = 0.0,
        init: Init = "scaled",
        workspace: Optional[int] = None,
        precision: Precision = "float32",
        relation: Optional[Relation] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        """As Attention with method translution."""
        self._build(dict(
            dim=dim, heads=heads, dim_head=dim_head, grid=grid, cls=cls, causal=causal,
            method=method, roles=roles, encoding=encoding, sharing=sharing, radius=radius,
            rotary=rotary, angles=angles, kernel_size=kernel_size, relative_dim=relative_dim,
            relative_dim_out=relative_dim_out, shared_qkv=shared_qkv, mixing=mixing,
            qkv_bias=qkv_bias, dropout=dropout, init=init, workspace=workspace, precision=precision), relation, device, dtype)


class AlphaTranslutionArguments:
    _build: Any

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        dim_head: Optional[int] = None,
        grid: Union[int, Sequence[int]] = (),
        *,
        cls: bool = False,
        causal: bool = False,
        method: Literal["alpha_translution"] = "alpha_translution",
        roles: str = "qkv",
        encoding: Encoding = "relative",
        sharing: Sharing = "none",
        radius: int = 0,
        rotary: bool = False,
        angles: Angles = "double",
        kernel_size: int = 3,
        relative_dim: int = 8,
        relative_dim_out: int = 0,
        shared_qkv: bool = True,
        mixing: Mixing = "sum",
        qkv_bias: bool = False,
        dropout: float = 0.0,
        init: Init = "scaled",
        workspace: Optional[int] = None,
        precision: Precision = "float32",
        relation: Optional[Relation] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        """As Attention with method alpha_translution."""
        self._build(dict(
            dim=dim, heads=heads, dim_head=dim_head, grid=grid, cls=cls, causal=causal,
            method=method, roles=roles, encoding=encoding, sharing=sharing, radius=radius,
            rotary=rotary, angles=angles, kernel_size=kernel_size, relative_dim=relative_dim,
            relative_dim_out=relative_dim_out, shared_qkv=shared_qkv, mixing=mixing,
            qkv_bias=qkv_bias, dropout=dropout, init=init, workspace=workspace, precision=precision), relation, device, dtype)


_ViT = TypeVar("_ViT", bound="ViTArguments")


class ViTArguments:
    _build: Any

    def __init__(
        self,
        *,
        model: Optional[str] = None,
        depth: Optional[int] = None,
        dim: Optional[int] = None,
        heads: Optional[int] = None,
        dim_head: Optional[int] = None,
        mlp_dim: Optional[int] = None,
        patch_size: Optional[int] = None,
        input_embedding: Optional[bool] = None,
        dropout: Optional[float] = None,
        init: Optional[Init] = None,
        method: Optional[Method] = None,
        roles: Optional[str] = None,
        encoding: Optional[Encoding] = None,
        sharing: Optional[Sharing] = None,
        radius: Optional[int] = None,
        rotary: Optional[bool] = None,
        angles: Optional[Angles] = None,
        kernel_size: Optional[int] = None,
        relative_dim: Optional[int] = None,
        relative_dim_out: Optional[int] = None,
        shared_qkv: Optional[bool] = None,
        mixing: Optional[Mixing] = None,
        hybrid_layers: Optional[int] = None,
        rest: Optional[Method] = None,
        extra_norms: Optional[bool] = None,
        qkv_bias: Optional[bool] = None,
        gelu: Optional[Gelu] = None,
        norm_eps: Optional[float] = None,
        image_size: Optional[Union[int, Sequence[int]]] = None,
        channels: Optional[int] = None,
        classes: Optional[int] = None,
        pooling: Optional[Pooling] = None,
        precision: Optional[Precision] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        """None stands for what `model` says, or for what is in brackets.

        model             a name such as vit-a/12, for what is not given
        depth             number of blocks (6)
        dim               channels per token (192)
        heads             number of attention heads (3)
        dim_head          channels per head (64)
        mlp_dim           hidden channels of the MLPs (768)
        patch_size        patch side in pixels (16)
        input_embedding   learned position embedding added to the input (set by the method)
        dropout           dropout probability of features and attention (0.0)
        init              weight initialisation: scaled, authors, none (scaled)
        method            attention method; see `translution list`: self_attention_no_pos,
                          self_attention, relative_key, relative_value, relative_bias,
                          gated_position, rotary, alpha_translution, translution, convolution
                          (translution)
        roles             roles with a matrix per offset: some of q, k, v, or none (qkv)
        encoding          one matrix per offset or per token pair: relative, absolute (relative)
        sharing           weight sharing of offsets beyond the radius: none, direction, logarithmic,
                          window (none)
        radius            sharing radius, or lattice points to each side (cloud) (0)
        rotary            rotary position for queries and keys that are not relative (False)
        angles            precision of rotary angles: double, float (double)
        kernel_size       side of the convolution window (3)
        relative_dim      relative channels per head (8)
        relative_dim_out  relative channels per head after the matrices; 0: the same as before (0)
        shared_qkv        additional W^q, W^k, W^v shared by all offsets (True)
        mixing            combination of the shared and the relative part: sum, mean (sum)
        hybrid_layers     number of leading layers that use the method (all)
        rest              method of the other layers: self_attention_no_pos, self_attention,
                          relative_key, relative_value, relative_bias, gated_position, rotary,
                          alpha_translution, translution, convolution (self_attention_no_pos)
        extra_norms       norms around the patch embedding (vit), second norm before the head (gpt)
                          (True)
        qkv_bias          bias on queries, keys and values (False)
        gelu              form of GELU in the MLPs: exact, tanh (exact)
        norm_eps          epsilon added to the variance in norms (1e-05)
        image_size        image size in pixels, as in 84 or 84x60 ((224, 224))
        channels          input channels, or features of a point (3)
        classes           number of classes; 0: a number (cloud) (1000)
        pooling           input of the head: class token, or mean of the patches or points: cls,
                          mean (cls)
        precision         precision of matrix products: float32, bf16 (float32)
        device            of the parameters (cpu)
        dtype             of the parameters (PyTorch's default)
        """
        self._build(dict(
            model=model, depth=depth, dim=dim, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim,
            patch_size=patch_size, input_embedding=input_embedding, dropout=dropout, init=init,
            method=method, roles=roles, encoding=encoding, sharing=sharing, radius=radius,
            rotary=rotary, angles=angles, kernel_size=kernel_size, relative_dim=relative_dim,
            relative_dim_out=relative_dim_out, shared_qkv=shared_qkv, mixing=mixing,
            hybrid_layers=hybrid_layers, rest=rest, extra_norms=extra_norms, qkv_bias=qkv_bias,
            gelu=gelu, norm_eps=norm_eps, image_size=image_size, channels=channels, classes=classes,
            pooling=pooling, precision=precision), device, dtype)

    @classmethod
    def named(
        cls: Type[_ViT],
        model: str,
        *,
        depth: Optional[int] = None,
        dim: Optional[int] = None,
        heads: Optional[int] = None,
        dim_head: Optional[int] = None,
        mlp_dim: Optional[int] = None,
        patch_size: Optional[int] = None,
        input_embedding: Optional[bool] = None,
        dropout: Optional[float] = None,
        init: Optional[Init] = None,
        method: Optional[Method] = None,
        roles: Optional[str] = None,
        encoding: Optional[Encoding] = None,
        sharing: Optional[Sharing] = None,
        radius: Optional[int] = None,
        rotary: Optional[bool] = None,
        angles: Optional[Angles] = None,
        kernel_size: Optional[int] = None,
        relative_dim: Optional[int] = None,
        relative_dim_out: Optional[int] = None,
        shared_qkv: Optional[bool] = None,
        mixing: Optional[Mixing] = None,
        hybrid_layers: Optional[int] = None,
        rest: Optional[Method] = None,
        extra_norms: Optional[bool] = None,
        qkv_bias: Optional[bool] = None,
        gelu: Optional[Gelu] = None,
        norm_eps: Optional[float] = None,
        image_size: Optional[Union[int, Sequence[int]]] = None,
        channels: Optional[int] = None,
        classes: Optional[int] = None,
        pooling: Optional[Pooling] = None,
        precision: Optional[Precision] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> _ViT:
        """A model by its name, such as vit-a/12, with other options changed."""
        return cls(
            model=model, depth=depth, dim=dim, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim,
            patch_size=patch_size, input_embedding=input_embedding, dropout=dropout, init=init,
            method=method, roles=roles, encoding=encoding, sharing=sharing, radius=radius,
            rotary=rotary, angles=angles, kernel_size=kernel_size, relative_dim=relative_dim,
            relative_dim_out=relative_dim_out, shared_qkv=shared_qkv, mixing=mixing,
            hybrid_layers=hybrid_layers, rest=rest, extra_norms=extra_norms, qkv_bias=qkv_bias,
            gelu=gelu, norm_eps=norm_eps, image_size=image_size, channels=channels, classes=classes,
            pooling=pooling, precision=precision, device=device, dtype=dtype)


_GPT = TypeVar("_GPT", bound="GPTArguments")


class GPTArguments:
    _build: Any

    def __init__(
        self,
        *,
        model: Optional[str] = None,
        depth: Optional[int] = None,
        dim: Optional[int] = None,
        heads: Optional[int] = None,
        dim_head: Optional[int] = None,
        mlp_dim: Optional[int] = None,
        length: Optional[int] = None,
        input_embedding: Optional[bool] = None,
        dropout: Optional[float] = None,
        init: Optional[Init] = None,
        method: Optional[Method] = None,
        roles: Optional[str] = None,
        encoding: Optional[Encoding] = None,
        sharing: Optional[Sharing] = None,
        radius: Optional[int] = None,
        rotary: Optional[bool] = None,
        angles: Optional[Angles] = None,
        kernel_size: Optional[int] = None,
        relative_dim: Optional[int] = None,
        relative_dim_out: Optional[int] = None,
        shared_qkv: Optional[bool] = None,
        mixing: Optional[Mixing] = None,
        hybrid_layers: Optional[int] = None,
        rest: Optional[Method] = None,
        extra_norms: Optional[bool] = None,
        qkv_bias: Optional[bool] = None,
        gelu: Optional[Gelu] = None,
        norm_eps: Optional[float] = None,
        vocabulary: Optional[int] = None,
        precision: Optional[Precision] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        """None stands for what `model` says, or for what is in brackets.

        model             a name such as gpt-a-160, for what is not given
        depth             number of blocks (6)
        dim               channels per token (192)
        heads             number of attention heads (3)
        dim_head          channels per head (64)
        mlp_dim           hidden channels of the MLPs (768)
        length            maximum number of tokens (160)
        input_embedding   learned position embedding added to the input (set by the method)
        dropout           dropout probability of features and attention (0.0)
        init              weight initialisation: scaled, authors, none (scaled)
        method            attention method; see `translution list`: self_attention_no_pos,
                          self_attention, relative_key, relative_value, relative_bias,
                          gated_position, rotary, alpha_translution, translution, convolution
                          (translution)
        roles             roles with a matrix per offset: some of q, k, v, or none (qkv)
        encoding          one matrix per offset or per token pair: relative, absolute (relative)
        sharing           weight sharing of offsets beyond the radius: none, direction, logarithmic,
                          window (none)
        radius            sharing radius, or lattice points to each side (cloud) (0)
        rotary            rotary position for queries and keys that are not relative (False)
        angles            precision of rotary angles: double, float (double)
        kernel_size       side of the convolution window (3)
        relative_dim      relative channels per head (8)
        relative_dim_out  relative channels per head after the matrices; 0: the same as before (0)
        shared_qkv        additional W^q, W^k, W^v shared by all offsets (True)
        mixing            combination of the shared and the relative part: sum, mean (sum)
        hybrid_layers     number of leading layers that use the method (all)
        rest              method of the other layers: self_attention_no_pos, self_attention,
                          relative_key, relative_value, relative_bias, gated_position, rotary,
                          alpha_translution, translution, convolution (self_attention_no_pos)
        extra_norms       norms around the patch embedding (vit), second norm before the head (gpt)
                          (True)
        qkv_bias          bias on queries, keys and values (False)
        gelu              form of GELU in the MLPs: exact, tanh (exact)
        norm_eps          epsilon added to the variance in norms (1e-05)
        vocabulary        number of distinct tokens (50257)
        precision         precision of matrix products: float32, bf16 (float32)
        device            of the parameters (cpu)
        dtype             of the parameters (PyTorch's default)
        """
        self._build(dict(
            model=model, depth=depth, dim=dim, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim,
            length=length, input_embedding=input_embedding, dropout=dropout, init=init,
            method=method, roles=roles, encoding=encoding, sharing=sharing, radius=radius,
            rotary=rotary, angles=angles, kernel_size=kernel_size, relative_dim=relative_dim,
            relative_dim_out=relative_dim_out, shared_qkv=shared_qkv, mixing=mixing,
            hybrid_layers=hybrid_layers, rest=rest, extra_norms=extra_norms, qkv_bias=qkv_bias,
            gelu=gelu, norm_eps=norm_eps, vocabulary=vocabulary, precision=precision), device, dtype)

    @classmethod
    def named(
        cls: Type[_GPT],
        model: str,
        *,
        depth: Optional[int] = None,
        dim: Optional[int] = None,
        heads: Optional[int] = None,
        dim_head: Optional[int] = None,
        mlp_dim: Optional[int] = None,
        length: Optional[int] = None,
        input_embedding: Optional[bool] = None,
        dropout: Optional[float] = None,
        init: Optional[Init] = None,
        method: Optional[Method] = None,
        roles: Optional[str] = None,
        encoding: Optional[Encoding] = None,
        sharing: Optional[Sharing] = None,
        radius: Optional[int] = None,
        rotary: Optional[bool] = None,
        angles: Optional[Angles] = None,
        kernel_size: Optional[int] = None,
        relative_dim: Optional[int] = None,
        relative_dim_out: Optional[int] = None,
        shared_qkv: Optional[bool] = None,
        mixing: Optional[Mixing] = None,
        hybrid_layers: Optional[int] = None,
        rest: Optional[Method] = None,
        extra_norms: Optional[bool] = None,
        qkv_bias: Optional[bool] = None,
        gelu: Optional[Gelu] = None,
        norm_eps: Optional[float] = None,
        vocabulary: Optional[int] = None,
        precision: Optional[Precision] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> _GPT:
        """A model by its name, such as gpt-a-160, with other options changed."""
        return cls(
            model=model, depth=depth, dim=dim, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim,
            length=length, input_embedding=input_embedding, dropout=dropout, init=init,
            method=method, roles=roles, encoding=encoding, sharing=sharing, radius=radius,
            rotary=rotary, angles=angles, kernel_size=kernel_size, relative_dim=relative_dim,
            relative_dim_out=relative_dim_out, shared_qkv=shared_qkv, mixing=mixing,
            hybrid_layers=hybrid_layers, rest=rest, extra_norms=extra_norms, qkv_bias=qkv_bias,
            gelu=gelu, norm_eps=norm_eps, vocabulary=vocabulary, precision=precision, device=device,
            dtype=dtype)


_Cloud = TypeVar("_Cloud", bound="CloudArguments")


class CloudArguments:
    _build: Any

    def __init__(
        self,
        *,
        model: Optional[str] = None,
        depth: Optional[int] = None,
        dim: Optional[int] = None,
        heads: Optional[int] = None,
        dim_head: Optional[int] = None,
        mlp_dim: Optional[int] = None,
        input_embedding: Optional[bool] = None,
        dropout: Optional[float] = None,
        init: Optional[Init] = None,
        method: Optional[Method] = None,
        roles: Optional[str] = None,
        encoding: Optional[Encoding] = None,
        sharing: Optional[Sharing] = None,
        radius: Optional[int] = None,
        rotary: Optional[bool] = None,
        angles: Optional[Angles] = None,
        kernel_size: Optional[int] = None,
        relative_dim: Optional[int] = None,
        relative_dim_out: Optional[int] = None,
        shared_qkv: Optional[bool] = None,
        mixing: Optional[Mixing] = None,
        hybrid_layers: Optional[int] = None,
        rest: Optional[Method] = None,
        qkv_bias: Optional[bool] = None,
        gelu: Optional[Gelu] = None,
        norm_eps: Optional[float] = None,
        channels: Optional[int] = None,
        classes: Optional[int] = None,
        pooling: Optional[Pooling] = None,
        axes: Optional[int] = None,
        spacing: Optional[float] = None,
        neighbours: Optional[int] = None,
        cutoff: Optional[float] = None,
        distances: Optional[bool] = None,
        learn_spacing: Optional[bool] = None,
        coordinates: Optional[Coordinates] = None,
        points: Optional[int] = None,
        target_mean: Optional[float] = None,
        target_scale: Optional[float] = None,
        precision: Optional[Precision] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        """None stands for what `model` says, or for what is in brackets.

        model             a name such as cloud-a, for what is not given
        depth             number of blocks (4)
        dim               channels per token (96)
        heads             number of attention heads (3)
        dim_head          channels per head (32)
        mlp_dim           hidden channels of the MLPs (192)
        input_embedding   learned position embedding added to the input (set by the method)
        dropout           dropout probability of features and attention (0.0)
        init              weight initialisation: scaled, authors, none (scaled)
        method            attention method; see `translution list`: self_attention_no_pos,
                          self_attention, relative_key, relative_value, relative_bias,
                          gated_position, rotary, alpha_translution, translution, convolution
                          (translution)
        roles             roles with a matrix per offset: some of q, k, v, or none (qkv)
        encoding          one matrix per offset or per token pair: relative, absolute (relative)
        sharing           weight sharing of offsets beyond the radius: none, direction, logarithmic,
                          window (direction)
        radius            sharing radius, or lattice points to each side (cloud) (2)
        rotary            rotary position for queries and keys that are not relative (False)
        angles            precision of rotary angles: double, float (double)
        kernel_size       side of the convolution window (3)
        relative_dim      relative channels per head (8)
        relative_dim_out  relative channels per head after the matrices; 0: the same as before (0)
        shared_qkv        additional W^q, W^k, W^v shared by all offsets (True)
        mixing            combination of the shared and the relative part: sum, mean (sum)
        hybrid_layers     number of leading layers that use the method (all)
        rest              method of the other layers: self_attention_no_pos, self_attention,
                          relative_key, relative_value, relative_bias, gated_position, rotary,
                          alpha_translution, translution, convolution (self_attention_no_pos)
        qkv_bias          bias on queries, keys and values (False)
        gelu              form of GELU in the MLPs: exact, tanh (exact)
        norm_eps          epsilon added to the variance in norms (1e-05)
        channels          input channels, or features of a point (1)
        classes           number of classes; 0: a number (cloud) (10)
        pooling           input of the head: class token, or mean of the patches or points: cls,
                          mean (cls)
        axes              numbers of a position (3)
        spacing           distance of lattice points, in the unit of the positions (from the data)
        neighbours        nearest points that a point attends to; 0: all (0)
        cutoff            farthest point that a point attends to; 0: any (0.0)
        distances         offsets are the distances of pairs (False)
        learn_spacing     the spacing is a parameter (False)
        coordinates       coordinates that an input embedding reads: given, centred (given)
        points            points of a cloud, for costs and memory only (1024)
        target_mean       mean of the numbers to predict (0.0)
        target_scale      their standard deviation (1.0)
        precision         precision of matrix products: float32, bf16 (float32)
        device            of the parameters (cpu)
        dtype             of the parameters (PyTorch's default)
        """
        self._build(dict(
            model=model, depth=depth, dim=dim, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim,
            input_embedding=input_embedding, dropout=dropout, init=init, method=method, roles=roles,
            encoding=encoding, sharing=sharing, radius=radius, rotary=rotary, angles=angles,
            kernel_size=kernel_size, relative_dim=relative_dim, relative_dim_out=relative_dim_out,
            shared_qkv=shared_qkv, mixing=mixing, hybrid_layers=hybrid_layers, rest=rest,
            qkv_bias=qkv_bias, gelu=gelu, norm_eps=norm_eps, channels=channels, classes=classes,
            pooling=pooling, axes=axes, spacing=spacing, neighbours=neighbours, cutoff=cutoff,
            distances=distances, learn_spacing=learn_spacing, coordinates=coordinates,
            points=points, target_mean=target_mean, target_scale=target_scale, precision=precision), device, dtype)

    @classmethod
    def named(
        cls: Type[_Cloud],
        model: str,
        *,
        depth: Optional[int] = None,
        dim: Optional[int] = None,
        heads: Optional[int] = None,
        dim_head: Optional[int] = None,
        mlp_dim: Optional[int] = None,
        input_embedding: Optional[bool] = None,
        dropout: Optional[float] = None,
        init: Optional[Init] = None,
        method: Optional[Method] = None,
        roles: Optional[str] = None,
        encoding: Optional[Encoding] = None,
        sharing: Optional[Sharing] = None,
        radius: Optional[int] = None,
        rotary: Optional[bool] = None,
        angles: Optional[Angles] = None,
        kernel_size: Optional[int] = None,
        relative_dim: Optional[int] = None,
        relative_dim_out: Optional[int] = None,
        shared_qkv: Optional[bool] = None,
        mixing: Optional[Mixing] = None,
        hybrid_layers: Optional[int] = None,
        rest: Optional[Method] = None,
        qkv_bias: Optional[bool] = None,
        gelu: Optional[Gelu] = None,
        norm_eps: Optional[float] = None,
        channels: Optional[int] = None,
        classes: Optional[int] = None,
        pooling: Optional[Pooling] = None,
        axes: Optional[int] = None,
        spacing: Optional[float] = None,
        neighbours: Optional[int] = None,
        cutoff: Optional[float] = None,
        distances: Optional[bool] = None,
        learn_spacing: Optional[bool] = None,
        coordinates: Optional[Coordinates] = None,
        points: Optional[int] = None,
        target_mean: Optional[float] = None,
        target_scale: Optional[float] = None,
        precision: Optional[Precision] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> _Cloud:
        """A model by its name, such as cloud-a, with other options changed."""
        return cls(
            model=model, depth=depth, dim=dim, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim,
            input_embedding=input_embedding, dropout=dropout, init=init, method=method, roles=roles,
            encoding=encoding, sharing=sharing, radius=radius, rotary=rotary, angles=angles,
            kernel_size=kernel_size, relative_dim=relative_dim, relative_dim_out=relative_dim_out,
            shared_qkv=shared_qkv, mixing=mixing, hybrid_layers=hybrid_layers, rest=rest,
            qkv_bias=qkv_bias, gelu=gelu, norm_eps=norm_eps, channels=channels, classes=classes,
            pooling=pooling, axes=axes, spacing=spacing, neighbours=neighbours, cutoff=cutoff,
            distances=distances, learn_spacing=learn_spacing, coordinates=coordinates,
            points=points, target_mean=target_mean, target_scale=target_scale, precision=precision,
            device=device, dtype=dtype)
