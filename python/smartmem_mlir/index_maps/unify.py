"""Fewer pieces: one map with a remainder or a quotient in place of several maps.

A roll is two boxes with two offsets and also the single map `(d0 + 3) mod 56`; four strided slices side by side are one
map that reads the slice's number off the joined axis. One map composes with what comes next, where boxes would be cut
again by every reshape, and it compiles to straight-line index arithmetic. The form is guessed from the first pieces and
accepted only when the simplifier shows it equal to every piece on that piece's box.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.simplify import Simplifier
from smartmem_mlir.index_maps.view import Piece, View


def unify_pieces(view: View) -> View:
    """The same view with as few pieces as the forms above allow.

    Pieces are joined along one axis at a time, all pieces that share a cross-section at once. Fills never join.
    """
    pieces = list(view.pieces)
    changed = True
    while changed and len(pieces) > 1:
        changed = False
        for axis in range(len(view.shape)):
            joined = _join_along(pieces, axis)
            if len(joined) < len(pieces):
                pieces, changed = joined, True
    return view.with_pieces(pieces) if len(pieces) < len(view.pieces) else view


def _join_along(pieces: Sequence[Piece], axis: int) -> list[Piece]:
    groups: dict[object, list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.box.cross_section(axis), []).append(piece)
    out: list[Piece] = []
    for group in groups.values():
        run = sorted(group, key=lambda piece: piece.box.lo[axis])
        one = _join_run(run, axis)
        out.extend([one] if one else run)
    return out


def _join_run(run: Sequence[Piece], axis: int) -> Piece | None:
    """One piece for pieces that lie end to end along `axis`, or None."""
    first, last = run[0], run[-1]
    same_source = all(isinstance(p.source, int) and p.source == first.source for p in run)
    touching = all(a.box.hi[axis] == b.box.lo[axis] for a, b in pairwise(run))
    if len(run) < 2 or not same_source or not touching:
        return None
    box = first.box.with_axis(axis, first.box.lo[axis], last.box.hi[axis])
    simplifiers = [Simplifier(piece.box) for piece in run]
    whole = Simplifier(box)
    exprs = []
    for coordinate in range(len(first.exprs)):
        wanted = [piece.exprs[coordinate] for piece in run]
        for guess in _guesses(wanted, simplifiers, axis):
            if all(s.equal(guess, e) for s, e in zip(simplifiers, wanted, strict=True)):
                exprs.append(whole(guess))
                break
        else:
            return None
    return Piece(box, first.source, tuple(exprs))


def _guesses(wanted: Sequence[Expr], simplifiers: Sequence[Simplifier], axis: int) -> Iterator[Expr]:
    """Expressions that may equal `wanted[k]` on the box of `simplifiers[k]` for every k."""
    # A piece of width one has lost its dependence on the axis, so the form is taken from the widest.
    boxes = [s.box for s in simplifiers]
    widest = wanted[max(range(len(wanted)), key=lambda k: boxes[k].extents[axis])]
    yield widest
    steps = [s(expr - widest) for s, expr in zip(simplifiers, wanted, strict=True)]
    if not all(step.is_constant for step in steps):
        return
    offsets = [step.const - steps[0].const for step in steps]
    first = widest + steps[0].const
    if len(wanted) == 2 and offsets[1]:
        # A rotation: the index runs to the end of an axis and starts again at its beginning.
        yield first % abs(offsets[1])
    width = boxes[0].extents[axis]
    if boxes[0].lo[axis] == 0 and all(box.extents[axis] == width for box in boxes):
        number = dim(axis) // width
        for below, base in _digits(len(offsets)):
            scale = offsets[below]
            if offsets == [scale * (k // below % base) for k in range(len(offsets))]:
                yield first + scale * ((number // below) % base)


def _digits(count: int) -> Iterator[tuple[int, int]]:
    """Pairs (p, q) such that `k // p % q` is a digit of the numbers below `count` in some mixed radix."""
    for below in range(1, count):
        if count % below == 0:
            for base in range(2, count // below + 1):
                if (count // below) % base == 0:
                    yield below, base
