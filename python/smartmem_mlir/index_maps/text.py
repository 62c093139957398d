"""Maps and views as text. A map prints in MLIR's affine syntax, so that `AffineMap` parsers read it unchanged.

```
(d0, d1) -> (d0 floordiv 4, (d1 mod 8) * 7 - d0 + 3)

view 6x4 of (2x4), (3x4) {
  [0:2, 0:4] = #0 (d0, d1) -> (d0, d1)
  [2:5, 0:4] = #1 (d0, d1) -> (d0 - 2, d1)
  [5:6, 0:4] = fill 0.0
}
```
Boxes of a view are half-open and in the coordinates of the result; `#k` is operand k. A shape of rank 0 is `scalar`.
"""

from __future__ import annotations

import ast
import math
import re

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import IndexMapError
from smartmem_mlir.index_maps.expr import Atom, Dim, Expr, FloorDiv, const, dim
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.view import Fill, Piece, Scalar, View

_MAX_DEPTH = 100
"""Nesting that the parser follows; maps that this package prints stay far below (`compose.MAX_TERMS`)."""
_TOKEN = re.compile(r"\s*(->|floordiv|ceildiv|mod|d\d+|\d+|[-+*(),])")


def print_expr(expr: Expr) -> str:
    """One expression in MLIR's affine syntax, terms by decreasing coefficient, constant last."""
    ordered = sorted(expr.terms, key=lambda term: (term[1] < 0, -abs(term[1]), term[0].key))
    text = ""
    for atom, coef in ordered:
        factor = "" if abs(coef) == 1 else f" * {abs(coef)}"
        operand = _print_atom(atom, nested=bool(factor) or (coef < 0 and not text))
        if not text:
            text = f"-{operand}{factor}" if coef < 0 else f"{operand}{factor}"
        else:
            text += f" {'-' if coef < 0 else '+'} {operand}{factor}"
    if not text:
        return str(expr.const)
    if expr.const:
        text += f" {'-' if expr.const < 0 else '+'} {abs(expr.const)}"
    return text


def _print_atom(atom: Atom, nested: bool) -> str:
    if isinstance(atom, Dim):
        return f"d{atom.index}"
    inner = print_expr(atom.arg)
    single = atom.arg.single_atom
    if not isinstance(single, Dim):
        inner = f"({inner})"
    text = f"{inner} {'floordiv' if isinstance(atom, FloorDiv) else 'mod'} {atom.value}"
    return f"({text})" if nested else text


def print_map(index_map: IndexMap) -> str:
    """`(d0, d1) -> (expr, ...)`; the domain is not part of MLIR's syntax and is not printed."""
    inputs = ", ".join(f"d{i}" for i in range(index_map.num_inputs))
    return f"({inputs}) -> ({', '.join(map(print_expr, index_map.exprs))})"


def parse_map(text: str, domain: Box) -> IndexMap:
    """Reads what `print_map` writes, and any affine map without symbols whose divisors are positive constants.

    Raises:
        IndexMapError: The text is not such a map, or its number of inputs is not the domain's rank.
    """
    parser = _Parser(text)
    rank = 0
    parser.expect("(")
    while parser.peek() != ")":
        if rank:
            parser.expect(",")
        parser.expect(f"d{rank}")
        rank += 1
    parser.expect(")")
    parser.expect("->")
    parser.expect("(")
    exprs: list[Expr] = []
    while parser.peek() != ")":
        if exprs:
            parser.expect(",")
        exprs.append(parser.sum())
    parser.expect(")")
    parser.end()
    if rank != domain.rank:
        raise IndexMapError(f"map of {rank} inputs over a domain of rank {domain.rank}: {text!r}")
    return IndexMap(domain, tuple(exprs))


class _Parser:
    """Recursive descent over affine expressions; `*`, `floordiv`, `ceildiv` and `mod` bind alike, from the left."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        at = 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                raise IndexMapError(f"unexpected {stripped[at:].strip()[:10]!r} in {text!r}")
            self.tokens.append(match[1])
            at = match.end()
        self.at = 0
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        found = self.take()
        if found != token:
            raise IndexMapError(f"expected {token!r}, found {found or 'the end'!r} in {self.text!r}")

    def end(self) -> None:
        if self.peek():
            raise IndexMapError(f"unexpected {self.peek()!r} after the map in {self.text!r}")

    def sum(self) -> Expr:
        total = self.product()
        while self.peek() in ("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        return total

    def product(self) -> Expr:
        left = self.unary()
        while self.peek() in ("*", "floordiv", "ceildiv", "mod"):
            operator, right = self.take(), self.unary()
            if operator == "*" and left.is_constant:
                left = right * left.const
            elif not right.is_constant:
                raise IndexMapError(f"{operator} by something that is not a constant in {self.text!r}")
            elif operator == "*":
                left = left * right.const
            elif operator == "floordiv":
                left = left // right.const
            elif operator == "mod":
                left = left % right.const
            else:
                left = -(-left // right.const)
        return left

    def unary(self) -> Expr:
        token = self.take()
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise IndexMapError(f"more than {_MAX_DEPTH} nested parentheses or signs in a map")
        value = self.operand(token)
        self.depth -= 1
        return value

    def operand(self, token: str) -> Expr:
        if token == "-":
            return -self.unary()
        if token == "(":
            inner = self.sum()
            self.expect(")")
            return inner
        if token.isdigit():
            return const(int(token))
        if re.fullmatch(r"d\d+", token):
            return dim(int(token[1:]))
        raise IndexMapError(f"expected an expression, found {token or 'the end'!r} in {self.text!r}")


def print_view(view: View) -> str:
    """A view in the syntax of this module's example."""
    lines = [f"view {_print_shape(view.shape)} of {', '.join(f'({_print_shape(s)})' for s in view.operands)} {{"]
    for piece in view.pieces:
        if isinstance(piece.source, Fill):
            value = f"fill {_print_scalar(piece.source.value)}"
        else:
            value = f"#{piece.source} {print_map(piece.map)}"
        lines.append(f"  {piece.box} = {value}")
    return "\n".join([*lines, "}"])


def parse_view(text: str) -> View:
    """Reads what `print_view` writes.

    Raises:
        IndexMapError: The text is not a view, or the view is malformed.
    """
    lines = text.strip().splitlines() or [""]
    head = re.fullmatch(r"view (\S+) of (.*)\s\{", lines[0].strip())
    if head is None or lines[-1].strip() != "}":
        raise IndexMapError(f"not a view: {text[:40]!r}")
    operands = tuple(_parse_shape(shape) for shape in re.findall(r"\(([^)]*)\)", head[2]))
    pieces = []
    for line in lines[1:-1]:
        match = re.fullmatch(r"\s*\[([^\]]*)\] = (?:fill (?P<fill>.+)|#(?P<operand>\d+) (?P<map>.+))", line)
        if match is None:
            raise IndexMapError(f"not a piece of a view: {line.strip()!r}")
        box = _parse_box(match[1])
        if match["fill"] is not None:
            pieces.append(Piece(box, Fill(_parse_scalar(match["fill"])), ()))
        else:
            pieces.append(Piece(box, int(match["operand"]), parse_map(match["map"], box).exprs))
    return View(_parse_shape(head[1]), operands, tuple(pieces))


def _print_shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _parse_shape(text: str) -> tuple[int, ...]:
    if text == "scalar":
        return ()
    if not re.fullmatch(r"\d+(x\d+)*", text):
        raise IndexMapError(f"{text!r} is not a shape")
    return tuple(map(int, text.split("x")))


def _parse_box(text: str) -> Box:
    axes = [re.fullmatch(r"\s*(\d+):(\d+)\s*", axis) for axis in text.split(",")] if text.strip() else []
    bounds = [(int(axis[1]), int(axis[2])) for axis in axes if axis]
    if len(bounds) != len(axes):
        raise IndexMapError(f"[{text}] is not a box")
    return Box(tuple(lo for lo, _ in bounds), tuple(hi for _, hi in bounds))


def _print_scalar(value: Scalar) -> str:
    return repr(value)


def _parse_scalar(text: str) -> Scalar:
    if text in ("nan", "inf", "-inf"):
        return math.nan if text == "nan" else float(text)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise IndexMapError(f"fill value {text!r} is not a number") from error
    if not isinstance(value, (bool, int, float)):
        raise IndexMapError(f"fill value {text!r} is not a number")
    return value
