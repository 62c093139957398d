"""Export a model whose weights never exist: the billion-parameter ones, on a laptop.

Weights are random and each is a function of its name, so nothing needs them before the file is written: the module is
traced with parameters that occupy no memory, the graph becomes a recipe, and `materialize` writes weight after weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smartmem_mlir.zoo.card import ModelCard
from smartmem_mlir.zoo.draw import Draw
from smartmem_mlir.zoo.export import quiet, tidy
from smartmem_mlir.zoo.recipe import Drawn, get_record, set_record

if TYPE_CHECKING:
    import onnx


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
    with quiet():
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
    _fold_views(proto)
    tidy(proto, card.name)
    return proto


def _restore_placeholders(model: Any, draws: Mapping[str, Draw]) -> None:
    """Give the valueless initializers an external tensor each, so that the graph can be serialised."""
    import onnx_ir  # type: ignore[import-not-found]

    for name, value in model.graph.initializers.items():
        if name in draws:
            value.const_value = onnx_ir.ExternalTensor(
                Path("absent"), 0, 0, onnx_ir.DataType.FLOAT, shape=onnx_ir.Shape(draws[name].shape), name=name
            )


def _fold_views(model: onnx.ModelProto) -> None:
    """Remove every Transpose and Unsqueeze of a recorded weight; record and shape carry what they did."""
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        source = initializers.get(node.input[0]) if node.input else None
        result = _folded_view(node, source, initializers) if source is not None else None
        if result is None:
            kept.append(node)
        else:
            initializers[node.output[0]] = result
    used = {name for node in kept for name in node.input}
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(kept)
    model.graph.initializer.extend(tensor for name, tensor in initializers.items() if name in used)


def _folded_view(
    node: onnx.NodeProto, source: onnx.TensorProto, initializers: Mapping[str, onnx.TensorProto]
) -> onnx.TensorProto | None:
    """The result of a Transpose or Unsqueeze of `source` as a recorded initializer; None for anything else."""
    import onnx

    record = get_record(source)
    if not isinstance(record, Drawn):
        return None
    dims = tuple(source.dims)
    if node.op_type == "Transpose" and len(dims) == len(record.permutation):
        order = tuple(next(attribute.ints for attribute in node.attribute if attribute.name == "perm"))
        dims = tuple(dims[axis] for axis in order)
        record = Drawn(record.draw, tuple(record.permutation[axis] for axis in order))
    elif node.op_type == "Unsqueeze":
        axes = onnx.numpy_helper.to_array(initializers[node.input[1]])
        dims = np.expand_dims(np.broadcast_to(np.float32(0), dims), tuple(axes.tolist())).shape
    else:
        return None
    result = onnx.TensorProto(name=node.output[0], data_type=source.data_type, dims=dims)
    set_record(result, record)
    return result
