"""Make the small graphs that the tests use: `python -m smartmem_mlir.zoo.small_recipes FOLDER [NAME ...]`.

Run it after a model or a card has changed, with the `[zoo]` extra installed. Each file is checked at once: its
weights are put back and ONNX Runtime's output compared with PyTorch's.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.zoo.build import build_recipe
from smartmem_mlir.zoo.card import Exporter
from smartmem_mlir.zoo.recipe import materialize
from smartmem_mlir.zoo.verify import reference, reference_inputs, run_onnx

NAMES = (
    "autoformer",
    "biformer",
    "crossformer",
    "cswin",
    "efficientvit",
    "flatten",
    "smt",
    "swin",
    "vit",
    "conformer",
    "sd-text-encoder",
    "sd-unet",
    "sd-vae-decoder",
    "pythia",
    "convnext",
    "regnet",
    "resnext",
    "yolo",
    "resnet50",
    "fst",
)
"""Every card but `pythia-70m`, whose small variant is that of `pythia`."""
TORCHSCRIPT_NAMES = ("swin", "vit", "cswin", "conformer")
"""Also exported the old way, which leaves shape arithmetic in the graph."""
TOLERANCE = 1e-4
"""Largest deviation from PyTorch, in standard deviations of the output."""


def make(name: str, folder: Path, exporter: Exporter) -> Path:
    """Write and check one recipe.

    Raises:
        InvalidModelError: ONNX Runtime computes something else than PyTorch.
    """
    suffix = "" if exporter == "dynamo" else f"_{exporter}"
    recipe = folder / f"{name.replace('-', '_')}{suffix}.onnx"
    build_recipe(name, recipe, small=True, exporter=exporter)
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "model.onnx"
        materialize(recipe, model)
        error = reference(recipe).error(run_onnx(model, reference_inputs(recipe)))
    if error > TOLERANCE:
        recipe.unlink()
        raise InvalidModelError(f"ONNX Runtime deviates from PyTorch by {error:.2e}", file=recipe)
    return recipe


def main(arguments: list[str]) -> None:
    """Make the named recipes, or all."""
    folder, names = Path(arguments[0]), arguments[1:] or NAMES
    for name in names:
        make(name, folder, "dynamo")
        if name in TORCHSCRIPT_NAMES:
            make(name, folder, "torchscript")


if __name__ == "__main__":
    main(sys.argv[1:])
