"""Which weights the archive holds: those that the module reads, in the layout in which it reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import linearize
from smartmem_mlir.index_maps.map import IndexMap, evaluate
from smartmem_mlir.index_maps.text import parse_view
from smartmem_mlir.index_maps.view import Fill, View
from smartmem_mlir.iree.isolation import DerivedParameter, LoweredModule
from smartmem_mlir.kernels.winograd import transform_filters
from smartmem_mlir.signature import Parameter

Array = npt.NDArray[np.generic]

CHUNK = 1 << 21
"""Elements of a view that are computed at a time: their source indices take 8 bytes each."""


def stored_parameters(parameters: Mapping[str, Parameter], lowered: LoweredModule) -> dict[str, Parameter]:
    """The weights of a lowered module.

    Args:
        parameters: Those of the model.
        lowered: The module and the parameters it reads.

    Returns:
        Each parameter that the module names; what only views read is not among them.
    """
    return {
        key: parameters[key] if derived is None else _derived(key, parameters[derived.source], derived)
        for key, derived in lowered.parameters.items()
    }


def _derived(key: str, source: Parameter, derived: DerivedParameter) -> Parameter:
    view, filters = parse_view(derived.view), derived.filters
    if filters is None:
        return Parameter(replace(source.spec, name=key, shape=view.shape), lambda: evaluate_view(view, source.load()))
    outputs, taps = filters
    size = outputs + taps - 1
    spec = replace(source.spec, name=key, shape=(size, size, *view.shape[2:]))
    return Parameter(spec, lambda: transform_filters(evaluate_view(view, source.load()), outputs))


def evaluate_view(view: View, array: Array) -> Array:
    """The view of one array, a part at a time.

    Args:
        view: A view of one operand.
        array: The operand, of any type.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    result = np.empty(view.shape, array.dtype)
    for piece in view.pieces:
        rows = piece.box.extents[0] if piece.box.rank else 1
        step = max(1, CHUNK * rows // max(1, piece.box.volume))
        for start in range(0, rows, step):
            box = _rows(piece.box, start, min(rows, start + step))
            at = tuple(slice(lo, hi) for lo, hi in zip(box.lo, box.hi, strict=True))
            if isinstance(piece.source, Fill):
                result[at] = piece.source.value
                continue
            (address,) = evaluate(IndexMap(box, (linearize(piece.exprs, view.operands[0]),)))
            result[at] = flat[np.broadcast_to(address, box.extents)]
    assert result.size == prod(view.shape)
    return result


def _rows(box: Box, start: int, stop: int) -> Box:
    return box.with_axis(0, box.lo[0] + start, box.lo[0] + stop) if box.rank else box
