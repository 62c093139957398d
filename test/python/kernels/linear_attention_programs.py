"""Attention without a softmax in the forms that models have, and products that are none, with their results by NumPy.

Letters of layouts: b and h are batch and heads, m queries, n keys, d columns of queries and keys, e columns of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import arithmetic as math_
import numpy as np
from kernel_programs import weight
from program import Program, Tensor

EPSILON = 2.0**-6
Build = Callable[[Program], Tensor]


def relu(p: Program, x: Tensor) -> Tensor:
    zero, order = p.constant(0.0), list(range(x.rank))
    body = f"%c = arith.cmpf ugt, %x0, {zero} : f32\n    %y = arith.select %c, %x0, {zero} : f32\n    "
    body += "linalg.yield %y : f32"
    return p.generic([(x, order)], order, "p" * x.rank, body, np.maximum(x.array, 0))


def plus(p: Program, x: Tensor, number: float) -> Tensor:
    scalar, order = p.constant(number), list(range(x.rank))
    body = "%y = arith.addf %x0, %x1 : f32\n    linalg.yield %y : f32"
    return p.generic([(x, order), (scalar, [])], order, "p" * x.rank, body, x.array + number)


def part(p: Program, x: Tensor, start: int, count: int) -> Tensor:
    """Some columns."""
    offsets, sizes = [0] * x.rank, list(x.shape)
    offsets[-1], sizes[-1] = start, count
    return p.slice(x, offsets, sizes, [1] * x.rank)


def with_ones(p: Program, v: Tensor) -> Tensor:
    behind = [0] * (v.rank - 1) + [1]
    return p.pad(v, [0] * v.rank, behind, 1.0)


def products(p: Program, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q (k^T v), all of them [b, rows, columns]."""
    return math_.contract(p, q, math_.contract(p, k, v, "bnd,bne->bde"), "bmd,bde->bme")


def divided(p: Program, product: Tensor, column: int = -1) -> Tensor:
    """All columns but the last, divided by a column plus a small number."""
    count = product.shape[-1] - 1
    divisor = plus(p, part(p, product, column % (count + 1), 1), EPSILON)
    return math_.binary(p, part(p, product, 0, count), divisor, "divf")


def factors(p: Program, b: int, m: int, n: int, d: int, e: int) -> list[Tensor]:
    return [p.argument([b, m, d]), p.argument([b, n, d]), p.argument([b, n, e])]


def normalised(b: int, m: int, n: int, d: int, e: int) -> Build:
    def build(p: Program) -> Tensor:
        q, k, v = factors(p, b, m, n, d, e)
        return divided(p, products(p, relu(p, q), relu(p, k), with_ones(p, v)))

    return build


def by_layout(query: str, key: str, value: str, output: str, **extents: int) -> Build:
    """Products in any layout: the letters that the state has are those of the key and value that are not the keys'."""

    def build(p: Program) -> Tensor:
        q, k, v = (p.argument([extents[letter] for letter in letters]) for letters in (query, key, value))
        outer = [letter for letter in query if letter in "bh"]
        state = math_.contract(p, relu(p, k), v, f"{key},{value}->{''.join(outer)}de")
        return plus(p, math_.contract(p, relu(p, q), state, f"{query},{''.join(outer)}de->{output}"), 0.5)

    return build


def multi_scale(p: Program) -> Tensor:
    """EfficientViT's: heads of two tensors, each token with queries, keys and values of a head side by side."""
    heads = []
    for count in (2, 3):
        x = p.reshape(p.argument([5, 4, count * 24]), [20, count, 24])
        heads.append(p.transpose(x, [1, 0, 2]))
    x = p.concat(heads, 0)
    q, k, v = (part(p, x, 8 * i, 8) for i in range(3))
    result = divided(p, products(p, relu(p, q), relu(p, k), with_ones(p, v)))
    return plus(p, p.reshape(p.transpose(result, [1, 0, 2]), [5, 4, 40]), 0.5)


def stacked_heads_of_a_batch(p: Program) -> Tensor:
    """The stack is not along the outermost dimension: which tensor is read depends on the head of the matrix."""
    parts = [p.argument([2, count, 9, 12]) for count in (1, 2)]
    x = relu(p, p.concat(parts, 1))
    v = p.argument([2, 3, 9, 7])
    state = math_.contract(p, x, v, "bhnd,bhne->bhde")
    return plus(p, math_.contract(p, p.argument([2, 3, 6, 12]), state, "bhmd,bhde->bmhe"), 0.25)


def stacked_columns(p: Program) -> Tensor:
    """Columns of the keys come from two tensors, the second of which is transposed; so do those of the queries."""
    k = p.concat([p.argument([2, 11, 5]), p.transpose(p.argument([2, 6, 11]), [0, 2, 1])], 2)
    q = p.concat([p.transpose(p.argument([2, 3, 10]), [0, 2, 1]), p.argument([2, 10, 8])], 2)
    return products(p, math_.unary(p, q, "math.exp"), relu(p, k), p.argument([2, 11, 9]))


def padded_keys(p: Program) -> Tensor:
    """Keys that are numbers, in front and behind."""
    q, k, v = factors(p, 2, 6, 19, 8, 8)
    k = math_.unary(p, p.pad(k, [0, 2, 0], [0, 3, 0], -0.5), "math.exp")
    return products(p, q, k, p.pad(v, [0, 2, 0], [0, 3, 0], 0.25))


def sum_of_keys(p: Program) -> Tensor:
    """The divisor is computed from a sum of the keys, which have two readers."""
    q, k, v = factors(p, 3, 8, 10, 12, 16)
    q, k = relu(p, q), relu(p, k)
    divisor = plus(p, math_.contract(p, q, math_.reduce(p, k, [1]), "bmd,bd->bm"), EPSILON)
    return math_.binary(p, products(p, q, k, v), divisor, "divf", [0, 1])


def another_column(p: Program) -> Tensor:
    """The divisor is a column that is not constant, and another one is added."""
    q, k, v = factors(p, 2, 9, 12, 8, 13)
    product = products(p, relu(p, q), relu(p, k), plus(p, v, 2.0))
    return math_.binary(p, divided(p, product, 3), part(p, product, 5, 1), "addf")


def small_number_elsewhere(p: Program) -> Tensor:
    """The small number is added to what is divided and to the quotient, not to the divisor."""
    q, k, v = factors(p, 2, 9, 12, 8, 12)
    product = products(p, plus(p, relu(p, q), 0.5), relu(p, k), with_ones(p, v))
    quotient = math_.binary(p, plus(p, part(p, product, 0, 12), EPSILON), part(p, product, 12, 1), "divf")
    return plus(p, quotient, EPSILON)


def last_columns(p: Program) -> Tensor:
    """The divisor is the first column, so that what it divides begins in the second."""
    q, k, v = factors(p, 2, 9, 12, 8, 21)
    product = products(p, relu(p, q), relu(p, k), plus(p, v, 2.0))
    return math_.binary(p, part(p, product, 1, 20), plus(p, part(p, product, 0, 1), EPSILON), "divf")


def bias_and_residual(p: Program) -> Tensor:
    q, k, v = factors(p, 2, 9, 12, 8, 20)
    result = divided(p, products(p, relu(p, q), relu(p, k), with_ones(p, v)))
    result = math_.binary(p, result, p.argument([20]), "addf", [2])
    return math_.unary(p, math_.binary(p, result, p.argument([2, 9, 20]), "addf"))


def quadratic(p: Program) -> Tensor:
    """The other order: weights of keys by queries are the small factor."""
    q, k, v = factors(p, 2, 10, 12, 30, 40)
    return math_.contract(p, math_.contract(p, q, k, "bmd,bnd->bmn"), v, "bmn,bne->bme")


def columns_apart(p: Program) -> Tensor:
    """Columns of two dimensions, between which the caller wants others."""
    state = math_.contract(p, p.argument([2, 12, 8]), p.argument([2, 12, 3, 10]), "bnd,bnef->bdef")
    return math_.contract(p, p.argument([2, 9, 8]), state, "bmd,bdef->ebmf")


def scaled_queries(p: Program) -> Tensor:
    q, k, v = factors(p, 2, 9, 12, 8, 8)
    return products(p, math_.scale(p, q, 0.25), math_.scale(p, relu(p, k), 3.0, "operand"), v)


KERNELS: dict[str, Build] = {
    "multi_scale": multi_scale,
    "normalised": normalised(4, 49, 49, 32, 32),
    "odd": normalised(3, 17, 13, 5, 7),
    "one_query": normalised(6, 1, 9, 8, 8),
    "many_keys": normalised(2, 30, 700, 16, 24),
    "many_columns": normalised(2, 11, 20, 9, 150),
    "heads": by_layout("bmhd", "bnhd", "bnhe", "bmhe", b=2, h=3, m=10, n=11, d=8, e=9),
    "transposed": by_layout("bdm", "bdn", "ben", "bem", b=2, m=18, n=21, d=10, e=13),
    "scattered": by_layout("dmb", "ndb", "neb", "emb", b=5, m=11, n=7, d=6, e=9),
    "stacked_heads_of_a_batch": stacked_heads_of_a_batch,
    "stacked_columns": stacked_columns,
    "padded_keys": padded_keys,
    "another_column": another_column,
    "small_number_elsewhere": small_number_elsewhere,
    "last_columns": last_columns,
    "bias_and_residual": bias_and_residual,
    "quadratic": quadratic,
    "scaled_queries": scaled_queries,
    "columns_apart": columns_apart,
    "wide": normalised(2, 20, 40, 64, 120),
}
"""Each of them is one kernel."""


def another_row(p: Program) -> Tensor:
    """The divisor is that of another query."""
    q, k, v = factors(p, 2, 9, 12, 8, 8)
    product = products(p, relu(p, q), relu(p, k), with_ones(p, v))
    return math_.binary(p, part(p, product, 0, 8), plus(p, p.flip(part(p, product, 8, 1), 1), EPSILON), "divf")


def both_used(p: Program) -> Tensor:
    """The products are a result as well, so that what follows cannot be."""
    q, k, v = factors(p, 2, 9, 12, 8, 8)
    product = products(p, relu(p, q), relu(p, k), with_ones(p, v))
    p.results.append(product)
    return divided(p, product)


WITH_OTHERS: dict[str, Build] = {"sum_of_keys": sum_of_keys, "another_row": another_row, "both_used": both_used}
"""The products are one kernel, but not all that is computed."""


def nonlinear_state(p: Program) -> Tensor:
    q, k, v = factors(p, 2, 9, 12, 8, 8)
    state = math_.unary(p, math_.contract(p, k, v, "bnd,bne->bde"))
    return math_.contract(p, q, state, "bmd,bde->bme")


def state_is_a_result(p: Program) -> Tensor:
    q, k, v = factors(p, 2, 9, 12, 8, 8)
    p.results.append(math_.contract(p, k, v, "bnd,bne->bde"))
    return math_.contract(p, q, p.results[0], "bmd,bde->bme")


def keys_of_a_weight(p: Program) -> Tensor:
    """A table that a layer of the network computes for each head."""
    table = math_.contract(p, weight(p, [3, 12, 8]), p.argument([3, 12, 10]), "bnd,bne->bde")
    return math_.contract(p, p.argument([3, 9, 8]), table, "bmd,bde->bme")


def one_matrix(p: Program) -> Tensor:
    """Two layers of a network."""
    x = math_.contract(p, p.argument([19, 12]), p.argument([12, 8]), "nd,de->ne")
    return math_.contract(p, x, p.argument([8, 20]), "ne,ef->nf")


def large_state(p: Program) -> Tensor:
    return products(p, *factors(p, 2, 9, 12, 96, 96))


def state_from_something(p: Program) -> Tensor:
    """The sums of the state do not start from zero."""
    q, k, v = factors(p, 2, 9, 12, 8, 8)
    return math_.contract(p, q, math_.contract(p, k, v, "bnd,bne->bde", 1.0), "bmd,bde->bme")


def values_by_column(p: Program) -> Tensor:
    """Values that differ by the column of the key: the state is no product of two matrices."""
    state = math_.contract(p, p.argument([2, 12, 8]), p.argument([2, 12, 8, 10]), "bnd,bnde->bde")
    return math_.contract(p, p.argument([2, 9, 8]), state, "bmd,bde->bme")


def long_rows(p: Program) -> Tensor:
    """Keys and values of which not even a few fit beside the state."""
    return products(p, *factors(p, 2, 9, 12, 4, 2000))


OTHERS: dict[str, Build] = {
    "nonlinear_state": nonlinear_state,
    "state_is_a_result": state_is_a_result,
    "keys_of_a_weight": keys_of_a_weight,
    "one_matrix": one_matrix,
    "large_state": large_state,
    "state_from_something": state_from_something,
    "values_by_column": values_by_column,
    "long_rows": long_rows,
    "one_column": normalised(2, 6, 9, 1, 1),
    "one_key": normalised(2, 7, 1, 8, 8),
}
"""None of them is such an attention: with one column, or one key, there is nothing left to sum."""

PROGRAMS: dict[str, Build] = KERNELS | WITH_OTHERS | OTHERS


def build(name: str) -> Program:
    """The program of a name."""
    p = Program(name)
    p.results.append(PROGRAMS[name](p))
    return p


def texts(names: Sequence[str]) -> str:
    """Programs as one module."""
    return "\n".join(build(name).text() for name in names)
