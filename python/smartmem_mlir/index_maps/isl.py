"""Proofs by the Integer Set Library: the only module that imports islpy.

Equality, injectivity and exact bounds of quasi-affine maps over a box are questions of Presburger arithmetic, which ISL
decides exactly. A step budget keeps a hard instance from hanging a compilation; beyond it a box of moderate size is
enumerated with NumPy, which is a proof as well, and a larger one is reported as undecided.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import islpy as isl
import numpy as np
import numpy.typing as npt

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import IndexMapError, ProofInconclusiveError
from smartmem_mlir.index_maps.expr import Dim, Expr, FloorDiv
from smartmem_mlir.index_maps.map import IndexMap, evaluate
from smartmem_mlir.index_maps.view import UNREAD, Fill, View, apply

MAX_OPERATIONS = 200_000
"""ISL's step budget for one proof that could be had by enumeration; proofs on views of real models take a tenth."""
PATIENCE = 50
"""The budget's factor where the box is too large to enumerate and ISL is the only way."""
MAX_ENUMERATED = 1 << 22
"""Largest number of points that is enumerated when the budget is spent."""

_T = TypeVar("_T")
_state = threading.local()


def prove_equal(a: IndexMap, b: IndexMap, box: Box | None = None) -> bool:
    """Whether two maps agree on every point of a box. True and False are both proofs.

    Args:
        a: A map.
        b: A map of as many inputs and results.
        box: Where to compare; default: the domain, which is then the same for both.

    Raises:
        IndexMapError: The maps cannot be compared.
        ProofInconclusiveError: ISL's budget is spent and the box has more than `MAX_ENUMERATED` points.
    """
    if box is None:
        if a.domain != b.domain:
            raise IndexMapError(f"maps over different domains {a.domain} and {b.domain}")
        box = a.domain
    if a.num_inputs != b.num_inputs or a.num_results != b.num_results or box.rank != a.num_inputs:
        raise IndexMapError("maps of different rank cannot be compared")
    if a.exprs == b.exprs or box.is_empty:
        return True
    domain = box

    def decide() -> bool:
        builder = _Builder(domain)
        differing = [x - y for x, y in zip(a.exprs, b.exprs, strict=True) if x is not y]
        return all(builder.vanishes(difference) for difference in differing)

    def enumerate_points() -> bool:
        pairs = zip(evaluate(IndexMap(domain, a.exprs)), evaluate(IndexMap(domain, b.exprs)), strict=True)
        return all(np.array_equal(x, y) for x, y in pairs)

    return _within_budget(decide, enumerate_points, box.volume, f"{a} = {b} on {box}")


def prove_views_equal(a: View, b: View) -> bool:
    """Whether two views read the same element of the same operand, or the same constant, everywhere.

    Raises:
        ProofInconclusiveError: As for `prove_equal`, on some common box of two pieces.
    """
    if a.shape != b.shape or a.operands != b.operands:
        return False
    for p in a.pieces:
        for q in b.pieces:
            common = p.box.intersect(q.box)
            if common is None:
                continue
            if p.source != q.source:
                return False
            if not isinstance(p.source, Fill) and not prove_equal(p.map, q.map, common):
                return False
    return True


def prove_chain(
    chain: Sequence[View],
    operands: Sequence[int],
    after: View,
    through: Sequence[View] = (),
    sources: Sequence[int] | None = None,
) -> bool:
    """Whether views composed as relations are the relation of `after`; see `certificates.Certificate`.

    Independent of our composition and rules: ISL joins the relations, or every element is traced with NumPy.

    Raises:
        IndexMapError: The chain does not fit together.
        ProofInconclusiveError: ISL's budget is spent and the result is too large to trace.
    """
    shapes = _read_shapes(chain, operands)
    replacement = [*through, after]
    zeros = [0] * len(through)
    numbers = range(len(shapes)) if sources is None else sources
    if replacement[0].shape != chain[0].shape or _read_shapes(replacement, zeros) != list(after.operands):
        return False
    if (sources is None and tuple(shapes) != after.operands) or len(numbers) != len(shapes):
        return False
    for new, shape in zip(numbers, shapes, strict=True):
        if new != UNREAD and not (0 <= new < len(after.operands) and after.operands[new] == shape):
            return False

    def decide() -> bool:
        before = _chain_relation(chain, operands)
        if sources is not None:
            step = _fills_kept(before)
            for old, new in enumerate(sources):
                # What is read of an operand that nothing reads stays without a name, and the relations differ.
                step = step if new == UNREAD else step.union(_renaming(before, old, new))
            before = before.apply_range(step)
        return bool(before.is_equal(_chain_relation(replacement, zeros)))

    def trace() -> bool:
        given = _numbered(after.operands)
        fills: dict[Fill, int] = {}
        reads = [
            np.full(shape, np.iinfo(np.int64).min) if new == UNREAD else given[new]
            for new, shape in zip(numbers, shapes, strict=True)
        ]
        before = _traced(chain, operands, reads, fills)
        return np.array_equal(before, _traced(replacement, zeros, given, fills))

    return _within_budget(decide, trace, chain[0].box.volume, f"chain = {after}")


def is_injective(index_map: IndexMap) -> bool:
    """Whether different points of the domain have different results.

    Raises:
        ProofInconclusiveError: Budget spent, and the domain too large to enumerate.
    """
    box = index_map.domain
    if box.volume <= 1:
        return True

    def enumerate_points() -> bool:
        if not index_map.exprs:
            return False
        columns = np.stack([column.reshape(-1) for column in evaluate(index_map)], axis=1)
        return len(np.unique(columns, axis=0)) == box.volume

    return _within_budget(
        lambda: bool(_Builder(box).map(index_map.exprs).is_injective()),
        enumerate_points,
        box.volume,
        f"{index_map} is injective on {box}",
    )


def exact_bounds(index_map: IndexMap) -> Box:
    """The smallest box that contains every result.

    Raises:
        IndexMapError: The domain is empty.
        ProofInconclusiveError: Budget spent, and the domain too large to enumerate.
    """
    if index_map.domain.is_empty:
        raise IndexMapError("a map over an empty domain has no bounds")

    def decide() -> Box:
        builder = _Builder(index_map.domain)
        values = [builder.on_domain(expr) for expr in index_map.exprs]
        return Box(
            tuple(int(v.min_val().to_python()) for v in values),
            tuple(int(v.max_val().to_python()) + 1 for v in values),
        )

    def enumerate_points() -> Box:
        values = evaluate(index_map)
        return Box(tuple(int(v.min()) for v in values), tuple(int(v.max()) + 1 for v in values))

    return _within_budget(decide, enumerate_points, index_map.domain.volume, f"bounds of {index_map}")


def _context() -> Any:
    # ISL objects of different contexts must not meet and a context is not thread-safe: one for each thread.
    if not hasattr(_state, "context"):
        _state.context = isl.Context()
    return _state.context


def _within_budget(decide: Callable[[], _T], enumerate_points: Callable[[], _T], volume: int, claim: str) -> _T:
    context = _context()
    context.reset_operations()
    context.set_max_operations(MAX_OPERATIONS * (1 if volume <= MAX_ENUMERATED else PATIENCE))
    try:
        return decide()
    except isl.Error as error:
        if "maximal number of operations exceeded" not in str(error):
            raise
    finally:
        context.set_max_operations(0)
    if volume > MAX_ENUMERATED:
        raise ProofInconclusiveError(f"not decided within ISL's budget, and too large to enumerate: {claim}")
    return enumerate_points()


def _relation(view: View, first: int = 0, domain: str = "") -> Any:
    """The view as an isl.UnionMap from result points to points named after the operand, or a point named by a fill."""
    total = isl.UnionMap.empty(isl.Space.params_alloc(_context(), 0))
    for piece in view.pieces:
        name = f"fill_{piece.source.value!r}" if isinstance(piece.source, Fill) else f"op{first + piece.source}"
        part = _Builder(piece.box).map(piece.exprs).set_tuple_name(isl.dim_type.out, name)
        if domain:
            part = part.set_tuple_name(isl.dim_type.in_, domain)
        total = total.union(isl.UnionMap.from_map(part))
    return total


def _renaming(relation: Any, old: int, new: int) -> Any:
    """The identity on what `relation` reads of operand `old`, under the name of operand `new`."""
    return _identity_on(relation, lambda name: name == f"op{old}", f"op{new}")


def _fills_kept(relation: Any) -> Any:
    return _identity_on(relation, lambda name: name.startswith("fill_"), None)


def _identity_on(relation: Any, wanted: Callable[[str], bool], new_name: str | None) -> Any:
    total = isl.UnionMap.empty(isl.Space.params_alloc(_context(), 0))
    sets = relation.range().get_set_list()
    for points in (sets.get_at(i) for i in range(sets.n_set())):
        if wanted(points.get_tuple_name()):
            same = isl.Map.identity(points.get_space().map_from_set()).intersect_domain(points)
            if new_name is not None:
                same = same.set_tuple_name(isl.dim_type.out, new_name)
            total = total.union(isl.UnionMap.from_map(same))
    return total


def _read_shapes(chain: Sequence[View], operands: Sequence[int]) -> list[tuple[int, ...]]:
    """Shapes of the tensors that a composed chain reads."""
    shapes = list(chain[0].operands)
    for view, operand in zip(chain[1:], operands, strict=True):
        if not 0 <= operand < len(shapes) or shapes[operand] != view.shape:
            raise IndexMapError(f"operand {operand} of a chain is not of shape {list(view.shape)}")
        shapes[operand : operand + 1] = view.operands
    return shapes


def _chain_relation(chain: Sequence[View], operands: Sequence[int]) -> Any:
    relation, count = _relation(chain[0]), len(chain[0].operands)
    for view, operand in zip(chain[1:], operands, strict=True):
        grown = len(view.operands) - 1
        step = _relation(view, first=operand, domain=f"op{operand}")
        for other in range(count):
            if other != operand:
                step = step.union(_renaming(relation, other, other + grown if other > operand else other))
        step = step.union(_fills_kept(relation))
        relation, count = relation.apply_range(step), count + grown
    return relation


def _numbered(shapes: Sequence[tuple[int, ...]]) -> list[npt.NDArray[np.int64]]:
    """Arrays of these shapes whose elements all differ."""
    arrays: list[npt.NDArray[np.int64]] = []
    start = 0
    for shape in shapes:
        count = Box.of(shape).volume
        arrays.append(np.arange(start, start + count).reshape(shape))
        start += count
    return arrays


def _traced(
    chain: Sequence[View], operands: Sequence[int], given: Sequence[npt.NDArray[np.int64]], fills: dict[Fill, int]
) -> npt.NDArray[np.int64]:
    """Gathers the numbers of the operands' elements through the chain."""
    values = list(given)
    # Producers last in the chain run first: fold their operands' arrays into one, from the back.
    for view, operand in zip(reversed(chain[1:]), reversed(operands), strict=True):
        count = len(view.operands)
        values[operand : operand + count] = [_trace(view, values[operand : operand + count], fills)]
    return _trace(chain[0], values, fills)


def _trace(view: View, values: Sequence[npt.NDArray[np.int64]], fills: dict[Fill, int]) -> npt.NDArray[np.int64]:
    pieces = [
        replace(piece, source=Fill(fills.setdefault(piece.source, -1 - len(fills))))
        if isinstance(piece.source, Fill)
        else piece
        for piece in view.pieces
    ]
    return apply(view.with_pieces(pieces), values, np.int64)


class _Builder:
    """Translates expressions over one box."""

    def __init__(self, box: Box) -> None:
        context = _context()
        self.space = isl.Space.set_alloc(context, 0, box.rank)
        self.local = isl.LocalSpace.from_space(self.space)
        domain = isl.Set.universe(self.space)
        for axis, (lo, hi) in enumerate(zip(box.lo, box.hi, strict=True)):
            domain = domain.lower_bound_val(isl.dim_type.set, axis, isl.Val.int_from_si(context, lo))
            domain = domain.upper_bound_val(isl.dim_type.set, axis, isl.Val.int_from_si(context, hi - 1))
        self.domain = domain
        self._memo: dict[Expr, Any] = {}

    def aff(self, expr: Expr) -> Any:
        """The expression as an isl.Aff."""
        if expr not in self._memo:
            context = _context()
            total = isl.Aff.val_on_domain(self.local, isl.Val.int_from_si(context, expr.const))
            for atom, coef in expr.terms:
                if isinstance(atom, Dim):
                    part = isl.Aff.var_on_domain(self.local, isl.dim_type.set, atom.index)
                else:
                    value = isl.Val.int_from_si(context, atom.value)
                    inner = self.aff(atom.arg)
                    part = inner.scale_down_val(value).floor() if isinstance(atom, FloorDiv) else inner.mod_val(value)
                total = total.add(part.scale_val(isl.Val.int_from_si(context, coef)))
            self._memo[expr] = total
        return self._memo[expr]

    def on_domain(self, expr: Expr) -> Any:
        """The expression as an isl.PwAff restricted to the box."""
        return isl.PwAff.from_aff(self.aff(expr)).intersect_domain(self.domain)

    def vanishes(self, expr: Expr) -> bool:
        """Whether the expression is zero everywhere on the box."""
        if expr.is_constant:
            return expr.const == 0
        return bool(self.domain.is_subset(self.aff(expr).zero_basic_set()))

    def map(self, exprs: Sequence[Expr]) -> Any:
        """The expressions as an isl.Map on the box."""
        result = isl.Map.from_domain(self.domain)
        for expr in exprs:
            result = result.flat_range_product(isl.Map.from_aff(self.aff(expr)).intersect_domain(self.domain))
        return result
