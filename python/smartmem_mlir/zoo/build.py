"""`smartmem zoo build`: a card -> an ONNX file, by way of PyTorch."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smartmem_mlir.errors import OptionError
from smartmem_mlir.zoo.card import EXPORTERS, Exporter, ModelCard
from smartmem_mlir.zoo.environment import require
from smartmem_mlir.zoo.export import DEFAULT_OPSET, check_opset, export
from smartmem_mlir.zoo.matching import batch_norms, describe
from smartmem_mlir.zoo.randomize import DEFAULT_SEED, draws, randomize
from smartmem_mlir.zoo.recipe import METADATA_KEY, materialize, replacing
from smartmem_mlir.zoo.registry import create, find
from smartmem_mlir.zoo.streaming import export_hollow, hollow
from smartmem_mlir.zoo.verify import Reference

if TYPE_CHECKING:
    import onnx

STREAMED_BYTES = 1 << 30
"""Weights from this size on are streamed to a data file and never held in memory together."""
EXPORT_PACKAGES = ("onnx", "onnxscript")


def build(
    name: str,
    out: Path | str,
    *,
    small: bool = False,
    opset: int = DEFAULT_OPSET,
    exporter: Exporter = "dynamo",
    seed: int = DEFAULT_SEED,
    batch: int = 1,
) -> Path:
    """Build a model of the zoo and write it as ONNX with random weights.

    Models of more than 1 GiB get `<out>.data` beside the file, and must use the dynamo exporter.

    Args:
        name: The model.
        out: The file to write; it appears complete or not at all.
        small: The small variant of the same structure.
        opset: ONNX operator set.
        exporter: Which of PyTorch's exporters.
        seed: Seed of the weights.
        batch: Examples in one inference.

    Raises:
        OptionError: The model, exporter or operator set is unknown or they do not go together.
        MissingPackageError: A package is absent; the message names the extra to install.
    """
    card, out = _checked(name, opset, exporter).at_batch(batch), Path(out)
    if _streamed(card, small):
        if exporter != "dynamo":
            raise OptionError(
                f"{card.title} has over 1 GiB of weights, which only the dynamo exporter can stream",
                node=card.name,
                hint="use --exporter dynamo, or --small",
            )
        materialize(streamed_recipe(card, small, opset, seed), out, external=True)
        return out
    module, inputs, _ = _prepared(card, small, seed)
    model = export(module, inputs, card, exporter, opset)
    with replacing(out) as file:
        file.write(model.SerializeToString(deterministic=True))
    return out


def build_recipe(
    name: str,
    out: Path | str,
    *,
    small: bool = True,
    opset: int = DEFAULT_OPSET,
    exporter: Exporter = "dynamo",
    seed: int = DEFAULT_SEED,
) -> Path:
    """Like :func:`build`, but write the graph without weights, with PyTorch's output on the test inputs.

    The file is what :func:`smartmem_mlir.zoo.recipe.materialize` reads.
    """
    card, out = _checked(name, opset, exporter), Path(out)
    module, inputs, weights = _prepared(card, small, seed)
    model = export(module, inputs, card, exporter, opset)
    describe(model, weights, batch_norms(module, weights))
    if exporter == "torchscript":
        _shorten_names(model)
    import torch

    with torch.no_grad():
        output = module(*inputs).numpy()
    entry = model.metadata_props.add()
    entry.key = METADATA_KEY
    entry.value = json.dumps(
        {
            "model": card.name,
            "small": small,
            "exporter": exporter,
            "inputs": [asdict(spec.draw(seed)) | {"name": spec.name} for spec in card.input_specs(small)],
            "reference": asdict(Reference.of(output)),
        }
    )
    with replacing(out) as file:
        file.write(model.SerializeToString(deterministic=True))
    return out


def streamed_recipe(card: ModelCard, small: bool, opset: int, seed: int) -> onnx.ModelProto:
    """The recipe of a model that is too large to build: exported without weights."""
    require(("torch", *EXPORT_PACKAGES, *card.packages), card.name)
    with hollow():
        module = create(card, small)
    return export_hollow(module, _inputs(card, small, seed), card, opset, draws(module, seed, card.gain))


def _shorten_names(model: onnx.ModelProto) -> None:
    """Number the intermediate values, which TorchScript names by module paths: half the size of a graph."""
    outputs = {value.name for value in model.graph.output}
    short: dict[str, str] = {}
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [short.get(name, name) for name in names]
        for position, name in enumerate(node.output):
            if name and name not in outputs:
                short[name] = node.output[position] = f"v{len(short)}"


def _checked(name: str, opset: int, exporter: Exporter) -> ModelCard:
    card = find(name)
    if exporter not in EXPORTERS:
        raise OptionError(f"unknown exporter {exporter!r}", hint=f"choose {' or '.join(EXPORTERS)}")
    check_opset(exporter, opset)
    require(("torch", *EXPORT_PACKAGES, *card.packages), card.name)
    return card


def _prepared(card: ModelCard, small: bool, seed: int) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The module with its random weights, test inputs, and the distributions of the weights."""
    module = create(card, small)
    weights = randomize(module, seed, card.gain)
    return module, _inputs(card, small, seed), weights


def _inputs(card: ModelCard, small: bool, seed: int) -> tuple[Any, ...]:
    import torch

    return tuple(torch.from_numpy(spec.draw(seed).values()) for spec in card.input_specs(small))


def _streamed(card: ModelCard, small: bool) -> bool:
    """Whether the weights are large, by the paper's count: known before anything is built."""
    params = card.paper.params if card.paper else None
    return not small and params is not None and params * 4e6 > STREAMED_BYTES
