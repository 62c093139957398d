"""Chains of movement operators compose to the view that NumPy executes, in bounded time and size."""

from __future__ import annotations

import random
import time
from itertools import takewhile
from math import prod

import numpy as np
import pytest
from chains import Step, chains, execute, factorisations, inputs_of, shapes
from hypothesis import event, given, settings
from hypothesis import strategies as st

from smartmem_mlir.index_maps import (
    Box,
    ExpressionLimitExceeded,
    Fill,
    IndexMapError,
    NotInvertibleError,
    Piece,
    PieceLimitExceeded,
    View,
    apply,
    compose,
    dim,
    dims,
    invert,
    movement,
    movement_windows,
)
from smartmem_mlir.index_maps.expr import term_count
from smartmem_mlir.index_maps.isl import prove_chain, prove_views_equal
from smartmem_mlir.index_maps.merge import merge_pieces, split_wraps
from smartmem_mlir.index_maps.preimage import preimage


def composed(chain: list[Step]) -> View | None:
    """The whole chain as one view, or None where composition refuses."""
    view = chain[0].view
    try:
        for step in chain[1:]:
            view = compose(step.view, view)
    except (PieceLimitExceeded, ExpressionLimitExceeded):
        return None
    return view


@settings(max_examples=250, deadline=None)
@given(chains(8))
def test_random_chain_equals_numpy(chain: list[Step]) -> None:
    view = composed(chain)
    event(f"length {len(chain)}, {'refused' if view is None else 'composed'}")
    if view is None:
        return
    arrays = inputs_of(chain)
    np.testing.assert_array_equal(apply(view, arrays), execute(chain, arrays), err_msg=str([s.name for s in chain]))
    view.check_cover()
    view.check_bounds()


def test_refusals_are_rare() -> None:
    """At most one chain in fifty is refused; counted on a fixed sample."""
    refused: list[bool] = []

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(chains(8))
    def count(chain: list[Step]) -> None:
        refused.append(composed(chain) is None)

    count()
    assert sum(refused) * 50 <= len(refused)


@settings(max_examples=60, deadline=None)
@given(chains(5))
def test_random_chain_is_proved_by_isl(chain: list[Step]) -> None:
    """The relations of the single operators, joined by ISL, are the composed view's relation."""
    view = composed(chain)
    if view is not None:
        views = [step.view for step in reversed(chain)]
        assert prove_chain(views, [0] * (len(views) - 1), view)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_reshapes_of_reshapes_are_no_longer_than_one_reshape(data: st.DataObject) -> None:
    """Whatever the factors in between, only the first and the last shape count."""
    first = shape = data.draw(shapes())
    view = View.identity(shape)
    for _ in range(3):
        new = data.draw(factorisations(prod(shape)))
        view, shape = compose(movement.reshape(shape, new), view), new
    direct = movement.reshape(first, shape)
    assert term_count(view.pieces[0].exprs) <= term_count(direct.pieces[0].exprs)
    assert prove_views_equal(view, direct)


@settings(max_examples=100, deadline=None)
@given(chains(6))
def test_composition_order_does_not_matter(chain: list[Step]) -> None:
    """Folding the consumers first or the producers first gives the same function."""
    forward = composed(chain)
    try:
        backward = chain[-1].view
        for step in reversed(chain[:-1]):
            backward = compose(backward, step.view)
    except (PieceLimitExceeded, ExpressionLimitExceeded):
        return
    if forward is not None:
        assert prove_views_equal(forward, backward)


SPLITS = {"transpose", "unsqueeze", "collapse", "expand", "flip"}
NO_RESHAPE = {"transpose", "unsqueeze", "flip", "roll"}


def leading(chain: list[Step], names: set[str]) -> list[Step]:
    """The chain up to the first operator of another name."""
    return list(takewhile(lambda step: step.name.split()[0] in names, chain))


def check_inverse(chain: list[Step], view: View, back: View) -> None:
    x = inputs_of(chain)[0]
    np.testing.assert_array_equal(apply(back, [apply(view, [x])]), x)
    np.testing.assert_array_equal(apply(view, [apply(back, [execute(chain, [x])])]), execute(chain, [x]))
    assert prove_views_equal(compose(back, view), View.identity(x.shape))


@pytest.mark.parametrize("names", [SPLITS, NO_RESHAPE, {"reshape"}], ids=["splits", "no reshape", "reshapes"])
def test_inverse_always_exists_within_one_kind(names: set[str]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(chains(6, bijective=True).map(lambda chain: leading(chain, names)).filter(bool))
    def check(chain: list[Step]) -> None:
        view = composed(chain)
        assert view is not None
        check_inverse(chain, view, invert(view))

    check()


def test_inverse_of_a_bijective_chain_is_right_or_refused() -> None:
    """Reshapes whose factors do not line up, mixed with other operators, may be out of reach; few are."""
    refused: list[bool] = []

    @settings(max_examples=120, deadline=None, derandomize=True, database=None)
    @given(chains(6, bijective=True))
    def check(chain: list[Step]) -> None:
        view = composed(chain)
        if view is None:
            return
        try:
            back = invert(view)
        except NotInvertibleError:
            refused.append(True)
        else:
            refused.append(False)
            check_inverse(chain, view, back)

    check()
    assert sum(refused) * 20 <= len(refused)


@pytest.mark.parametrize(
    "view",
    [
        movement.slice_((6,), (0,), (3,)),
        movement.tile((3,), (2,)),
        movement_windows.pad((3,), (1,), (0,)),
        movement.concat([(2,), (3,)], 0),
        View.mapped((4,), (4,), (dim(0) % 2 * 2,)),
    ],
)
def test_views_without_an_inverse(view: View) -> None:
    with pytest.raises(NotInvertibleError):
        invert(view)


def test_inverse_of_several_pieces() -> None:
    view = split_wraps(movement.roll((7, 3), (2,), (0,)))
    assert len(view.pieces) == 2
    assert prove_views_equal(invert(view), movement.roll((7, 3), (-2,), (0,)))


def grow(shape: tuple[int, ...], steps: int, make: object) -> tuple[View, int, float]:
    """`(view, largest number of terms on the way, seconds)` of a long chain."""
    view, largest, start = View.identity(shape), 0, time.process_time()
    for step in range(steps):
        view = compose(make(step, view.shape), view)  # type: ignore[operator]
        largest = max(largest, *(term_count(piece.exprs) for piece in view.pieces))
    return view, largest, time.process_time() - start


def test_a_thousand_reshapes_and_transposes_stay_small() -> None:
    """Eight digits regrouped and permuted at random: never more than three terms a digit, whatever the length."""
    digits = [2, 8, 7, 8, 7, 3, 4, 8]
    rng = random.Random(7)
    order = list(range(len(digits)))
    groups: list[list[int]] = []

    def make(step: int, shape: tuple[int, ...]) -> View:
        nonlocal order, groups
        if step % 2 == 0:
            rest, groups = list(order), []
            while rest:
                count = rng.randint(1, 3)
                groups.append(rest[:count])
                rest = rest[count:]
            return movement.reshape(shape, [prod(digits[d] for d in group) for group in groups])
        axes = rng.sample(range(len(groups)), len(groups))
        groups = [groups[axis] for axis in axes]
        order = [d for group in groups for d in group]
        return movement.transpose(shape, axes)

    view, largest, seconds = grow(tuple(digits), 1000, make)
    assert len(view.pieces) == 1
    assert largest <= 3 * len(digits)
    assert seconds < 20
    x = np.arange(prod(digits)).reshape(digits)
    expected = x.transpose(order).reshape(view.shape)
    np.testing.assert_array_equal(apply(view, [x]), expected)


def test_a_thousand_swin_steps_are_the_identity() -> None:
    image, window = (1, 56, 56, 96), (7, 7)
    cycle = [
        movement.roll(image, (-3, -3), (1, 2)),
        movement_windows.window_partition(image, window),
        movement_windows.window_reverse(image, window),
        movement.roll(image, (3, 3), (1, 2)),
    ]
    view, largest, seconds = grow(image, 1000, lambda step, _: cycle[step % 4])
    assert view == View.identity(image)
    assert largest <= 12
    assert seconds < 20


def test_factors_that_do_not_line_up_are_refused_early() -> None:
    """Reading a transposed 12x18 as 12x18 again shuffles with period 17; the expressions grow until refused."""
    start = time.process_time()
    with pytest.raises(ExpressionLimitExceeded, match="do not line up"):
        grow(
            (12, 18),
            1000,
            lambda step, shape: movement.reshape(shape, (12, 18)) if step % 2 else movement.transpose(shape, (1, 0)),
        )
    assert time.process_time() - start < 10


def test_pieces_that_explode_are_refused_quickly() -> None:
    """A concat of columns, flattened, is read in one stripe a row."""
    columns = movement.concat([(4096, 3), (4096, 5)], 1)
    start = time.process_time()
    with pytest.raises(PieceLimitExceeded):
        compose(movement.reshape((4096, 8), (4096 * 8,)), columns)
    assert time.process_time() - start < 5


def test_pieces_are_refused_quickly_for_huge_extents() -> None:
    n = 2**31
    columns = movement.concat([(n, 3), (n, 5)], 1)
    start = time.process_time()
    with pytest.raises(PieceLimitExceeded):
        compose(movement.reshape((n, 8), (n * 8,)), columns)
    assert time.process_time() - start < 5


def test_a_limit_can_be_set() -> None:
    columns = movement.concat([(6, 3), (6, 5)], 1)
    flat = movement.reshape((6, 8), (48,))
    assert len(compose(flat, columns).pieces) == 12
    with pytest.raises(PieceLimitExceeded, match="more than 8"):
        compose(flat, columns, max_pieces=8)


def test_flattening_and_opening_again_leaves_no_trace() -> None:
    columns = movement.concat([(6, 3), (6, 5)], 1)
    flat = compose(movement.reshape((6, 8), (48,)), columns)
    assert compose(movement.reshape((48,), (6, 8)), flat) == columns


def test_concat_of_the_parts_is_the_whole() -> None:
    shape = (4, 9, 2)
    parts = movement.split(shape, (2, 3, 4), 1)
    view = movement.concat([part.shape for part in parts], 1)
    for operand, part in enumerate(parts):
        view = compose(view, part, operand)
    shared, kept = view.share_operands(["x", "x", "x"])
    assert kept == (0,)
    merged = merge_pieces(shared)
    assert merged.is_identity()
    assert len(merged.pieces) == 1


def test_operands_take_the_place_of_the_one_they_produce() -> None:
    outer = movement.concat([(1,), (2,), (3,)], 0)
    inner = movement.concat([(1,), (1,)], 0)
    view = compose(outer, inner, 1)
    assert view.operands == ((1,), (1,), (1,), (3,))
    arrays = [np.array([10]), np.array([20]), np.array([30]), np.array([40, 41, 42])]
    np.testing.assert_array_equal(apply(view, arrays), [10, 20, 30, 40, 41, 42])


def test_unread_operands_are_dropped() -> None:
    view = movement.concat([(2,), (3,)], 0).restrict(Box((2,), (5,)))
    assert view.share_operands(["a", "b"]) == (View.identity((3,)), (1,))


@settings(max_examples=60, deadline=None)
@given(chains(4), st.data())
def test_restriction_is_a_slice(chain: list[Step], data: st.DataObject) -> None:
    view = composed(chain)
    if view is None or view.box.is_empty:
        return
    lo = tuple(data.draw(st.integers(0, n - 1)) for n in view.shape)
    hi = tuple(data.draw(st.integers(a + 1, n)) for a, n in zip(lo, view.shape, strict=True))
    arrays = inputs_of(chain)
    expected = execute(chain, arrays)[tuple(slice(a, b) for a, b in zip(lo, hi, strict=True))]
    np.testing.assert_array_equal(apply(view.restrict(Box(lo, hi)), arrays), expected)


@pytest.mark.parametrize("shift", [1, 3, -2, 6])
def test_split_wraps_turns_a_roll_into_ranges(shift: int) -> None:
    view = movement.roll((7, 5), (shift, 1), (0, 1))
    ranges = split_wraps(view)
    assert len(ranges.pieces) == 4
    assert not any("mod" in str(piece.map) for piece in ranges.pieces)
    assert prove_views_equal(ranges, view)


def test_split_wraps_leaves_digits_alone() -> None:
    view = movement.tile((7,), (4,))
    assert split_wraps(view) == view


def test_preimage_of_a_staircase() -> None:
    from smartmem_mlir.index_maps import IndexMap

    index_map = IndexMap.of((8, 7), (dim(0) * 7 + dim(1),))
    found = preimage(index_map, Box((10,), (53,)))
    inside = {p for box in found for p in np.ndindex(*box.extents) for p in [tuple(np.add(p, box.lo))]}
    assert inside == {(i, j) for i in range(8) for j in range(7) if 10 <= 7 * i + j < 53}
    assert len(found) == 3


def test_malformed_views_are_refused() -> None:
    box = Box.of((2, 2))
    with pytest.raises(IndexMapError, match="exactly once"):
        View.of((2, 3), [(2, 2)], [Piece(box, 0, dims(2))])
    with pytest.raises(IndexMapError, match="overlaps"):
        View.of((2, 2), [(2, 2)], [Piece(box.with_axis(0, 0, 1), 0, dims(2))] * 2)
    with pytest.raises(IndexMapError, match="outside"):
        View.of((2,), [(9,)], [Piece(Box((1,), (3,)), 0, dims(1))])
    with pytest.raises(IndexMapError, match="operand 1 of 1"):
        View.of((2, 2), [(2, 2)], [Piece(box, 1, dims(2))])
    with pytest.raises(IndexMapError, match="rank 2 with 1"):
        View.of((2, 2), [(2, 2)], [Piece(box, 0, dims(1))])
    with pytest.raises(IndexMapError, match="fill has no"):
        View.of((2, 2), [], [Piece(box, Fill(0.0), dims(1))])
    with pytest.raises(IndexMapError, match="dimension that the result does not have"):
        View.mapped((2,), (2,), (dim(1),))
    with pytest.raises(IndexMapError, match=r"reads \[1:5\]"):
        View.mapped((4,), (4,), (dim(0) + 1,)).check_bounds()
    with pytest.raises(IndexMapError, match="not of shape"):
        compose(View.identity((3,)), View.identity((4,)))


def test_the_oracle_refuses_what_it_would_have_to_invent() -> None:
    """NumPy would read index -1 from the end, write overlaps twice and leave gaps uninitialised."""
    x = np.arange(4)
    with pytest.raises(IndexMapError, match=r"reads \[-1, 2\] of 4"):
        apply(View.mapped((4,), (4,), (dim(0) - 1,)), [x])
    with pytest.raises(IndexMapError, match=r"reads \[1, 4\] of 4"):
        apply(View.mapped((4,), (4,), (dim(0) + 1,)), [x])
    piece = Piece(Box((0,), (2,)), 0, dims(1))
    with pytest.raises(IndexMapError, match="overlaps"):
        apply(View((4,), ((4,),), (piece, piece)), [x])
    with pytest.raises(IndexMapError, match="do not cover"):
        apply(View((4,), ((4,),), (piece,)), [x])
    with pytest.raises(IndexMapError, match="for operands"):
        apply(View.identity((4,)), [np.arange(5)])


def test_fills_compare_by_type_and_value() -> None:
    assert Fill(float("nan")) == Fill(float("nan"))
    assert Fill(0.0) != Fill(-0.0)
    assert Fill(1) != Fill(1.0)
    assert Fill(True) != Fill(1)
