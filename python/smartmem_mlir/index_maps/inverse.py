"""Inverses of bijective index maps.

Each result is an equation `expr(d) = y_k`. Equations are solved like a mixed-radix number is read: a sum whose terms do
not overlap splits into quotient and remainder; digits of one value that fit together give the value; a remainder that
does not repeat over the box gives its argument. What comes out is checked before it is returned.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import NotInvertibleError
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, FloorDiv, Mod, dim
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.simplify import Digit, Simplifier, as_digit, simplify_exprs

_MAX_DIGITS = 100
"""Bound on the digits that the solver joins; a map of n results starts with at most 2n of them."""


def inverse(index_map: IndexMap, codomain: Box | None = None) -> IndexMap:
    """The map that undoes `index_map`: a bijection from `codomain` back to the domain.

    Args:
        index_map: A bijection from its domain onto `codomain`.
        codomain: Default: the bounds of the map, if it has as many points as the domain.

    Raises:
        NotInvertibleError: It is not a bijection, or the equations are outside of what this solver reads.
    """
    found = _inverse_or_reason(index_map, codomain)
    if isinstance(found, str):
        raise NotInvertibleError(found)
    return found


@lru_cache(maxsize=1 << 12)
def _inverse_or_reason(index_map: IndexMap, codomain: Box | None) -> IndexMap | str:
    """The inverse, or why there is none; kept, because models repeat their blocks and passes ask more than once."""
    box = index_map.domain
    if box.is_empty:
        if codomain is None or not codomain.is_empty:
            return f"an empty map has no inverse on {codomain}"
        return IndexMap(codomain, (ZERO,) * box.rank)
    if codomain is None:
        codomain = _bounds(index_map, box.volume)
    if codomain.volume != box.volume or not codomain.contains(_bounds(index_map, codomain.volume)):
        return f"{index_map} does not map {box} onto {codomain}"
    solver = _Solver(index_map)
    values = solver.solve()
    if values is None:
        return f"no inverse found for {index_map} on {box}"
    found = IndexMap(codomain, simplify_exprs(values, codomain))
    # As many points on both sides: a left inverse makes the map injective, hence bijective.
    round_trip = IndexMap(box, tuple(expr.substitute(index_map.exprs) for expr in found.exprs))
    if not round_trip.is_identity():
        from smartmem_mlir.index_maps.isl import prove_equal

        if not prove_equal(round_trip, IndexMap(box, tuple(dim(i) for i in range(box.rank)))):
            return f"{index_map} is not injective on {box}"
    return found


def _bounds(index_map: IndexMap, volume: int) -> Box:
    bounds = index_map.bounds()
    if bounds.volume == volume:
        return bounds
    from smartmem_mlir.index_maps.isl import exact_bounds

    return exact_bounds(index_map)


class _Solver:
    """Known values: expressions over the inputs, each with an expression over the results that equals it."""

    def __init__(self, index_map: IndexMap) -> None:
        self.box = index_map.domain
        self.simplifier = Simplifier(self.box)
        self.known: dict[Expr, Expr] = {}
        self.digits: list[tuple[Digit, Expr]] = []
        self.todo: list[tuple[Expr, Expr]] = []
        for k, expr in enumerate(index_map.exprs):
            self.learn(expr, dim(k))

    def learn(self, value: Expr, result: Expr) -> None:
        """Records `value(d) = result(y)` unless it is known."""
        value = self.simplifier(value)
        value, result = value - value.const, result - value.const
        if value.terms and value not in self.known:
            self.known[value] = result
            self.todo.append((value, result))

    def solve(self) -> list[Expr] | None:
        """One expression over the results for each input dimension, or None."""
        while self.todo:
            self.use(*self.todo.pop(0))
        values = []
        for axis, (lo, hi) in enumerate(zip(self.box.lo, self.box.hi, strict=True)):
            value = Expr(lo) if hi - lo == 1 else self.known.get(dim(axis))
            if value is None:
                return None
            values.append(value)
        return values

    def use(self, value: Expr, result: Expr) -> None:
        """Draws what follows from one equation, alone and with the digits known so far."""
        common = gcd(*(coef for _, coef in value.terms))
        if all(coef < 0 for _, coef in value.terms):
            self.learn(-value, -result)
            return
        if common > 1:
            self.learn(Expr(0, tuple((atom, coef // common) for atom, coef in value.terms)), result // common)
            return
        self.split(value, result)
        atom = value.single_atom
        if isinstance(atom, Dim):
            return
        if isinstance(atom, Mod):
            x, a, m = as_digit(atom)
            self.learn_digit((x, a, m), result)
            self.learn_digit((-1 - x, a, m), atom.value - 1 - result)  # rule mirror: neighbours may be the other way
            return
        for floor, coef in value.terms:
            if coef == 1 and isinstance(floor, FloorDiv):
                x = (value - Expr(0, ((floor, 1),))) * floor.value + floor.arg
                self.learn_digit((x, floor.value, None), result)
                self.learn_digit((-1 - x, floor.value, None), -1 - result)

    def split(self, value: Expr, result: Expr) -> None:
        """value = g*high + low with lo <= low < lo + g: both parts are known."""
        ordered = sorted(value.terms, key=lambda term: -abs(term[1]))
        g = 0
        for count in range(1, len(ordered)):
            g = gcd(g, ordered[count - 1][1])
            low = Expr.sum(0, dict(ordered[count:]))
            lo, hi = self.simplifier.ranges.of(low)
            if hi - lo < g:
                high = Expr.sum(0, {atom: coef // g for atom, coef in ordered[:count]})
                self.learn(high, (result - lo) // g)
                self.learn(low, (result - lo) % g + lo)

    def learn_digit(self, digit: Digit, result: Expr) -> None:
        """Joins a digit with its neighbours; a whole value or a remainder that does not repeat becomes known."""
        self.digits.append((digit, result))
        x, a, m = digit
        lo, hi = self.simplifier.ranges.of(x)
        if a == 1:
            if m is None:
                self.learn(x, result)
            elif hi - lo < m:
                self.learn(x, (result - lo) % m + lo)
            else:
                self.learn_remainders(x, m, result)
        for (y, b, n), other in list(self.digits):
            self.try_join(digit, result, (y, b, n), other)
            self.try_join((y, b, n), other, digit, result)

    def try_join(self, low: Digit, low_result: Expr, high: Digit, high_result: Expr) -> None:
        """Joins two digits if they are neighbours in one value; a lowest digit may be off by a constant (a roll)."""
        (x, a, m), (y, b, n) = low, high
        if m is None or a * m % b or low == high:
            return
        if a == 1:
            shift = (x - y * (m // b)).const % m
            x, low_result = x - shift, (low_result - shift) % m
        whole = self.simplifier.aligned(x, a * m, y, b)
        if whole is not None:
            self.join((whole, a, None if n is None else m * n), low_result + high_result * m)

    def learn_remainders(self, x: Expr, m: int, result: Expr) -> None:
        """x % m = result for an x that repeats: undoes rule inner-mod, `c*y` may be read as `c*(y % (m/c))`."""
        terms = [Expr(0, ((a, c),)) if c < 0 or m % c else Expr(0, ((a, 1),)) % (m // c) * c for a, c in x.terms]
        narrowed = self.simplifier(sum(terms, Expr(x.const)))
        lo, hi = self.simplifier.ranges.of(narrowed)
        if hi - lo < m:
            self.learn(narrowed, (result - lo) % m + lo)

    def join(self, digit: Digit, result: Expr) -> None:
        if len(self.digits) < _MAX_DIGITS and all(known != digit for known, _ in self.digits):
            self.learn_digit(digit, result)
