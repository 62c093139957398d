"""The layout verifier against NumPy: what it accepts is injective, what it refuses is not, extents are right."""

from __future__ import annotations

from itertools import permutations, product
from math import prod

import mlir.ir as ir
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_mlir.dialects import smartmem
from smartmem_mlir.ir import make_context

CONTEXT = make_context()


def evaluate(expr: ir.AffineExpr, grid: list[np.ndarray]) -> np.ndarray:
    """An affine expression on a grid of points, by NumPy."""
    if isinstance(expr, ir.AffineDimExpr):
        return grid[ir.AffineDimExpr(expr).position]
    if isinstance(expr, ir.AffineConstantExpr):
        return np.full_like(grid[0], ir.AffineConstantExpr(expr).value)
    binary = ir.AffineBinaryExpr(expr)
    lhs, rhs = evaluate(binary.lhs, grid), evaluate(binary.rhs, grid)
    if isinstance(expr, ir.AffineAddExpr):
        return lhs + rhs
    if isinstance(expr, ir.AffineMulExpr):
        return lhs * rhs
    if isinstance(expr, ir.AffineModExpr):
        return lhs % rhs
    if isinstance(expr, ir.AffineFloorDivExpr):
        return lhs // rhs
    assert isinstance(expr, ir.AffineCeilDivExpr)
    return -(-lhs // rhs)


def images(map: ir.AffineMap, shape: tuple[int, ...]) -> np.ndarray:
    """One row of physical coordinates for each point of the box."""
    grid = [axis.ravel() for axis in np.indices(shape)]
    return np.stack([evaluate(expr, grid) for expr in map.results], axis=1)


def verdict(map: ir.AffineMap, shape: tuple[int, ...]) -> str | None:
    """None when the layout verifies, else what the verifier says."""
    try:
        attr = smartmem.LayoutAttr.get(map, "buffer")
        ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(8), attr, loc=ir.Location.unknown())
    except ir.MLIRError as error:
        return error.error_diagnostics[0].message
    return None


def check_against_oracle(map: ir.AffineMap, shape: tuple[int, ...]) -> str | None:
    """Checks the verifier's answer; returns it."""
    answer, coordinates = verdict(map, shape), images(map, shape)
    if answer is not None and "is negative" in answer:
        assert coordinates.min() < 0
        return answer
    assert coordinates.min() >= 0
    is_injective = len(np.unique(coordinates, axis=0)) == prod(shape)
    if answer is None:
        assert is_injective, f"accepted {map} on {shape}"
        extents = smartmem.LayoutAttr.get(map, "buffer").physical_shape(shape)
        for i, expr in enumerate(map.results):
            if isinstance(expr, ir.AffineModExpr):
                assert extents[i] == ir.AffineConstantExpr(ir.AffineBinaryExpr(expr).rhs).value
            else:
                assert extents[i] == coordinates[:, i].max() + 1
    elif "is not injective" in answer:
        assert not is_injective, f"refused {map} on {shape}: {answer}"
        check_example(answer, map)
    else:
        assert "cannot prove" in answer or "cannot bound" in answer
    return answer


def check_example(answer: str, map: ir.AffineMap) -> None:
    """The two elements that a refusal names share a place."""
    if "elements [" not in answer:
        return
    first, second = (
        [int(i) for i in part.split("]")[0].split(",")] for part in answer.split("is not injective:")[1].split("[")[1:]
    )
    assert first != second
    for expr in map.results:
        a, b = (evaluate(expr, [np.array([i]) for i in point])[0] for point in (first, second))
        assert a == b


@pytest.mark.parametrize("rank", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("channels", [1, 3, 4, 5, 7, 13])
def test_packed_permutations(rank, channels):
    """Every order of the dimensions, each packed by 4 along each, with tails."""
    shape = (2, channels, 3, 1, 2, 2)[:rank]
    orders = list(permutations(range(rank)))
    with CONTEXT, ir.Location.unknown():
        for order in orders if rank < 6 else orders[::17]:
            for packed in range(rank):
                dims = [ir.AffineExpr.get_dim(i) for i in range(rank)]
                lane = ir.AffineExpr.get_mod(dims[packed], 4)
                outer = [ir.AffineExpr.get_floor_div(dims[i], 4) if i == packed else dims[i] for i in order]
                map = ir.AffineMap.get(rank, 0, [*outer, lane])
                assert check_against_oracle(map, shape) is None


@pytest.mark.parametrize("storage", ["texel_buffer", "image2d", "image2d_array", "image3d"])
@pytest.mark.parametrize("channels", [1, 3, 4, 5, 7, 13])
def test_texel_extents_hold_every_element(storage, channels):
    """Addresses computed from the documented rule stay inside the extents and differ."""
    shape = (2, channels, 3, 5)
    with CONTEXT, ir.Location.unknown():
        map = ir.AffineMapAttr(
            ir.Attribute.parse("affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4)>")
        ).value
        attr = smartmem.LayoutAttr.get(map, storage)
        coordinates, physical = images(map, shape), attr.physical_shape(shape)
        separate = {"texel_buffer": 0, "image2d": 1, "image2d_array": 2, "image3d": 2}[storage]
        texel = coordinates[:, :-1]
        split = texel.shape[1] - separate
        merged = np.ravel_multi_index(tuple(texel[:, :split].T), physical[:split])
        address = [*(texel[:, i] for i in range(texel.shape[1] - 1, split - 1, -1)), merged]
        extents = attr.texel_extents(shape)
        for axis, limit in zip(address, extents, strict=False):
            assert axis.max() < limit
        assert all(limit == 1 for limit in extents[len(address) :])
        full = np.stack([*address, coordinates[:, -1]], axis=1)
        assert len(np.unique(full, axis=0)) == prod(shape)


@st.composite
def maps_and_shapes(draw):
    """A quasi-affine map of up to 4 results on a box of up to 60,000 points."""
    rank = draw(st.integers(1, 3))
    limit = {1: 60_000, 2: 240, 3: 38}[rank]
    shape = tuple(draw(st.one_of(st.integers(1, 12), st.integers(1, limit))) for _ in range(rank))

    def linear(depth: int) -> ir.AffineExpr:
        expr = ir.AffineExpr.get_constant(draw(st.integers(0, 3)))
        for i in range(rank):
            factor = draw(st.sampled_from([0, 0, 1, 1, 1, 2, 3, 4, shape[-1], -1]))
            term = ir.AffineExpr.get_dim(i)
            if depth and draw(st.booleans()):
                term = digit(linear(depth - 1))
            expr = ir.AffineExpr.get_add(expr, ir.AffineExpr.get_mul(term, factor))
        return expr

    def digit(expr: ir.AffineExpr) -> ir.AffineExpr:
        build = draw(st.sampled_from([ir.AffineExpr.get_floor_div, ir.AffineExpr.get_mod, ir.AffineExpr.get_ceil_div]))
        return build(expr, draw(st.sampled_from([1, 2, 3, 4, 7, 8, 16])))

    results = []
    for _ in range(draw(st.integers(1, 2))):
        expr = linear(draw(st.integers(0, 1)))
        if draw(st.booleans()):  # both digits of it, as layouts have them
            base = draw(st.sampled_from([2, 3, 4, 8]))
            results += [ir.AffineExpr.get_floor_div(expr, base), ir.AffineExpr.get_mod(expr, base)]
        else:
            results.append(expr)
    return ir.AffineMap.get(rank, 0, results), shape


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.data())
def test_random_maps(data):
    with CONTEXT, ir.Location.unknown():
        map, shape = data.draw(maps_and_shapes())
        check_against_oracle(map, shape)


def test_digits_of_merged_dimensions_are_always_decided():
    """Row-major merge of two dimensions, split anew: proved for every extent, beyond what is enumerated."""
    with CONTEXT, ir.Location.unknown():
        for rows, columns, base in product([5, 64, 97], [49, 100, 257], [3, 16, 1000]):
            merged = ir.AffineExpr.get_add(
                ir.AffineExpr.get_mul(ir.AffineExpr.get_dim(0), columns), ir.AffineExpr.get_dim(1)
            )
            map = ir.AffineMap.get(
                2, 0, [ir.AffineExpr.get_floor_div(merged, base), ir.AffineExpr.get_mod(merged, base)]
            )
            assert check_against_oracle(map, (rows, columns)) is None
