"""Which weights the archive holds: those that the module reads, in the layout in which it reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr, linearize
from smartmem_mlir.index_maps.map import IndexMap, evaluate
from smartmem_mlir.index_maps.text import parse_view
from smartmem_mlir.index_maps.view import Fill, View
from smartmem_mlir.iree.isolation import DerivedParameter, LoweredModule
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
    view = parse_view(derived.view)
    return Parameter(replace(source.spec, name=key, shape=view.shape), lambda: evaluate_view(view, source.load()))


def evaluate_view(view: View, array: Array) -> Array:
    """The view of one array, a part at a time.

    Args:
        view: A view of one operand.
        array: The operand, of any type.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    result = np.empty(view.shape, array.dtype)
    for piece in view.pieces:
        at = tuple(slice(lo, hi) for lo, hi in zip(piece.box.lo, piece.box.hi, strict=True))
        if isinstance(piece.source, Fill):
            result[at] = piece.source.value
            continue
        address = linearize(piece.exprs, view.operands[0])
        strided = _strided(flat, address, piece.box)
        if strided is not None:
            result[at] = strided
        else:
            _gather(flat, address, piece.box, result)
    assert result.size == prod(view.shape)
    return result


def _strided(flat: Array, address: Expr, box: Box) -> Array | None:
    """The elements at addresses over a box as a strided array, without a copy; None when the strides vary.

    Computing every address would take ten times as long, which for a hundred million weights is seconds.
    """
    strides = [address.coefficient(Dim(axis)) for axis in range(box.rank)]
    first = address.const + sum(stride * lo for stride, lo in zip(strides, box.lo, strict=True))
    steps = [stride * (extent - 1) for stride, extent in zip(strides, box.extents, strict=True)]
    least, greatest = first + sum(min(step, 0) for step in steps), first + sum(max(step, 0) for step in steps)
    if len(address.terms) > sum(stride != 0 for stride in strides) or least < 0 or greatest >= flat.size:
        return None
    return as_strided(flat[first:], box.extents, [stride * flat.itemsize for stride in strides], writeable=False)


def _gather(flat: Array, address: Expr, box: Box, result: Array) -> None:
    """Writes the elements at addresses over a box into the same box of the result, a part at a time."""
    rows = box.extents[0] if box.rank else 1
    step = max(1, CHUNK * rows // max(1, box.volume))
    for start in range(0, rows, step):
        part = _rows(box, start, min(rows, start + step))
        at = tuple(slice(lo, hi) for lo, hi in zip(part.lo, part.hi, strict=True))
        (indices,) = evaluate(IndexMap(part, (address,)))
        result[at] = flat[np.broadcast_to(indices, part.extents)]


def _rows(box: Box, start: int, stop: int) -> Box:
    return box.with_axis(0, box.lo[0] + start, box.lo[0] + stop) if box.rank else box
