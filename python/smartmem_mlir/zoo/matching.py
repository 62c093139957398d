"""Recognise the random weights of a model in an exported graph.

Exporters rename, transpose and fold: a Linear's weight arrives as its transpose, a convolution's with the BatchNorm
behind it multiplied in. Each initializer is compared with what PyTorch held, by value, and described by a record;
what is no random weight (index tables, masks, position biases gathered at export) is kept literally.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from smartmem_mlir.zoo.draw import Draw
from smartmem_mlir.zoo.recipe import Array, Drawn, Folded, Literal, Record, set_record, tensors

if TYPE_CHECKING:
    import onnx

INLINE_BYTES = 64
"""Initializers up to this size stay as they are: shapes, scalars, small biases."""
MAX_PERMUTED_RANK = 4


@dataclass(frozen=True)
class BatchNorm:
    """A BatchNorm layer of the module: the four tensors and its epsilon."""

    scale: Draw
    shift: Draw
    mean: Draw
    variance: Draw
    epsilon: float

    def factor(self) -> Array:
        """What it multiplies each channel by."""
        variance = self.variance.values().astype(np.float64) + self.epsilon
        return np.asarray(self.scale.values().astype(np.float64) / np.sqrt(variance))


def batch_norms(module: Any, draws: Mapping[str, Draw]) -> list[BatchNorm]:
    """The BatchNorm layers of a `torch.nn.Module` whose weights are `draws`."""
    found = []
    for name, part in module.named_modules():
        if f"{name}.running_var" in draws and f"{name}.weight" in draws:
            keys = ("weight", "bias", "running_mean", "running_var")
            scale, shift, mean, variance = (draws[f"{name}.{key}"] for key in keys)
            found.append(BatchNorm(scale, shift, mean, variance, part.eps))
    return found


def describe(model: onnx.ModelProto, draws: Mapping[str, Draw], norms: Sequence[BatchNorm]) -> None:
    """Replace the initializers of `model` by records, in place.

    Args:
        model: An exported model with its weights.
        draws: The weights by qualified name.
        norms: The BatchNorm layers that the exporter may have folded.
    """
    from onnx import numpy_helper

    matcher = _Matcher(draws, norms)
    pending = []
    for tensor in tensors(model):
        values = numpy_helper.to_array(tensor)
        if values.nbytes <= INLINE_BYTES:
            continue
        record = matcher.drawn(tensor.name, values) or matcher.folded_weight(values)
        if record is None:
            pending.append((tensor, values))
        else:
            set_record(tensor, record)
    # Folded biases are recognised by the weights they belong to, which are known only now.
    for tensor, values in pending:
        set_record(tensor, matcher.folded_bias(values) or Literal.of(values))


class _Matcher:
    """Looks values up among the weights and what exporters make of them."""

    def __init__(self, draws: Mapping[str, Draw], norms: Sequence[BatchNorm]) -> None:
        self._draws, self._norms = draws, norms
        self._by_extents: dict[tuple[int, ...], list[Draw]] = defaultdict(list)
        for draw in draws.values():
            self._by_extents[_extents(draw.shape)].append(draw)
        self._pairs: list[tuple[Draw, BatchNorm]] = []

    def drawn(self, name: str, values: Array) -> Record | None:
        """A weight, perhaps transposed or with axes of extent 1 added or removed."""
        candidates = self._by_extents[_extents(values.shape)]
        if name in self._draws:
            candidates = [self._draws[name], *candidates]
        for draw in candidates:
            source = draw.values()
            for order in _orders(draw.shape, values.shape):
                if np.array_equal(source.transpose(order).reshape(values.shape), values):
                    return Drawn(draw, order)
        return None

    def folded_weight(self, values: Array) -> Record | None:
        """A convolution's weight times a BatchNorm's factor; remembers the pair."""
        if values.ndim < 3:
            return None
        for draw in self._by_extents[_extents(values.shape)]:
            if draw.shape != values.shape:
                continue
            source = draw.values().astype(np.float64)
            channels = len(values)
            ratio = values.reshape(channels, -1)[:, 0] / source.reshape(channels, -1)[:, 0]
            per_channel = ratio.reshape(channels, *(1,) * (values.ndim - 1))
            if not np.allclose(source * per_channel, values, rtol=1e-4, atol=1e-6):
                continue
            for norm in self._norms:
                if norm.scale.shape == ratio.shape and np.allclose(norm.factor(), ratio, rtol=1e-4):
                    self._pairs.append((draw, norm))
                    return self._folded("weight", draw, norm)
        return None

    def folded_bias(self, values: Array) -> Record | None:
        """The bias of a convolution whose weight was recognised by :meth:`folded_weight`."""
        for draw, norm in self._pairs:
            if norm.scale.shape != values.shape:
                continue
            record = self._folded("bias", draw, norm)
            if np.allclose(record.values(), values, rtol=1e-4, atol=1e-6):
                return record
        return None

    def _folded(self, part: str, weight: Draw, norm: BatchNorm) -> Folded:
        bias = self._draws.get(weight.key.removesuffix("weight") + "bias")
        return Folded(part, weight, bias, norm.scale, norm.shift, norm.mean, norm.variance, norm.epsilon)


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    """What survives transposition and axes of extent 1."""
    return tuple(sorted(extent for extent in shape if extent != 1))


def _orders(source: tuple[int, ...], target: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Axis orders that bring `source` to `target`, up to axes of extent 1; the identity first."""
    wanted = [extent for extent in target if extent != 1]
    if len(source) > MAX_PERMUTED_RANK:
        yield tuple(range(len(source)))
        return
    for order in permutations(range(len(source))):
        if [source[axis] for axis in order if source[axis] != 1] == wanted:
            yield order
