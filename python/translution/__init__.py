"""Attention whose weights depend on the offset between two tokens.

    import torch, translution
    layer = translution.Translution(dim=192, heads=3, grid=(7, 7), cls=True)
    y = layer(torch.randn(2, 50, 192))

The modules have the same names, options and parameters as in the C++ library and call its ops,
``torch.ops.translution``. Without the library, attention layers are those of
``translution.reference``, in plain PyTorch. See docs/python.md.
"""

from ._library import BUILT, PATH, LibraryError  # first: it sees whether PyTorch was imported before
from . import _compat, _transforms, functional, safetensors
from ._model import ModelCost
from ._runtime import runtime
from .adamw import AdamW
from .authors import NormedAttention, from_authors, from_gpt2, from_timm, to_authors
from ._tokens import Relation
from .attention import AlphaTranslution, Attention, LoRTranslution, Translution
from .reference import ReferenceAlphaTranslution, ReferenceAttention, ReferenceTranslution
from .block import Backbone, Block, FeedForward
from .checkpoint import load_model, load_weights, save_weights
from .cloud import Cloud
from .gpt import GPT
from .linear import Linear
from .norm import LayerNorm
from .points import PointAttention, PointPairs, ReferencePointAttention
from ._regrid import RegridNote, regrid
from .swap import SwapReport, swap
from .vit import ViT

__version__ = "0.1.0"

#: The loaded library file, and the LibTorch version that it was built for; empty without a library.
library_path = str(PATH or "")
library_torch = BUILT.torch if BUILT else ""

if BUILT and _compat.HAS_REGISTER_VMAP:
    _transforms.register()

if not BUILT:
    Attention, Translution = ReferenceAttention, ReferenceTranslution  # type: ignore[misc,assignment]
    AlphaTranslution = LoRTranslution = ReferenceAlphaTranslution  # type: ignore[misc,assignment]

__all__ = [
    "AdamW",
    "AlphaTranslution",
    "Attention",
    "Backbone",
    "Block",
    "Cloud",
    "FeedForward",
    "GPT",
    "LayerNorm",
    "LibraryError",
    "Linear",
    "LoRTranslution",
    "ModelCost",
    "NormedAttention",
    "PointAttention",
    "PointPairs",
    "ReferenceAttention",
    "ReferencePointAttention",
    "RegridNote",
    "Relation",
    "SwapReport",
    "Translution",
    "ViT",
    "from_authors",
    "from_gpt2",
    "from_timm",
    "functional",
    "library_path",
    "library_torch",
    "load_model",
    "load_weights",
    "regrid",
    "runtime",
    "safetensors",
    "save_weights",
    "swap",
    "to_authors",
]
