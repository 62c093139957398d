"""PyTorch -> ONNX, by either exporter, static shapes, batch 1."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from smartmem_mlir.errors import OptionError
from smartmem_mlir.zoo.card import Exporter, ModelCard

if TYPE_CHECKING:
    import onnx

DEFAULT_OPSET = 18
"""What the dynamo exporter translates to without a version conversion."""
OPSETS: dict[Exporter, tuple[int, int]] = {"dynamo": (18, 23), "torchscript": (14, 20)}
"""Lowest and highest operator set of each exporter."""


def check_opset(exporter: Exporter, opset: int) -> None:
    """Refuse an operator set that the exporter cannot write.

    Raises:
        OptionError: It is outside :data:`OPSETS`.
    """
    low, high = OPSETS[exporter]
    if not low <= opset <= high:
        raise OptionError(
            f"the {exporter} exporter does not write opset {opset}", hint=f"choose one of {low} to {high}"
        )


def export(module: Any, inputs: tuple[Any, ...], card: ModelCard, exporter: Exporter, opset: int) -> onnx.ModelProto:
    """The exported model with its weights inside; for models that fit in memory twice.

    Args:
        module: The `torch.nn.Module`.
        inputs: Tensors to trace it with.
        card: Names of inputs and output.
        exporter: `dynamo` gives static shapes; `torchscript` leaves chains of Shape, Gather and Concat.
        opset: ONNX operator set.
    """
    import onnx
    import torch

    names = {"input_names": [spec.name for spec in card.inputs], "output_names": [card.output]}
    with quiet():
        if exporter == "dynamo":
            program = torch.onnx.export(module, inputs, dynamo=True, opset_version=opset, **names)
            model: onnx.ModelProto = program.model_proto
        else:
            buffer = io.BytesIO()
            torch.onnx.export(module, inputs, buffer, dynamo=False, opset_version=opset, **names)
            model = onnx.load_from_string(buffer.getvalue())
    tidy(model, card.name)
    return model


def tidy(model: onnx.ModelProto, name: str) -> None:
    """Drop what exporters say about the Python they came from: it is larger than the graph."""
    model.graph.name = name
    model.doc_string = ""
    parts = [model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output]
    parts += [*model.graph.value_info, *model.graph.initializer]
    for part in parts:
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    # Shape inference makes these again; an importer must not depend on them.
    del model.graph.value_info[:]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the exporters' progress and their advice to their own developers; errors still raise."""
    noisy = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in noisy]
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for logger in noisy:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(noisy, levels, strict=True):
                logger.setLevel(level)
