"""PyTorch -> ONNX, by either exporter, static shapes, batch 1."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smartmem_mlir.errors import OptionError
from smartmem_mlir.zoo.card import Exporter, ModelCard
from smartmem_mlir.zoo.draw import Draw
from smartmem_mlir.zoo.recipe import Drawn, set_record

if TYPE_CHECKING:
    import onnx

DEFAULT_OPSET = 18
"""What the dynamo exporter translates to without a version conversion."""
OPSETS: dict[Exporter, tuple[int, int]] = {"dynamo": (18, 23), "torchscript": (11, 20)}
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
    with _quiet():
        if exporter == "dynamo":
            program = torch.onnx.export(module, inputs, dynamo=True, opset_version=opset, **names)
            model: onnx.ModelProto = program.model_proto
        else:
            buffer = io.BytesIO()
            torch.onnx.export(module, inputs, buffer, dynamo=False, opset_version=opset, **names)
            model = onnx.load_from_string(buffer.getvalue())
    _tidy(model, card.name)
    return model


def export_hollow(
    module: Any, inputs: tuple[Any, ...], card: ModelCard, opset: int, draws: Mapping[str, Draw]
) -> onnx.ModelProto:
    """The exported model as a recipe, without its weights ever having existed.

    The dynamo exporter's optimizer folds transposed weights by value; here the weights have none, so the transposes
    are left over and fold into the records.

    Args:
        module: A module from :func:`hollow`.
        inputs: Tensors to trace it with.
        card: Names of inputs and output.
        opset: ONNX operator set.
        draws: What each parameter is, by qualified name.
    """
    import onnxscript.optimizer  # type: ignore[import-not-found]
    import torch

    names = {"input_names": [spec.name for spec in card.inputs], "output_names": [card.output]}
    with _quiet():
        program = torch.onnx.export(module, inputs, dynamo=True, opset_version=opset, optimize=False, **names)
        model = program.model
        for name, value in model.graph.initializers.items():
            if name in draws:
                value.const_value = None
        onnxscript.optimizer.optimize_ir(model)
        _restore_placeholders(model, draws)
        proto: onnx.ModelProto = program.model_proto
    for tensor in proto.graph.initializer:
        if tensor.name in draws:
            draw = draws[tensor.name]
            set_record(tensor, Drawn(draw, tuple(range(len(draw.shape)))))
    _fold_transposes(proto)
    _tidy(proto, card.name)
    return proto


def _restore_placeholders(model: Any, draws: Mapping[str, Draw]) -> None:
    """Give the valueless initializers an external tensor each, so that the graph can be serialised."""
    import onnx_ir  # type: ignore[import-not-found]

    for name, value in model.graph.initializers.items():
        if name in draws:
            value.const_value = onnx_ir.ExternalTensor(
                Path("absent"), 0, 0, onnx_ir.DataType.FLOAT, shape=onnx_ir.Shape(draws[name].shape), name=name
            )


def _fold_transposes(model: onnx.ModelProto) -> None:
    """Remove every Transpose of a recorded weight; the record carries the permutation."""
    import onnx

    from smartmem_mlir.zoo.recipe import get_record

    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    kept, transposed = [], []
    for node in model.graph.node:
        source = initializers.get(node.input[0]) if node.op_type == "Transpose" else None
        record = get_record(source) if source is not None else None
        if source is None or not isinstance(record, Drawn):
            kept.append(node)
            continue
        order = tuple(next(attribute.ints for attribute in node.attribute if attribute.name == "perm"))
        result = onnx.TensorProto(
            name=node.output[0], data_type=source.data_type, dims=[source.dims[axis] for axis in order]
        )
        set_record(result, Drawn(record.draw, tuple(record.permutation[axis] for axis in order)))
        transposed.append(result)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.graph.initializer.extend(transposed)
    used = {name for node in kept for name in node.input}
    live = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(live)


def _tidy(model: onnx.ModelProto, name: str) -> None:
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
def hollow() -> Iterator[None]:
    """Modules built inside have parameters without memory: real tensors on the CPU, all of whose strides are 0.

    Initialisation runs on the meta device and does nothing. Buffers are real, since constants such as rotary
    frequencies are part of the model. Nothing may write to such a parameter, and its values mean nothing.
    """
    import torch

    original = torch.nn.Module.register_parameter
    built: list[tuple[Any, str]] = []

    def register(self: Any, name: str, parameter: Any) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = torch.nn.Parameter(parameter.to("meta"), requires_grad=False)
        original(self, name, parameter)
        if parameter is not None:
            built.append((self, name))

    torch.nn.Module.register_parameter = register
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = original
    stand_ins: dict[int, Any] = {}
    for module, name in built:
        meta = module._parameters.get(name)
        if meta is None:
            continue
        if id(meta) not in stand_ins and meta.device.type == "meta":
            empty = torch.zeros((), dtype=meta.dtype).expand(meta.shape)
            stand_ins[id(meta)] = torch.nn.Parameter(empty, requires_grad=False)
        module._parameters[name] = stand_ins.get(id(meta), meta)


@contextmanager
def _quiet() -> Iterator[None]:
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
