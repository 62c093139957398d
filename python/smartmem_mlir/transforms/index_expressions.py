"""Index arithmetic in a linalg body, evaluated symbolically.

Importers spell a gather as a `linalg.generic` that computes an index with `linalg.index` and `arith` operations and
reads a captured tensor with `tensor.extract`. When the index depends on nothing but the iteration space and constants
it is a quasi-affine expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from mlir import ir

from smartmem_mlir.index_maps.box import Box, Ranges
from smartmem_mlir.index_maps.expr import ONE, ZERO, Expr, dim
from smartmem_mlir.transforms.structured import read_map
from smartmem_mlir.transforms.view_ops import defining_op

_CASTS = frozenset({"arith.index_cast", "arith.extsi", "arith.trunci", "arith.extui", "arith.index_castui"})
_INDEX_BITS = 64
Truth: TypeAlias = Callable[[tuple[int, int]], bool | None]
_COMPARE: Mapping[int, Truth] = {
    # Predicate of arith.cmpi -> truth of `difference <pred> 0`, None when the interval does not tell.
    0: lambda r: True if r == (0, 0) else (False if r[0] > 0 or r[1] < 0 else None),
    1: lambda r: False if r == (0, 0) else (True if r[0] > 0 or r[1] < 0 else None),
    2: lambda r: True if r[1] < 0 else (False if r[0] >= 0 else None),
    3: lambda r: True if r[1] <= 0 else (False if r[0] > 0 else None),
    4: lambda r: True if r[0] > 0 else (False if r[1] <= 0 else None),
    5: lambda r: True if r[0] >= 0 else (False if r[1] < 0 else None),
}


class IndexEvaluator:
    """Expressions for the integer values of one body.

    Args:
        extents: The iteration space.
        elements: Values that are known: the elements of constant operands, or whatever stands for a dimension.
    """

    def __init__(self, extents: Sequence[int], elements: Mapping[ir.Value, Expr]) -> None:
        self._ranges = Ranges(Box.of(extents))
        self._elements = elements

    def __call__(self, value: ir.Value) -> Expr | None:
        """`value` over the iteration space, or None when it is not quasi-affine (it depends on run-time data)."""
        known = self._elements.get(value)
        op = defining_op(value)
        if known is not None or op is None:
            return known
        if op.name == "linalg.index":
            return dim(op.attributes["dim"].value)
        if op.name == "arith.constant":
            attr = op.attributes["value"]
            return Expr(int(attr.value)) if isinstance(attr, ir.IntegerAttr | ir.BoolAttr) else None
        if op.name == "arith.select":
            condition = self(op.operands[0])
            return None if condition is None else self(op.operands[1 if condition is ONE else 2])
        if not _is_integer_arithmetic(op):
            return None
        arguments = [self(operand) for operand in op.operands]
        given = [argument for argument in arguments if argument is not None]
        if len(given) < len(arguments):
            return None
        if op.name in _CASTS:
            return self._cast(op, given[0])
        if op.name == "affine.apply":
            return read_map(op.attributes["map"].value)[0].substitute(given)
        if op.name == "arith.cmpi":
            decide = _COMPARE.get(op.attributes["predicate"].value)
            truth = None if decide is None else decide(self._ranges.of(given[0] - given[1]))
            return None if truth is None else (ONE if truth else ZERO)
        return self._binary(op.name, given)

    def _cast(self, op: ir.Operation, argument: Expr) -> Expr | None:
        """The argument, if its values are the same numbers in both types, signed or not."""
        lo, hi = self._ranges.of(argument)
        bits = min(_width(op.operands[0].type), _width(op.results[0].type))
        limit = 1 << max(1, bits - 1)
        least = -limit if op.name in ("arith.index_cast", "arith.extsi") else 0
        return argument if least <= lo and hi < limit else None

    def _binary(self, name: str, arguments: Sequence[Expr]) -> Expr | None:
        if len(arguments) != 2:
            return None
        a, b = arguments
        if name == "arith.addi":
            return a + b
        if name == "arith.subi":
            return a - b
        if name == "arith.muli":
            return a * b.const if b.is_constant else (b * a.const if a.is_constant else None)
        if not b.is_constant or b.const <= 0:
            return None
        # Truncating and flooring division agree on values that are not negative.
        natural = self._ranges.of(a)[0] >= 0
        if name == "arith.floordivsi" or (natural and name in ("arith.divsi", "arith.divui")):
            return a // b.const
        if natural and name in ("arith.remsi", "arith.remui"):
            return a % b.const
        return None


def _is_integer_arithmetic(op: ir.Operation) -> bool:
    """Whether the values are integers; truth values, here 0 and 1, only come from comparisons and are only widened."""
    reads_truth = any(_width(operand.type) == 1 for operand in op.operands)
    makes_truth = any(_width(result.type) == 1 for result in op.results)
    return (op.name == "arith.extui" or not reads_truth) and makes_truth == (op.name == "arith.cmpi")


def _width(type_: ir.Type) -> int:
    return type_.width if isinstance(type_, ir.IntegerType) else _INDEX_BITS
