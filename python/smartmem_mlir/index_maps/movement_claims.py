"""What a data-movement operation does, claimed to be a view and checked by doing it.

A certificate compares maps with maps. Where a view first comes from an operation there is no map to compare with, only
the operation's definition: here it is executed by NumPy on an operand whose elements all differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import IndexMapError, ProofInconclusiveError
from smartmem_mlir.index_maps.map import evaluate
from smartmem_mlir.index_maps.text import parse_map, parse_view, print_view
from smartmem_mlir.index_maps.view import Fill, View, apply

Array: TypeAlias = npt.NDArray[np.int64]
Attributes: TypeAlias = Mapping[str, Any]

MAX_ELEMENTS = 1 << 27
"""Largest operands and result together that are executed."""
_FILL, _OTHER_FILL = -1, -2


@dataclass(frozen=True)
class MovementClaim:
    """The claim that an operation computes a view of its operands.

    Args:
        operation: Its name: `linalg.transpose`, `tensor.concat`, ...
        attributes: What defines it beside shapes: integers, lists of integers, maps as text.
        view: The view.
    """

    operation: str
    attributes: tuple[tuple[str, Any], ...]
    view: View

    def check(self) -> bool:
        """Whether the operation and the view move every element alike; both answers are proofs.

        Raises:
            IndexMapError: The operation is unknown, or its attributes do not fit.
            ProofInconclusiveError: The tensors are too large to execute the operation.
        """
        execute = _EXECUTE.get(self.operation)
        if execute is None:
            raise IndexMapError(f"no definition of '{self.operation}' to compare with")
        volumes = [Box.of(shape).volume for shape in (*self.view.operands, self.view.shape)]
        if sum(volumes) > MAX_ELEMENTS:
            raise ProofInconclusiveError(f"{self.operation} of {max(volumes)} elements is too large to execute")
        starts = np.cumsum([0, *volumes])
        operands = [
            np.arange(start, start + volume).reshape(shape)
            for start, volume, shape in zip(starts, volumes, self.view.operands, strict=False)
        ]
        attributes = dict(self.attributes)
        try:
            wanted = execute(operands, attributes, self.view.shape)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise IndexMapError(f"malformed {self.operation}: {error!r}") from error
        fill = Fill(attributes["fill"]) if "fill" in attributes else None
        pieces = [
            replace(piece, source=Fill(_FILL if piece.source == fill else _OTHER_FILL))
            if isinstance(piece.source, Fill)
            else piece
            for piece in self.view.pieces
        ]
        return np.array_equal(wanted, apply(self.view.with_pieces(pieces), operands, np.int64))

    def to_json(self) -> dict[str, Any]:
        """The claim as JSON values; the view is in the syntax of `text.py`."""
        return {"operation": self.operation, "attributes": dict(self.attributes), "view": print_view(self.view)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> MovementClaim:
        """Reads what `to_json` wrote.

        Raises:
            IndexMapError: It is not a claim.
        """
        try:
            attributes = tuple((str(key), _frozen(value)) for key, value in data["attributes"].items())
            return MovementClaim(str(data["operation"]), attributes, parse_view(data["view"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise IndexMapError(f"not a claim about an operation: {error!r}") from error


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _transpose(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    return np.transpose(operands[0], attributes["permutation"])


def _broadcast(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(np.expand_dims(operands[0], attributes["dimensions"]), shape)


def _reshape(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    return operands[0].reshape(shape)


def _at(attributes: Attributes, strides: Sequence[int]) -> tuple[slice, ...]:
    bounds = zip(attributes["offsets"], attributes["sizes"], strides, strict=True)
    return tuple(slice(offset, offset + (size - 1) * stride + 1, stride) for offset, size, stride in bounds)


def _extract_slice(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    return operands[0][_at(attributes, attributes["strides"])].reshape(shape)


def _insert_slice(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    into, source = operands
    result = into.copy()
    result[_at(attributes, [1] * into.ndim)] = source.reshape(attributes["sizes"])
    return result


def _concat(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    return np.concatenate(operands, attributes["dim"])


def _pad(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    widths = list(zip(attributes["low"], attributes["high"], strict=True))
    return np.pad(operands[0], widths, constant_values=_FILL) if widths else operands[0]


def _generic(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    space = Box.of(attributes["extents"])
    result = np.full(shape, _OTHER_FILL, np.int64)
    read = tuple(evaluate(parse_map(attributes["reads"], space)))
    written = tuple(evaluate(parse_map(attributes["writes"], space)))
    # Of a gather: the axis that is read at positions from a table.
    source = operands[0]
    if "table" in attributes:
        source = np.take(source, np.asarray(attributes["table"]), attributes["axis"])
    element = source[read]
    if written:
        result[written] = element
    else:
        result[()] = element.reshape(-1)[0]
    return result


_EXECUTE: Mapping[str, Callable[[Sequence[Array], Attributes, tuple[int, ...]], Array]] = {
    "linalg.transpose": _transpose,
    "linalg.broadcast": _broadcast,
    "linalg.generic": _generic,
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.concat": _concat,
    "tensor.pad": _pad,
}
