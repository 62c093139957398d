"""The paper's 18 models and a few more, with random weights from a seed.

`CARDS` says what there is; :func:`find` looks one up; `smartmem_mlir.zoo.build.build` exports one through PyTorch
(extra `[zoo]`); :func:`materialize` makes the small ones from graphs kept without weights, with NumPy and onnx alone.
"""

from smartmem_mlir.zoo.card import InputSpec, ModelCard
from smartmem_mlir.zoo.cards import CARDS
from smartmem_mlir.zoo.recipe import materialize
from smartmem_mlir.zoo.registry import find

__all__ = ["CARDS", "InputSpec", "ModelCard", "find", "materialize"]
