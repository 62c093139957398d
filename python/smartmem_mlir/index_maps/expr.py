"""Quasi-affine expressions: integer-linear combinations of dimensions, floor divisions and remainders.

An :class:`Expr` is always held as `const + sum(coef * atom)` with equal atoms collected, so associativity,
commutativity and distributivity hold by construction and only division needs rules (`simplify.py`). An atom is a
:class:`Dim`, a :class:`FloorDiv` or a :class:`Mod` by a positive constant; rounding is towards minus infinity and
remainders are never negative, as in MLIR's affine maps.

Expressions and atoms are immutable and interned: structurally equal means identical, so `==` and `hash` cost one
pointer operation and a chain of composed maps is a DAG rather than a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NoReturn, TypeAlias
from weakref import WeakValueDictionary

from smartmem_mlir.index_maps.errors import IndexMapError

Key: TypeAlias = tuple[int, int, int, int]
"""Orders atoms alike in every run: kind, first dimension, divisor, digest of the argument. Comparing two keys is one
step however deep the atoms are; comparing the structures would take time exponential in their depth."""


class _Immutable:
    __slots__ = ("__weakref__",)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __copy__(self) -> _Immutable:
        return self

    def __deepcopy__(self, memo: object) -> _Immutable:
        return self


class Dim(_Immutable):
    """Input dimension number `index` of the map."""

    __slots__ = ("index", "key")
    index: int
    key: Key

    def __new__(cls, index: int) -> Dim:
        found = _dims.get(index)
        if found is not None:
            return found
        if index < 0:
            raise IndexMapError(f"dimension {index} is negative")
        self = super().__new__(cls)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "key", (0, index, 0, 0))
        return _dims.setdefault(index, self)

    def __reduce__(self) -> tuple[object, ...]:
        return Dim, (self.index,)

    def __repr__(self) -> str:
        return f"d{self.index}"


class _Quotient(_Immutable):
    """What floor division and remainder share: an argument and a positive constant."""

    __slots__ = ("arg", "key", "value")
    arg: Expr
    value: int
    key: Key
    _kind = 0

    def __new__(cls, arg: Expr, value: int) -> Any:
        found = _quotients.get((cls, arg, value))
        if found is not None:
            return found
        if value <= 0:
            raise IndexMapError(f"{cls.__name__} by {value}", hint="divide by a positive constant")
        self = super().__new__(cls)
        object.__setattr__(self, "arg", arg)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "key", (cls._kind, min(arg.dims, default=-1), value, arg.digest))
        return _quotients.setdefault((cls, arg, value), self)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.arg, self.value)


class FloorDiv(_Quotient):
    """`floor(arg / value)`, value > 0."""

    __slots__ = ()
    _kind = 1

    def __repr__(self) -> str:
        return _show(self, _SHOWN_DEPTH)


class Mod(_Quotient):
    """`arg - value * floor(arg / value)`, value > 0; in [0, value)."""

    __slots__ = ()
    _kind = 2

    def __repr__(self) -> str:
        return _show(self, _SHOWN_DEPTH)


_SHOWN_DEPTH = 6

Atom: TypeAlias = Dim | FloorDiv | Mod
Terms: TypeAlias = tuple[tuple[Atom, int], ...]


class Expr(_Immutable):
    """`const + sum(coef * atom for atom, coef in terms)`, terms sorted by atom, no coefficient zero."""

    __slots__ = ("_digest", "_dims", "const", "terms")
    const: int
    terms: Terms
    # Most expressions are intermediate results that nobody asks for either of these: computed on demand.
    _digest: int
    _dims: frozenset[int]

    def __new__(cls, const: int, terms: Terms = ()) -> Expr:
        found = _exprs.get((const, terms))
        if found is not None:
            return found
        self = super().__new__(cls)
        object.__setattr__(self, "const", const)
        object.__setattr__(self, "terms", terms)
        return _exprs.setdefault((const, terms), self)

    def __reduce__(self) -> tuple[object, ...]:
        return Expr, (self.const, self.terms)

    @staticmethod
    def sum(const: int, terms: Mapping[Atom, int]) -> Expr:
        """The expression with these coefficients; zeros are dropped and the order is made canonical."""
        kept = [item for item in terms.items() if item[1]]
        if len(kept) > 1:
            kept.sort(key=_term_key)
        return Expr(const, tuple(kept))

    @property
    def dims(self) -> frozenset[int]:
        """Indices of the input dimensions that occur, also inside divisions."""
        try:
            return self._dims
        except AttributeError:
            object.__setattr__(self, "_dims", frozenset().union(*(_atom_dims(atom) for atom, _ in self.terms)))
            return self._dims

    @property
    def digest(self) -> int:
        """A hash of the structure that is the same in every run (Python's own hash of integers is not salted).

        Different expressions with one digest would only cost a missed simplification.
        """
        try:
            return self._digest
        except AttributeError:
            parts = tuple((*atom.key, _natural(coef)) for atom, coef in self.terms)
            object.__setattr__(self, "_digest", hash((_natural(self.const), parts)))
            return self._digest

    @property
    def is_constant(self) -> bool:
        """Whether the expression is a number."""
        return not self.terms

    @property
    def single_atom(self) -> Atom | None:
        """The atom, if the expression is just one atom with coefficient 1."""
        if len(self.terms) == 1 and self.const == 0 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    def coefficient(self, atom: Atom) -> int:
        """Coefficient of `atom` (0 when absent); does not look inside divisions."""
        return next((coef for other, coef in self.terms if other is atom), 0)

    def __add__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return Expr(self.const + other, self.terms) if other else self
        if not other.terms:
            return self + other.const
        terms = dict(self.terms)
        for atom, coef in other.terms:
            terms[atom] = terms.get(atom, 0) + coef
        return Expr.sum(self.const + other.const, terms)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Expr:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Expr(self.const * factor, tuple((atom, coef * factor) for atom, coef in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Expr | int) -> Expr:
        return self + (-other)

    def __rsub__(self, other: int) -> Expr:
        return other + (-self)

    def __floordiv__(self, value: int) -> Expr:
        """`floor(self / value)` as written: only constants and division by one are folded."""
        if value == 1:
            return self
        if self.is_constant and value > 0:
            return Expr(self.const // value)
        return Expr(0, ((FloorDiv(self, value), 1),))

    def __mod__(self, value: int) -> Expr:
        """`self mod value` as written: only constants and modulus one are folded."""
        if value == 1:
            return ZERO
        if self.is_constant and value > 0:
            return Expr(self.const % value)
        return Expr(0, ((Mod(self, value), 1),))

    def substitute(self, args: Sequence[Expr]) -> Expr:
        """Replaces dimension i by `args[i]`. Shared subexpressions are visited once."""
        memo: dict[Expr, Expr] = {}

        def visit(expr: Expr) -> Expr:
            done = memo.get(expr)
            if done is None:
                done = memo[expr] = map_atoms(expr, atom)
            return done

        def atom(node: Atom) -> Expr:
            if isinstance(node, Dim):
                return args[node.index]
            inner = visit(node.arg)
            return inner // node.value if isinstance(node, FloorDiv) else inner % node.value

        return visit(self)

    def shift_dims(self, by: int) -> Expr:
        """Renames dimension i to i + by."""
        return self.substitute([dim(i + by) for i in range(max(self.dims, default=-1) + 1)])

    def subexprs(self) -> Iterator[Expr]:
        """This expression and each distinct argument of a division in it, outermost first."""
        seen = {self}
        stack = [self]
        while stack:
            expr = stack.pop()
            yield expr
            for atom, _ in expr.terms:
                if not isinstance(atom, Dim) and atom.arg not in seen:
                    seen.add(atom.arg)
                    stack.append(atom.arg)

    def __repr__(self) -> str:
        return _show(self, _SHOWN_DEPTH)


def _natural(value: int) -> int:
    # hash(-1) == hash(-2) in CPython, and both are frequent coefficients.
    return 2 * value if value >= 0 else -2 * value - 1


def _show(node: Expr | Atom, depth: int) -> str:
    """For messages and debuggers: cut off below `depth`, because a DAG written out may be exponentially long."""
    if isinstance(node, Dim):
        return f"d{node.index}"
    if isinstance(node, (FloorDiv, Mod)):
        inner = _show(node.arg, depth - 1) if depth else "..."
        return f"({inner} {'floordiv' if isinstance(node, FloorDiv) else 'mod'} {node.value})"
    parts = [_show(atom, depth) if coef == 1 else f"{coef}*{_show(atom, depth)}" for atom, coef in node.terms]
    if node.const or not parts:
        parts.append(str(node.const))
    return " + ".join(parts)


def _term_key(term: tuple[Atom, int]) -> Key:
    return term[0].key


def _atom_dims(atom: Atom) -> frozenset[int]:
    return frozenset((atom.index,)) if isinstance(atom, Dim) else atom.arg.dims


def map_atoms(expr: Expr, replace: Callable[[Atom], Expr]) -> Expr:
    """`expr` with each top-level atom replaced by an expression."""
    const = expr.const
    terms: dict[Atom, int] = {}
    for atom, coef in expr.terms:
        new = replace(atom)
        const += coef * new.const
        for inner, inner_coef in new.terms:
            terms[inner] = terms.get(inner, 0) + coef * inner_coef
    return Expr.sum(const, terms)


def dim(index: int) -> Expr:
    """Input dimension `index` as an expression."""
    return Expr(0, ((Dim(index), 1),))


def const(value: int) -> Expr:
    """A number as an expression."""
    return Expr(int(value))


def dims(rank: int) -> tuple[Expr, ...]:
    """`(d0, ..., d(rank-1))`."""
    return tuple(dim(i) for i in range(rank))


def linearize(indices: Sequence[Expr], extents: Sequence[int]) -> Expr:
    """The row-major address of an index."""
    address = ZERO
    for index, extent in zip(indices, extents, strict=True):
        address = address * extent + index
    return address


def delinearize(address: Expr, extents: Sequence[int]) -> list[Expr]:
    """The index at a row-major address."""
    indices = []
    stride = prod(extents)
    for position, extent in enumerate(extents):
        stride //= extent
        index = address // stride
        indices.append(index if position == 0 else index % extent)
    return indices


def term_count(exprs: Sequence[Expr]) -> int:
    """Number of terms of the expressions written out, inside divisions too: what the growth limit bounds.

    Sharing does not help: text, and IR that prints as text, writes a shared subexpression once for each use.
    """
    memo: dict[Expr, int] = {}

    def count(expr: Expr) -> int:
        if expr not in memo:
            memo[expr] = sum(1 if isinstance(atom, Dim) else 1 + count(atom.arg) for atom, _ in expr.terms)
        return memo[expr]

    return sum(map(count, exprs))


def has_nested_division(exprs: Sequence[Expr]) -> bool:
    """Whether some division has a division in its argument."""
    return any(
        not isinstance(inner, Dim)
        for expr in exprs
        for atom, _ in expr.terms
        if not isinstance(atom, Dim)
        for inner, _ in atom.arg.terms
    )


_dims: WeakValueDictionary[int, Dim] = WeakValueDictionary()
_quotients: WeakValueDictionary[tuple[type, Expr, int], Any] = WeakValueDictionary()
_exprs: WeakValueDictionary[tuple[int, Terms], Expr] = WeakValueDictionary()

ZERO = Expr(0)
ONE = Expr(1)
