"""Strength reduction of quasi-affine expressions over a box.

Below, `x`, `y`, `A`, `B` are expressions, the rest positive constants, `x // a` is floor division and `x % m` the
remainder in [0, m). Each row is an identity on integers under its condition. Conditions on values are discharged by
interval arithmetic over the box, conditions on constants by arithmetic. `test_rules.py` has ISL prove every row.

| rule | identity | condition |
|---|---|---|
| constant | x // a = q | q*a <= x < (q+1)*a |
| one-period | x % m = x - t*m | t*m <= x < (t+1)*m |
| nearest | (m*q + r) // m = q + j and (m*q + r) % m = r - j*m | j*m <= r < (j+1)*m, coefficients of r nearest zero |
| nested-floor | (A + y // b) // a = (b*A + y) // (a*b) | |
| floor-of-mod | (y % (a*n)) // a = (y // a) % n | |
| pull-out | (a*q + r) // a = q + r // a | |
| reduce | (m*q + r) % m = r % m | |
| inner-mod | (A + c*(y % n)) % m = (A + c*y) % m | m divides c*n (with A = 0, c = 1: the paper, section 3.2.1) |
| inner-mod under a floor | (w // b) % m, w = A + c*(y % n), = ((A + c*y) // b) % m | b*m divides c*n |
| low-part | (g*A + B) // a = (A + j) // (a/g) | j*g <= B < (j+1)*g, g divides a |
| split-mod | (g*A + B) % m = g*((A + j) % (m/g)) + B - j*g | j*g <= B < (j+1)*g, g divides m |
| mirror | (c - x) // a = -((x + a-1-c) // a), and (c - x) % m = m-1 - (x + m-1-c) % m | all coefficients negative |
| join | (x//a) % m + m*((x//(a*m)) % n) = (x//a) % (m*n), and the same without `% n` | |
| join modulo M | (e*(x//(a*m)) + c*((x//a) % m) + B) % M = (c*(x//a) + B) % M | M divides e - c*m |
| to-mod | x//a - k*(x//(a*k)) = (x//a) % k | |
| to-floor | (x//a) % m - x//a = -m*(x//(a*m)) | |

`reduce` and `pull-out` take multiples of M off coefficients and so part digits that belong together; `join modulo M`
finds them again. Under a floor it is (e*H + c*L + B) // M = (c*(m*H + L) + B) // M + (e - c*m)/M * H.

Every rule but split-mod removes an operation or shrinks a constant; split-mod isolates the digits of a mixed-radix
number, so that `join` can put them together again, and shrinks the modulus. So rewriting ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from smartmem_mlir.index_maps.box import Box, Interval, Ranges
from smartmem_mlir.index_maps.errors import IndexOverflowError
from smartmem_mlir.index_maps.expr import ZERO, Atom, Dim, Expr, FloorDiv, Mod, map_atoms

Digit = tuple[Expr, int, int | None]
"""`(x, a, m)` stands for `(x // a) % m`; m None means that no remainder is taken."""

_MAX_DEPTH = 100
"""Rules inside rules before a subexpression is left as it is, which is always right: hostile nesting must not exhaust
the interpreter's stack. In 1,500 random chains of up to eight operators the deepest was 9."""
_MAX_STEPS = 10_000
"""Rule applications for one expression before the rest is left as it is: nor may it take exponential time. In those
chains the most was 84."""


class Simplifier:
    """Rewrites expressions to equal ones over one box. Results are remembered for the life of the object.

    Args:
        box: The values of the dimensions. Over an empty box any two expressions agree and nothing is rewritten.
    """

    def __init__(self, box: Box) -> None:
        self.box = box
        self._vacuous = box.is_empty
        self.ranges = Ranges(box)
        self._depth = self._steps = 0
        self._exprs: dict[Expr, Expr] = {}
        self._read: dict[Atom, Digit] = {}
        self._quotients: dict[tuple[bool, Expr, int], Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        """An expression with the same value as `expr` at every point of the box."""
        if self._vacuous:
            return expr
        done = self._exprs.get(expr)
        if done is None:
            if not self._enter():
                return expr
            done = self._join_digits(map_atoms(expr, self._atom))
            self._exprs[expr] = self._exprs[done] = done
            self._depth -= 1
        return done

    def _enter(self) -> bool:
        """Takes one step of the budget; False when it is spent and what is at hand must be returned as it is."""
        if self._depth == 0:
            self._steps = 0
        if self._depth >= _MAX_DEPTH or self._steps >= _MAX_STEPS:
            return False
        self._depth += 1
        self._steps += 1
        return True

    def equal(self, a: Expr, b: Expr) -> bool:
        """Whether the rules show a == b over the box. Sound, not complete: `isl.prove_equal` decides."""
        if a is b or self._vacuous:
            return True
        difference = self(a - b)
        if not difference.is_constant:
            difference = self(floors_form(difference))
        return difference is ZERO

    def digit(self, x: Expr, a: int, m: int | None) -> Expr:
        """`(x // a) % m` for an `x` that is already simplified."""
        quotient = self.floordiv(x, a)
        return quotient if m is None else self.mod(quotient, m)

    def floordiv(self, x: Expr, a: int) -> Expr:
        """`x // a` for an `x` that is already simplified."""
        key = (True, x, a)
        done = self._quotients.get(key)
        if done is None:
            if not self._enter():
                return x // a
            done = self._quotients[key] = x if a == 1 else self._floordiv(x, a)
            self._depth -= 1
        return done

    def mod(self, x: Expr, m: int) -> Expr:
        """`x % m` for an `x` that is already simplified."""
        key = (False, x, m)
        done = self._quotients.get(key)
        if done is None:
            if not self._enter():
                return x % m
            done = self._quotients[key] = ZERO if m == 1 else self._mod(x, m)
            self._depth -= 1
        return done

    def aligned(self, x: Expr, modulus: int, y: Expr, b: int) -> Expr | None:
        """A z that shows `x % modulus` and `y // b` to be digits of one value: z % modulus and z // modulus.

        y may have lost low digits to rule low-part; they are taken from x.
        """
        if modulus == b:
            return y if congruent(x, y, b) else None
        if b == 1 or modulus % b:
            return None
        stride = modulus // b
        low = self(_reduce(x - y * stride, modulus)[1])
        lo, hi = self.ranges.of(low)
        return y * stride + low if lo >= 0 and hi < stride else None

    def _atom(self, atom: Atom) -> Expr:
        if isinstance(atom, Dim):
            lo, hi = self.box.lo[atom.index], self.box.hi[atom.index]
            return Expr(lo) if hi - lo == 1 else Expr(0, ((atom, 1),))
        inner = self(atom.arg)
        return self.floordiv(inner, atom.value) if isinstance(atom, FloorDiv) else self.mod(inner, atom.value)

    def _floordiv(self, x: Expr, a: int) -> Expr:
        lo, hi = self.ranges.of(x)
        if lo // a == hi // a:  # constant
            return Expr(lo // a)
        nearest = self._nearest(x, a)
        if nearest is not None:
            return self(nearest[0])
        joined = self._join_modulo(x, a)
        if joined is not None:
            quotient, rest = joined
            return self(quotient + self.floordiv(rest, a))
        y, b = _as_floor(x)
        if b > 1:  # nested-floor
            return self.floordiv(self(y), a * b)
        atom = x.single_atom
        if isinstance(atom, Mod) and atom.value % a == 0:  # floor-of-mod
            return self.digit(atom.arg, a, atom.value // a)
        quotient, rest = _reduce(x, a)
        if quotient is not ZERO:  # pull-out
            return self(quotient + self.floordiv(self(rest), a))
        if _is_mirrored(x):
            return -self.floordiv(self(a - 1 - x), a)
        for g in _strides(x, a):  # low-part
            found = self._separate(x, g)
            if found is not None:
                return self.floordiv(found[0], a // g)
        return x // a

    def _mod(self, x: Expr, m: int) -> Expr:
        lo, hi = self._range_of_sum_with_floor(x)
        if lo // m == hi // m:  # one-period
            return x - lo // m * m
        nearest = self._nearest(x, m)
        if nearest is not None:
            return self(nearest[1])
        w, b = _as_floor(x)
        for atom, coef in w.terms:
            if isinstance(atom, Mod) and coef * atom.value % (b * m) == 0:  # inner-mod, also under a floor
                return self.digit(self(w - _term(atom, coef) + atom.arg * coef), b, m)
        rest = _reduce(x, m)[1]
        if rest is not x:  # reduce
            return self.mod(self(rest), m)
        joined = self._join_modulo(x, m)
        if joined is not None:
            return self.mod(joined[1], m)
        if _is_mirrored(x):
            return m - 1 - self.mod(self(m - 1 - x), m)
        for g in _strides(x, m):  # split-mod
            found = self._separate(x, g)
            if found is not None:
                high, low = found
                return self(self.mod(high, m // g) * g + low)
        return x % m

    def _nearest(self, x: Expr, m: int) -> tuple[Expr, Expr] | None:
        """`(x // m, x % m)` by rule nearest, None if it does not apply: rows of 63 are rows of 64 that shift by -1."""
        terms = {atom: (coef + m // 2) % m - m // 2 for atom, coef in x.terms}
        if all(abs(terms[atom]) == abs(coef) for atom, coef in x.terms):
            return None
        rest = Expr.sum(x.const % m, terms)
        lo, hi = self.ranges.of(rest)
        if lo // m != hi // m:
            return None
        return _exact_quotient(x - rest, m) + lo // m, rest - lo // m * m

    def _separate(self, x: Expr, g: int) -> tuple[Expr, Expr] | None:
        """`(A + j, B - j*g)` with x = g*A + B and j*g <= B < (j+1)*g; None if the low part does not fit."""
        low = Expr(x.const, tuple((atom, coef) for atom, coef in x.terms if coef % g))
        lo, hi = self.ranges.of(low)
        j = lo // g
        if hi // g != j:
            return None
        high = Expr(j, tuple((atom, coef // g) for atom, coef in x.terms if coef % g == 0))
        return self(high), self(low - j * g)

    def _range_of_sum_with_floor(self, x: Expr) -> Interval:
        # q + r // b ranges less tightly than the (b*q + r) // b that it was pulled out of.
        lo, hi = self.ranges.of(x)
        y, b = _as_floor(x)
        if b == 1:
            return lo, hi
        low, high = self.ranges.of(y)
        return max(lo, low // b), min(hi, high // b)

    def _join_digits(self, expr: Expr) -> Expr:
        while len(expr.terms) > 1:
            joined = self._join_once(expr)
            if joined is None:
                break
            expr = joined
        return expr

    def _digit_terms(self, expr: Expr) -> list[tuple[Expr, int, Expr, int, int | None]]:
        """`(term, its coefficient, x, a, m)` for each term of the expression that is a digit."""
        found = []
        for atom, coef in expr.terms:
            if not isinstance(atom, Dim):
                digit = self._read.get(atom)
                if digit is None:
                    digit = self._read[atom] = as_digit(atom)
                found.append((_term(atom, coef), coef, *digit))
        return found

    def _join_modulo(self, x: Expr, modulus: int) -> tuple[Expr, Expr] | None:
        """`(q, r)` with x = modulus*q + r and two digits of x joined in r; None if there are no such digits."""
        if len(x.terms) < 2:
            return None
        digits = self._digit_terms(x)
        for low, c, value, a, m in digits:
            if m is None:
                continue
            for high, high_coef, y, b, n in digits:
                excess = high_coef - c * m
                if high is low or excess == 0 or excess % modulus:
                    continue
                whole = self.aligned(value, a * m, y, b)
                if whole is not None:
                    both = self.digit(self(whole), a, None if n is None else m * n)
                    unit = _exact_quotient(high, high_coef)
                    return unit * (excess // modulus), self(x - low - high + both * c)
        return None

    def _join_once(self, expr: Expr) -> Expr | None:
        """One application of join, to-mod or to-floor: fewer divisions, or as many and fewer terms."""
        digits = self._digit_terms(expr)
        for low, c, x, a, m in digits:
            if m is not None:
                for high, high_coef, y, b, n in digits:
                    whole = self.aligned(x, a * m, y, b) if high_coef == c * m else None
                    if whole is not None:  # join
                        both = self.digit(self(whole), a, None if n is None else m * n)
                        return expr - low - high + both * c
                floor = self.floordiv(self(x), a)
                if _includes(expr, floor, -c):  # to-floor
                    return expr - low + floor * c - self.floordiv(self(x), a * m) * (c * m)
                continue
            if c % a == 0 and _includes(expr, x, -c // a):  # to-mod of a sum
                return expr - low - x * (-c // a) + self.mod(self(x), a) * (-c // a)
            for high, high_coef, y, b, n in digits:  # to-mod of a floor
                k = b // a
                if n is None and k > 1 and b % a == 0 and high_coef == -c * k and congruent(x, y, a):
                    shift = _exact_quotient(y - x, a)
                    if shift.is_constant or _includes(expr, shift, c):
                        return expr - low - high - shift * c + self.digit(self(y), a, k) * c
        return None


def as_digit(atom: FloorDiv | Mod) -> Digit:
    """The atom read as `(x // a) % m`; a pulled-out quotient goes back under the floor."""
    if isinstance(atom, FloorDiv):
        return atom.arg, atom.value, None
    x, a = _as_floor(atom.arg)
    return x, a, atom.value


def congruent(x: Expr, y: Expr, modulus: int) -> bool:
    """Whether x - y is a multiple of `modulus`, seen from its constant and coefficients (rule inner-mod applied)."""
    difference = x - y
    for atom, coef in difference.terms:
        if coef % modulus and isinstance(atom, Mod) and coef * atom.value % modulus == 0:
            return congruent(x - _term(atom, coef) + atom.arg * coef, y, modulus)
    return difference.const % modulus == 0 and all(coef % modulus == 0 for _, coef in difference.terms)


def floors_form(expr: Expr) -> Expr:
    """`expr` without remainders: `x % m = x - m*(x // m)`, divisions reduced to coefficients in [0, a).

    Digits of one value cancel in this form, whichever way they were split, so it decides most equalities that the
    rules leave open. It has more terms and looser ranges: for comparing, not for code.
    """

    def atom(node: Atom) -> Expr:
        if isinstance(node, Dim):
            return _term(node, 1)
        x, a, m = as_digit(node)
        x = floors_form(x)
        low = _reduced_floor(x, a)
        return low if m is None else low - _reduced_floor(x, a * m) * m

    return map_atoms(expr, atom)


def simplify_exprs(exprs: Sequence[Expr], box: Box) -> tuple[Expr, ...]:
    """Each expression rewritten by the rules to an equal one over `box`.

    Raises:
        IndexOverflowError: A value that the result computes on the way may leave int64.
    """
    return _simplified(tuple(exprs), box)


@lru_cache(maxsize=1 << 14)
def _simplified(exprs: tuple[Expr, ...], box: Box) -> tuple[Expr, ...]:
    """Kept, because models repeat their blocks and each pass reads anew what the one before has written."""
    if box.is_empty:
        return exprs
    simplifier = Simplifier(box)
    simplified = tuple(map(simplifier, exprs))
    try:
        simplifier.ranges.check_int64(simplified)
    except IndexOverflowError:
        # nested-floor multiplies divisors: of very deep nests the original may fit where the result does not.
        simplified = exprs
        simplifier.ranges.check_int64(simplified)
    return simplified


def _term(atom: Atom, coef: int) -> Expr:
    return Expr(0, ((atom, coef),))


def _as_floor(x: Expr) -> tuple[Expr, int]:
    """`(y, b)` with x = y // b: rule nested-floor backwards. `(x, 1)` unless exactly one floor has coefficient 1."""
    floors = [atom for atom, coef in x.terms if coef == 1 and isinstance(atom, FloorDiv)]
    if len(floors) != 1:
        return x, 1
    (floor,) = floors
    return (x - _term(floor, 1)) * floor.value + floor.arg, floor.value


def _strides(x: Expr, modulus: int) -> list[int]:
    """Divisors of `modulus` that may separate high from low terms of x, greatest first."""
    return sorted({gcd(coef, modulus) for _, coef in x.terms} - {1}, reverse=True)


def _reduce(x: Expr, modulus: int) -> tuple[Expr, Expr]:
    """`(q, r)` with x = modulus*q + r: coefficients of r keep their sign (a flipped axis stays one term) and are
    smaller than the modulus; the constant is in [0, modulus)."""
    terms = {atom: coef % modulus if coef > 0 else -(-coef % modulus) for atom, coef in x.terms}
    rest = Expr.sum(x.const % modulus, terms)
    return _exact_quotient(x - rest, modulus), rest


def _reduced_floor(x: Expr, a: int) -> Expr:
    rest = Expr.sum(x.const % a, {atom: coef % a for atom, coef in x.terms})
    return _exact_quotient(x - rest, a) + rest // a


def _exact_quotient(x: Expr, a: int) -> Expr:
    return Expr(x.const // a, tuple((atom, coef // a) for atom, coef in x.terms))


def _is_mirrored(x: Expr) -> bool:
    return all(coef < 0 for _, coef in x.terms)


def _includes(expr: Expr, part: Expr, factor: int) -> bool:
    """Whether every term of `factor * part` occurs in `expr` with that coefficient (constants are left over)."""
    return bool(part.terms) and all(expr.coefficient(atom) == factor * coef for atom, coef in part.terms)
