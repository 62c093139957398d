"""Which kernels run in one launch, and that they compute the same there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import arithmetic as math_
from compiled import CompiledPrograms, cpu_vectors
from kernel_programs import weight
from program import Program, Tensor


def projections(p: Program) -> Tensor:
    """Three products of one tensor that are too large for a chain, and what needs all of them."""
    x = p.argument([160, 96])
    q, k, v = (math_.matmul(p, x, weight(p, [96, n])) for n in (40, 40, 56))
    return math_.matmul(p, math_.contract(p, q, k, "mk,nk->mn"), v)


def excitation(p: Program) -> Tensor:
    """Two small products one after the other."""
    hidden = math_.unary(p, math_.matmul(p, p.argument([1, 48]), weight(p, [48, 12])), "math.tanh")
    return math_.matmul(p, hidden, weight(p, [12, 48]))


def dependent_siblings(p: Program) -> Tensor:
    """The second product reads the first one's operand and adds the first's result, of the same row."""
    x = p.argument([96, 96])
    first = math_.matmul(p, x, weight(p, [96, 96]))
    return math_.binary(p, math_.matmul(p, x, weight(p, [96, 96])), first)


def read_twice(p: Program) -> Tensor:
    """Small products one after the other; the second kernel reads what the first computes in two ways."""
    first = math_.matmul(p, p.argument([1, 24]), weight(p, [24, 24]))
    second = math_.matmul(p, first, weight(p, [24, 24]))
    return math_.binary(p, second, first)


def seen_outside(p: Program) -> Tensor:
    """Small products one after the other, of which the first is also read by a kernel of another kind."""
    first = math_.matmul(p, p.argument([1, 24]), weight(p, [24, 24]))
    second = math_.matmul(p, first, weight(p, [24, 24]))
    return math_.binary(p, second, math_.softmax(p, first, 1))


def norm_and_product(p: Program) -> Tensor:
    """A norm in front of a small product, which its division is moved behind."""
    return math_.matmul(p, math_.layer_norm(p, p.argument([40, 40]), [1]), weight(p, [40, 16]))


def large_norms(p: Program) -> Tensor:
    """Two norms of one tensor whose rows together are more than the stack holds."""
    x = p.argument([6, 9000])
    return math_.binary(p, math_.layer_norm(p, x, [1]), math_.softmax(p, x, 1))


def feed_forward(p: Program) -> Tensor:
    """A norm, two products and a residual addition, and the next norm: row by row all the way."""
    x = p.argument([150, 64])
    hidden = math_.unary(p, math_.matmul(p, math_.layer_norm(p, x, [1]), weight(p, [64, 200])), "math.tanh")
    return math_.layer_norm(p, math_.binary(p, math_.matmul(p, hidden, weight(p, [200, 64])), x), [1])


def shared_rows(p: Program) -> Tensor:
    """A large product whose rows three others read, of which the last needs the other two as well."""
    x = math_.matmul(p, p.argument([200, 80]), weight(p, [80, 80]))
    a, b = (math_.matmul(p, x, weight(p, [80, 72])) for _ in range(2))
    return math_.binary(p, math_.binary(p, math_.matmul(p, x, weight(p, [80, 72])), a), b)


def rows_become_columns(p: Program) -> Tensor:
    """The second product sums over the rows of the first one."""
    first = math_.matmul(p, p.argument([120, 96]), weight(p, [96, 120]))
    return math_.contract(p, first, weight(p, [120, 80]), "km,kn->mn")


def rows_in_reverse(p: Program) -> Tensor:
    """Each row of the second product needs another row of the first one."""
    first = math_.matmul(p, p.argument([160, 96]), weight(p, [96, 96]))
    return math_.matmul(p, p.flip(first, 0), weight(p, [96, 80]))


def few_rows(p: Program) -> Tensor:
    """Two products of so few rows that workers must share their columns."""
    return math_.matmul(p, math_.matmul(p, p.argument([12, 400]), weight(p, [400, 1600])), weight(p, [1600, 400]))


def two_biases(p: Program) -> Tensor:
    """Two additions to one product, head by head, for a product that needs all of both: they join the first."""
    product = math_.matmul(p, p.argument([160, 64]), weight(p, [64, 96]))
    heads = p.expand(product, [[160], [4, 24]])
    left, right = (math_.binary(p, heads, weight(p, [4, 24]), "addf", [1, 2]) for _ in range(2))
    return math_.contract(p, left, right, "shd,thd->hst")


def padded_for_one(p: Program) -> Tensor:
    """A product that one reads with a border and another without: the padding joins the product."""
    product = math_.matmul(p, p.argument([120, 64]), weight(p, [64, 64]))
    image = p.expand(product, [[10, 12], [64]])
    normal = math_.layer_norm(p, p.pad(image, [1, 1, 0], [1, 1, 0]), [2])
    return math_.binary(p, p.slice(normal, [0, 0, 0], [10, 12, 64], [1, 1, 1]), image)


LAUNCHES: dict[Callable[[Program], Tensor], int] = {
    projections: 2,
    excitation: 1,
    dependent_siblings: 1,
    read_twice: 1,
    seen_outside: 2,
    norm_and_product: 1,
    large_norms: 2,
    feed_forward: 1,
    shared_rows: 1,
    rows_become_columns: 2,
    rows_in_reverse: 2,
    few_rows: 2,
    two_biases: 2,
    padded_for_one: 2,
}


def build(make: Callable[[Program], Tensor]) -> Program:
    program = Program(make.__name__)
    program.results.append(make(program))
    return program


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    folder = tmp_path_factory.mktemp("launches")
    return CompiledPrograms([build(make) for make in LAUNCHES], folder, cpu_vectors(8, 16), "paper")


@pytest.mark.parametrize("make", LAUNCHES)
def test_the_result_is_numpys(compiled: CompiledPrograms, make: Callable[[Program], Tensor]) -> None:
    program = build(make)
    for found, expected in zip(compiled.run(program), program.results, strict=True):
        np.testing.assert_allclose(found, expected.array, rtol=0, atol=2e-6 * np.abs(expected.array).max())


@pytest.mark.parametrize("make", LAUNCHES)
def test_launches(compiled: CompiledPrograms, make: Callable[[Program], Tensor]) -> None:
    body = re.search(rf"func\.func @{make.__name__}\(.*?\n  }}\n", compiled.lowered, re.DOTALL)
    assert body is not None
    assert body[0].count('"flow.dispatch"') == LAUNCHES[make]
