"""Piecewise quasi-affine index maps over boxes: views as data, without any IR.

What a data-movement operator does is a :class:`View`: for each box of the result, which operand it reads and by which
:class:`IndexMap`, or which constant fills it. Chains of such operators compose to one view (index comprehension), whose
expressions are strength-reduced by proved rules; passes then decide where the view can be folded.

>>> opened = movement.reshape((2, 256, 4), (16, 8, 4, 4))
>>> view = compose(movement.transpose((16, 8, 4, 4), (0, 2, 1, 3)), opened)
>>> print(view.single_map)
(d0, d1, d2, d3) -> (d0 floordiv 8, (d0 mod 8) * 32 + d2 * 4 + d1, d3)

| module | what it gives |
|---|---|
| `expr` | `dim`, `const`, `Expr`: immutable, interned expressions (`+`, `* c`, `// c`, `% c`) |
| `box` | `Box`, interval arithmetic (`Ranges`) |
| `simplify` | `Simplifier`: the rewrite rules over a box |
| `map` | `IndexMap`: compose, restrict, product, bounds; `evaluate` (NumPy oracle) |
| `inverse` | `inverse` of a bijective map |
| `view` | `View`, `Piece`, `Fill`; `apply` (NumPy oracle) |
| `movement`, `movement_windows` | one constructor for each movement operator |
| `compose` | `compose`, `invert` of views |
| `preimage` | which boxes of a result read which piece; `MAX_PIECES` |
| `merge` | `merge_pieces` (done by `compose`), `split_wraps` |
| `unify` | `unify_pieces`: fewer pieces at the price of `mod` and `floordiv` |
| `refine` | splitting an iteration space until accesses are strided |
| `contiguity` | strides, run lengths, vector widths |
| `cost`, `separable` | instructions to evaluate a map or view; coordinates that are chosen one by one |
| `text` | MLIR affine syntax for maps, a readable syntax for views, parsers for both |
| `certificates` | `Certificate`, `CertificateLog`: evidence for each rewrite, re-checked by ISL |
| `movement_claims` | `MovementClaim`: an operation is a view, checked by executing it |
| `evidence` | `certificates.json`: write, read, prove |
| `isl` | `prove_equal`, `prove_views_equal`, `is_injective`, `exact_bounds`; the only user of islpy |

Everything is static: extents are numbers. Functions raise :class:`IndexMapError` and its subclasses;
`PieceLimitExceeded` and `ExpressionLimitExceeded` are how a composition says that a copy is the better code. `isl` is
not imported here: islpy loads only where something is proved. The theory is in `docs/index-maps.md`.
"""

from __future__ import annotations

from smartmem_mlir.index_maps import movement, movement_windows
from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.certificates import Certificate, CertificateLog
from smartmem_mlir.index_maps.compose import compose, invert
from smartmem_mlir.index_maps.errors import (
    ExpressionLimitExceeded,
    IndexMapError,
    IndexOverflowError,
    NotInvertibleError,
    PieceLimitExceeded,
    ProofInconclusiveError,
    UnprovedRewriteError,
)
from smartmem_mlir.index_maps.expr import Expr, const, dim, dims
from smartmem_mlir.index_maps.inverse import inverse
from smartmem_mlir.index_maps.map import IndexMap, evaluate
from smartmem_mlir.index_maps.text import parse_map, parse_view
from smartmem_mlir.index_maps.view import Fill, Piece, View, apply

__all__ = [
    "Box",
    "Certificate",
    "CertificateLog",
    "Expr",
    "ExpressionLimitExceeded",
    "Fill",
    "IndexMap",
    "IndexMapError",
    "IndexOverflowError",
    "NotInvertibleError",
    "Piece",
    "PieceLimitExceeded",
    "ProofInconclusiveError",
    "UnprovedRewriteError",
    "View",
    "apply",
    "compose",
    "const",
    "dim",
    "dims",
    "evaluate",
    "inverse",
    "invert",
    "movement",
    "movement_windows",
    "parse_map",
    "parse_view",
]
