"""ONNX operators as PyTorch functions; see :mod:`onnx_torch`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

_TORCH_DTYPES = {
    onnx.TensorProto.FLOAT: torch.float32,
    onnx.TensorProto.FLOAT16: torch.float16,
    onnx.TensorProto.DOUBLE: torch.float64,
    onnx.TensorProto.INT64: torch.int64,
    onnx.TensorProto.INT32: torch.int32,
    onnx.TensorProto.BOOL: torch.bool,
}


class Node:
    """One operator: attributes as Python values, and inputs that are known before the model runs.

    Args:
        proto: The node.
        known: Values known so far, by name; NumPy's, because `torch.export` traces what is done to tensors.
    """

    def __init__(self, proto: onnx.NodeProto, known: dict[str, np.ndarray[Any, Any]]) -> None:
        self.kind = proto.op_type
        self.inputs = list(proto.input)
        self.outputs = list(proto.output)
        self._attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
        self._known = known

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, text as `str`."""
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, index: int) -> bool:
        """Whether an optional input is there."""
        return len(self.inputs) > index and bool(self.inputs[index])

    def is_known(self, index: int) -> bool:
        """Whether an input is known before the model runs."""
        return self.inputs[index] in self._known

    def ints(self, index: int) -> list[int]:
        """A known input as integers."""
        return [int(value) for value in self._value(index)]

    def floats(self, index: int) -> list[float]:
        """A known input as numbers."""
        return [float(value) for value in self._value(index)]

    def _value(self, index: int) -> np.ndarray[Any, Any]:
        if not self.is_known(index):
            raise NotImplementedError(f"{self.kind}: input {index} depends on the data")
        return self._known[self.inputs[index]].reshape(-1)

    def axes(self, index: int) -> list[int] | None:
        """Axes, which moved from an attribute to an input in opset 13 or 18."""
        if "axes" in self._attributes:
            return list(self._attributes["axes"])
        return self.ints(index) if self.has(index) else None


def _reshape(node: Node, x: torch.Tensor, _: Any) -> torch.Tensor:
    sizes = node.ints(1)
    if not node.attribute("allowzero", 0):
        sizes = [x.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    return x.reshape(sizes)


def _unsqueeze(node: Node, x: torch.Tensor, *_: Any) -> torch.Tensor:
    axes = node.axes(1) or []
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


def _squeeze(node: Node, x: torch.Tensor, *_: Any) -> torch.Tensor:
    axes = node.axes(1)
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


def _slice(node: Node, x: torch.Tensor, *_: Any) -> torch.Tensor:
    starts, ends = node.ints(1), node.ints(2)
    axes = node.ints(3) if node.has(3) else list(range(len(starts)))
    steps = node.ints(4) if node.has(4) else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        begin, stop, step = slice(start, end, step).indices(x.shape[axis])
        if step > 0:
            x = x[(slice(None),) * (axis % x.dim()) + (slice(begin, max(stop, begin), step),)]
        else:
            x = x.index_select(axis, torch.arange(begin, stop, step))
    return x


def _split(node: Node, x: torch.Tensor, *_: Any) -> Sequence[torch.Tensor]:
    axis = node.attribute("axis", 0)
    if len(node.outputs) == 1:
        return [x]  # PyTorch has a split into one part, but exporters of LiteRT's do not
    if node.has(1) or node.attribute("split") is not None:
        return x.split(node.ints(1) if node.has(1) else list(node.attribute("split")), axis)
    return x.split(math.ceil(x.shape[axis] / len(node.outputs)), axis)


def _gather(node: Node, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    axis = node.attribute("axis", 0) % x.dim()
    if node.is_known(1) and indices.dim() == 0:
        return x.select(axis, node.ints(1)[0])
    if node.is_known(1):
        indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    picked = x.index_select(axis, indices.reshape(-1).long())
    return picked.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])


def _gather_nd(node: Node, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    batch = node.attribute("batch_dims", 0)
    grids = [
        torch.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(indices.dim() - 1)])
        for axis in range(batch)
    ]
    return x[(*grids, *indices.unbind(-1))]


def _expand(node: Node, x: torch.Tensor, _: Any) -> torch.Tensor:
    return x.expand(torch.broadcast_shapes(x.shape, torch.Size(node.ints(1))))


def _pad(node: Node, x: torch.Tensor, *_: Any) -> torch.Tensor:
    pads = node.ints(1) if node.has(1) else list(node.attribute("pads"))
    axes = node.ints(3) if node.has(3) else list(range(x.dim()))
    before, after = [0] * x.dim(), [0] * x.dim()
    for place, axis in enumerate(axes):
        before[axis], after[axis] = pads[place], pads[place + len(axes)]
    amounts = [amount for axis in reversed(range(x.dim())) for amount in (before[axis], after[axis])]
    mode = node.attribute("mode", "constant")
    if mode == "constant":
        value = node.floats(2)[0] if node.has(2) else 0.0
        return F.pad(x, amounts, value=value)
    # PyTorch pads the last two or three axes in these modes.
    while len(amounts) > 2 and amounts[-2:] == [0, 0]:
        amounts = amounts[:-2]
    return F.pad(x, amounts, mode={"reflect": "reflect", "edge": "replicate"}[mode])


def _spatial_pads(node: Node, x: torch.Tensor, value: float = 0.0) -> tuple[torch.Tensor, list[int]]:
    """Padding for a window operator: symmetric amounts, after padding the input where they are not."""
    if node.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise NotImplementedError(f"{node.kind}: auto_pad")
    rank = x.dim() - 2
    pads = list(node.attribute("pads", [0] * (2 * rank)))
    if pads[:rank] == pads[rank:]:
        return x, pads[:rank]
    amounts = [amount for axis in reversed(range(rank)) for amount in (pads[axis], pads[axis + rank])]
    return F.pad(x, amounts, value=value), [0] * rank


def _conv(node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    x, padding = _spatial_pads(node, x)
    function = (F.conv1d, F.conv2d, F.conv3d)[x.dim() - 3]
    ones = [1] * (x.dim() - 2)
    strides, dilations = list(node.attribute("strides", ones)), list(node.attribute("dilations", ones))
    return function(x, weight, bias, strides, padding, dilations, node.attribute("group", 1))


def _conv_transpose(
    node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    rank = x.dim() - 2
    if node.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise NotImplementedError(f"{node.kind}: auto_pad")
    pads = list(node.attribute("pads", [0] * (2 * rank)))
    if pads[:rank] != pads[rank:] or node.attribute("output_shape") is not None:
        raise NotImplementedError("ConvTranspose: asymmetric pads or output_shape")
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    strides, dilations = node.attribute("strides", [1] * rank), node.attribute("dilations", [1] * rank)
    extra = node.attribute("output_padding", [0] * rank)
    group = node.attribute("group", 1)
    return function(x, weight, bias, list(strides), pads[:rank], list(extra), group, list(dilations))


def _pool(node: Node, x: torch.Tensor) -> torch.Tensor:
    kernel, ones = list(node.attribute("kernel_shape")), [1] * (x.dim() - 2)
    strides, rounds_up = list(node.attribute("strides", ones)), bool(node.attribute("ceil_mode", 0))
    dilations = list(node.attribute("dilations", ones))
    if node.kind == "MaxPool":
        x, padding = _spatial_pads(node, x, -math.inf)
        return (F.max_pool1d, F.max_pool2d, F.max_pool3d)[x.dim() - 3](
            x, kernel, strides, padding, dilations, rounds_up
        )
    counts_padding = bool(node.attribute("count_include_pad", 0))
    padded, padding = _spatial_pads(node, x)
    if padded is not x and not counts_padding:
        raise NotImplementedError(f"{node.kind}: asymmetric pads that do not count")
    x = padded
    return (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[x.dim() - 3](
        x, kernel, strides, padding, rounds_up, counts_padding
    )


def _resize(node: Node, x: torch.Tensor, *_: Any) -> torch.Tensor:
    mode = node.attribute("mode", "nearest")
    coordinates = node.attribute("coordinate_transformation_mode", "half_pixel")
    sizes = node.ints(3) if node.has(3) else None
    if sizes is None:
        scales = node.floats(2)
        sizes = [math.floor(extent * scale) for extent, scale in zip(x.shape, scales, strict=True)]
    spatial = sizes[2:]
    if mode == "nearest":
        whole = all(size % extent == 0 for size, extent in zip(spatial, x.shape[2:], strict=True))
        if not whole:
            raise NotImplementedError("Resize: nearest by a factor that is not whole")
        rounding = node.attribute("nearest_mode", "round_prefer_floor")
        # For whole factors these take the element that PyTorch takes.
        if (coordinates, rounding) != ("asymmetric", "floor") and not (
            coordinates.endswith("half_pixel") and rounding.startswith("round")
        ):
            raise NotImplementedError(f"Resize: nearest, {coordinates}, {rounding}")
        return F.interpolate(x, spatial, mode="nearest")
    if mode == "linear" and coordinates in ("half_pixel", "pytorch_half_pixel", "align_corners"):
        name = ("linear", "bilinear", "trilinear")[len(spatial) - 1]
        return F.interpolate(x, spatial, mode=name, align_corners=coordinates == "align_corners")
    raise NotImplementedError(f"Resize: {mode}, {coordinates}")


def _layer_norm(node: Node, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    shape = x.shape[node.attribute("axis", -1) % x.dim() :]
    if scale.shape != shape:
        scale, bias = scale.expand(shape), bias.expand(shape) if bias is not None else None
    return F.layer_norm(x, shape, scale, bias, node.attribute("epsilon", 1e-5))


def _batch_norm(node: Node, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
    scale, bias, mean, variance = parameters
    return F.batch_norm(x, mean, variance, scale, bias, eps=node.attribute("epsilon", 1e-5))


def _gemm(node: Node, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
    a = a.T if node.attribute("transA", 0) else a
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    if alpha == beta == 1.0 and c is not None and c.dim() == 1:
        return F.linear(a, b if node.attribute("transB", 0) else b.T, c)
    result = alpha * (a @ (b.T if node.attribute("transB", 0) else b))
    return result if c is None else result + beta * c


def _reduction(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def reduce(node: Node, x: torch.Tensor, *_: Any) -> torch.Tensor:
        axes = node.axes(1)
        if axes is None and node.attribute("noop_with_empty_axes", 0):
            return x
        return function(
            x, tuple(axes) if axes is not None else tuple(range(x.dim())), bool(node.attribute("keepdims", 1))
        )

    return reduce


def _softmax(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda node, x: function(x, node.attribute("axis", -1))


def _top_k(node: Node, x: torch.Tensor, _: Any) -> tuple[torch.Tensor, torch.Tensor]:
    largest, axis = bool(node.attribute("largest", 1)), node.attribute("axis", -1)
    values, indices = torch.topk(x, node.ints(1)[0], axis, largest, bool(node.attribute("sorted", 1)))
    return values, indices


def _arg(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda node, x: function(x, node.attribute("axis", 0), bool(node.attribute("keepdims", 1)))


def _clip(node: Node, x: torch.Tensor, *_: Any) -> torch.Tensor:
    low, high = (node.floats(index)[0] if node.has(index) else None for index in (1, 2))
    return torch.clamp(x, low, high)


def _constant(node: Node) -> torch.Tensor:
    value = node.attribute("value")
    if value is not None:
        return torch.from_numpy(numpy_helper.to_array(value).copy())
    names = ("value_float", "value_floats", "value_int", "value_ints")
    return torch.tensor(next(node.attribute(name) for name in names if node.attribute(name) is not None))


def _constant_of_shape(node: Node, _: Any) -> torch.Tensor:
    value = node.attribute("value")
    fill = torch.from_numpy(numpy_helper.to_array(value).copy()) if value is not None else torch.zeros(1)
    return fill.expand(node.ints(0)).clone()


def _trilu(node: Node, x: torch.Tensor, *_: Any) -> torch.Tensor:
    diagonal = node.ints(1)[0] if node.has(1) else 0
    return torch.triu(x, diagonal) if node.attribute("upper", 1) else torch.tril(x, diagonal)


def _divide(node: Node, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator without attributes that matter."""
    return lambda node, *inputs: function(*inputs)


OPERATORS: dict[str, Callable[..., Any]] = {
    **{
        name: _plain(function)
        for name, function in {
            "Abs": torch.abs, "Add": torch.add, "And": torch.logical_and, "Ceil": torch.ceil, "Cos": torch.cos,
            "Equal": torch.eq, "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor, "Greater": torch.gt,
            "GreaterOrEqual": torch.ge, "HardSwish": F.hardswish, "Identity": lambda x: x, "IsNaN": torch.isnan,
            "Less": torch.lt, "LessOrEqual": torch.le, "Log": torch.log, "MatMul": torch.matmul, "Mul": torch.mul,
            "Neg": torch.neg, "Not": torch.logical_not, "Or": torch.logical_or, "Pow": torch.pow,
            "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Round": torch.round, "Sigmoid": torch.sigmoid,
            "Sign": torch.sign, "Sin": torch.sin, "Softplus": F.softplus, "Sqrt": torch.sqrt, "Sub": torch.sub,
            "Tanh": torch.tanh, "Where": torch.where, "Range": torch.arange,
        }.items()
    },
    "ArgMax": _arg(torch.argmax),
    "ArgMin": _arg(torch.argmin),
    "AveragePool": _pool,
    "BatchNormalization": _batch_norm,
    "Cast": lambda node, x: x.to(_TORCH_DTYPES[node.attribute("to")]),
    "Clip": _clip,
    "Concat": lambda node, *x: torch.cat(x, node.attribute("axis")),
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Div": _divide,
    "Einsum": lambda node, *x: torch.einsum(node.attribute("equation"), *x),
    "Elu": lambda node, x: F.elu(x, node.attribute("alpha", 1.0)),
    "Expand": _expand,
    "Flatten": lambda node, x: x.reshape(math.prod(x.shape[: node.attribute("axis", 1)]), -1),
    "Gather": _gather,
    "GatherElements": lambda node, x, i: torch.gather(x, node.attribute("axis", 0), i.long()),
    "GatherND": _gather_nd,
    "Gelu": lambda node, x: F.gelu(x, approximate=node.attribute("approximate", "none")),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda node, x: x.mean(tuple(range(2, x.dim())), keepdim=True),
    "HardSigmoid": lambda node, x: torch.clamp(
        x * node.attribute("alpha", 0.2) + node.attribute("beta", 0.5), 0.0, 1.0
    ),
    "InstanceNormalization": lambda node, x, scale, bias: F.instance_norm(
        x, weight=scale, bias=bias, eps=node.attribute("epsilon", 1e-5)
    ),
    "LayerNormalization": _layer_norm,
    "LeakyRelu": lambda node, x: F.leaky_relu(x, node.attribute("alpha", 0.01)),
    "LogSoftmax": _softmax(torch.log_softmax),
    "Max": lambda node, first, *rest: _fold(torch.maximum, first, rest),
    "MaxPool": _pool,
    "Min": lambda node, first, *rest: _fold(torch.minimum, first, rest),
    "Mod": lambda node, a, b: torch.fmod(a, b) if node.attribute("fmod", 0) else torch.remainder(a, b),
    "Pad": _pad,
    "ReduceL2": _reduction(lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep)),
    "ReduceMax": _reduction(torch.amax),
    "ReduceMean": _reduction(torch.mean),
    "ReduceMin": _reduction(torch.amin),
    "ReduceSum": _reduction(torch.sum),
    "Reshape": _reshape,
    "Resize": _resize,
    "Shape": lambda node, x: torch.tensor(list(x.shape), dtype=torch.int64),
    "Size": lambda node, x: torch.tensor(x.numel(), dtype=torch.int64),
    "Slice": _slice,
    "Softmax": _softmax(torch.softmax),
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": lambda node, x, _: x.repeat(node.ints(1)),
    "TopK": _top_k,
    "Transpose": lambda node, x: x.permute(list(node.attribute("perm", range(x.dim())[::-1]))),
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}  # fmt: skip
"""Operators by ONNX name: a function of the node and its inputs that returns one tensor or several."""


def _fold(function: Callable[..., torch.Tensor], first: torch.Tensor, rest: Sequence[torch.Tensor]) -> torch.Tensor:
    for other in rest:
        first = function(first, other)
    return first
