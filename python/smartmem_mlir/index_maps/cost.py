"""What it costs to evaluate a map, counted in integer instructions.

The default weights are the lengths of the instruction sequences that a compiler emits for 32-bit integers: a floor
division by a power of two is a shift and its remainder a mask; by any other constant it is a multiply-high, a shift and
a fix-up for negative values, and its remainder is that, a multiplication and a subtraction (only these two, where the
quotient is needed as well). Counts, not times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from smartmem_mlir.index_maps.expr import Dim, Expr, FloorDiv, Mod
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.view import Fill, View


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations to evaluate expressions once; common subexpressions are evaluated once.

    Args:
        add: Additions and subtractions.
        mul: Multiplications by a constant that is not plus or minus one.
        div: Floor divisions by other constants than powers of two.
        mod: Remainders by other constants than powers of two.
        shift: Divisions by and multiplications with a power of two.
        mask: Remainders by a power of two.
    """

    add: int = 0
    mul: int = 0
    div: int = 0
    mod: int = 0
    shift: int = 0
    mask: int = 0

    def __add__(self, other: Operations) -> Operations:
        return Operations(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Operations)))


@dataclass(frozen=True, slots=True)
class Weights:
    """Instructions per operation; see the module's docstring."""

    add: float = 1
    mul: float = 1
    div: float = 4
    mod: float = 6
    shift: float = 1
    mask: float = 1
    piece: float = 3
    """A compare, a branch or select, for each piece beyond the first that an element's position is tested against."""

    def of(self, operations: Operations) -> float:
        """The weighted sum."""
        return (
            self.add * operations.add
            + self.mul * operations.mul
            + self.div * operations.div
            + self.mod * operations.mod
            + self.shift * operations.shift
            + self.mask * operations.mask
        )


DEFAULT_WEIGHTS = Weights()


def operations(exprs: Sequence[Expr]) -> Operations:
    """Operations to evaluate these expressions together."""
    seen: set[Expr] = set()
    for expr in exprs:
        if expr not in seen:
            seen.update(expr.subexprs())
    counts = dict.fromkeys((f.name for f in fields(Operations)), 0)
    atoms = {atom for expr in seen for atom, _ in expr.terms if not isinstance(atom, Dim)}
    quotients = {(atom.arg, atom.value) for atom in atoms if isinstance(atom, FloorDiv)}

    def has_quotient(atom: Mod) -> bool:
        """Whether the quotient of a remainder is computed anyway: x // m, or x // (a*m) for (x // a) % m."""
        floor = atom.arg.single_atom
        below = (floor.arg, floor.value * atom.value) if isinstance(floor, FloorDiv) else None
        return (atom.arg, atom.value) in quotients or below in quotients

    def is_shift(atom: FloorDiv | Mod) -> bool:
        """Division by a power of two, perhaps of a quotient that is computed anyway: x // (a * 2^k) = (x // a) >> k."""
        steps = [atom.value] + [atom.value // a for x, a in quotients if x is atom.arg and atom.value % a == 0]
        return any(_is_power_of_two(step) for step in steps if step > 1 and isinstance(atom, FloorDiv)) or (
            isinstance(atom, Mod) and _is_power_of_two(atom.value)
        )

    for atom in atoms:
        if is_shift(atom):
            counts["shift" if isinstance(atom, FloorDiv) else "mask"] += 1
        elif isinstance(atom, Mod) and has_quotient(atom):
            counts["mul"] += 1
            counts["add"] += 1
        else:
            counts["div" if isinstance(atom, FloorDiv) else "mod"] += 1
    for expr in seen:
        counts["add"] += max(0, len(expr.terms) + (expr.const != 0) - 1)
        for _, coef in expr.terms:
            if abs(coef) != 1:
                counts["shift" if _is_power_of_two(abs(coef)) else "mul"] += 1
    return Operations(**counts)


def map_cost(index_map: IndexMap, weights: Weights = DEFAULT_WEIGHTS) -> float:
    """Instructions to compute one element's source index."""
    return weights.of(operations(index_map.exprs))


def view_cost(view: View, weights: Weights = DEFAULT_WEIGHTS) -> float:
    """Instructions per element of the result, on average, when one loop nest serves all pieces by selecting.

    With a loop nest per piece (`weights` with piece=0) only the pieces' own maps count.
    """
    if view.box.volume == 0:
        return 0.0
    total = sum(
        piece.box.volume * map_cost(piece.map, weights) for piece in view.pieces if not isinstance(piece.source, Fill)
    )
    return total / view.box.volume + weights.piece * (len(view.pieces) - 1)


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0
