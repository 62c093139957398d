"""Fewer pieces: neighbouring boxes of a view that one map serves become one box.

`merge_pieces` extends a map over its neighbour or draws the line through two slices, which costs no operation, so
`compose` always does it. `unify.py` goes further and saves a piece at the price of a remainder or a quotient;
`split_wraps` is the way back, where code wants ranges rather than remainders.

Each candidate is checked against both pieces, by the rules, before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from smartmem_mlir.index_maps.box import Box, Ranges
from smartmem_mlir.index_maps.expr import Expr, Mod, dim, dims
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.preimage import preimage
from smartmem_mlir.index_maps.simplify import Simplifier, simplify_exprs
from smartmem_mlir.index_maps.view import Fill, Piece, View


def merge_pieces(view: View) -> View:
    """The same view with neighbouring pieces merged until no two merge. Deterministic; never more pieces."""
    if len(view.pieces) < 2:
        return view
    merger = _Merger()
    pieces = list(view.pieces)
    before = len(pieces) + 1
    while len(pieces) < before and len(pieces) > 1:
        before = len(pieces)
        for axis in reversed(range(len(view.shape))):
            pieces = merger.along(pieces, axis)
    return view.with_pieces(pieces) if len(pieces) < len(view.pieces) else view


class _Merger:
    def __init__(self) -> None:
        self._simplifiers: dict[Box, Simplifier] = {}

    def on(self, box: Box) -> Simplifier:
        if box not in self._simplifiers:
            self._simplifiers[box] = Simplifier(box)
        return self._simplifiers[box]

    def along(self, pieces: list[Piece], axis: int) -> list[Piece]:
        """Pieces after joining neighbours along one axis."""
        result: list[Piece] = []
        for run in _neighbours(pieces, axis):
            joined = run[:1]
            for piece in run[1:]:
                both = self.join(joined[-1], piece, axis)
                if both is None:
                    joined.append(piece)
                else:
                    joined[-1] = both
            result += joined
        return result

    def join(self, p: Piece, q: Piece, axis: int) -> Piece | None:
        """One piece for `p` and the piece `q` that follows it along `axis`."""
        if p.source != q.source:
            return None
        box = p.box.with_axis(axis, p.box.lo[axis], q.box.hi[axis])
        exprs: list[Expr] = []
        for a, b in zip(p.exprs, q.exprs, strict=True):
            common = self.common(a, b, p.box, q.box, axis)
            if common is None:
                return None
            exprs.append(common)
        return Piece(box, p.source, simplify_exprs(exprs, box))

    def common(self, a: Expr, b: Expr, p: Box, q: Box, axis: int) -> Expr | None:
        """An expression equal to `a` on box `p` and to `b` on box `q`."""
        if a is b:
            return a
        on_p, on_q = self.on(p), self.on(q)
        for candidate in self.candidates(a, b, p, q, axis):
            if on_p.equal(candidate, a) and on_q.equal(candidate, b):
                return candidate
        return None

    def candidates(self, a: Expr, b: Expr, p: Box, q: Box, axis: int) -> Iterator[Expr]:
        """Expressions that may serve both; the caller checks."""
        yield a
        yield b
        # A slice of extent 1 has lost its dependence on the axis: draw the line through the neighbour's first slice.
        if p.hi[axis] - p.lo[axis] == 1:
            at_q = list(dims(q.rank))
            at_q[axis] = Expr(q.lo[axis])
            step = self.on(p)(b.substitute(at_q) - a)
            if step.is_constant:
                yield a + (dim(axis) - p.lo[axis]) * step.const


def _neighbours(pieces: list[Piece], axis: int) -> Iterator[list[Piece]]:
    """Maximal runs of pieces that touch along `axis` and have equal cross-sections, in order."""
    ordered = sorted(pieces, key=lambda p: (p.box.cross_section(axis), p.box.lo[axis]))
    run: list[Piece] = []
    for piece in ordered:
        touches = (
            run
            and run[-1].box.hi[axis] == piece.box.lo[axis]
            and run[-1].box.cross_section(axis) == piece.box.cross_section(axis)
        )
        if run and not touches:
            yield run
            run = []
        run.append(piece)
    yield run


def split_wraps(view: View) -> View:
    """The view without remainders that wrap once: `x mod m` whose argument spans two periods becomes two pieces.

    Remainders that wrap more than once (tiles, digits) stay.

    Raises:
        PieceLimitExceeded: A wrap is not along a few boxes; split the axis first (`refine.py`).
    """
    pieces: list[Piece] = []
    todo = list(view.pieces)
    while todo:
        piece = todo.pop()
        wrap = None if isinstance(piece.source, Fill) else _first_wrap(piece)
        if wrap is None:
            pieces.append(piece)
            continue
        argument, at = wrap
        lo, hi = Ranges(piece.box).of(argument)
        for interval in ((lo, at), (at, hi + 1)):
            for box in preimage(IndexMap(piece.box, (argument,)), Box((interval[0],), (interval[1],))):
                todo.append(replace(piece, box=box, exprs=simplify_exprs(piece.exprs, box)))
    return view.with_pieces(pieces)


def _first_wrap(piece: Piece) -> tuple[Expr, int] | None:
    """A remainder's argument that crosses exactly one multiple of its modulus in the piece, and that multiple."""
    ranges = Ranges(piece.box)
    for expr in piece.exprs:
        for sub in expr.subexprs():
            for atom, _ in sub.terms:
                if isinstance(atom, Mod):
                    lo, hi = ranges.of(atom.arg)
                    if hi // atom.value - lo // atom.value == 1:
                        return atom.arg, hi // atom.value * atom.value
    return None
