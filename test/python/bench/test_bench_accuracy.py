"""What counts as right, and the summaries of times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smartmem_mlir.bench.accuracy import compare
from smartmem_mlir.bench.results import Accuracy
from smartmem_mlir.bench.timing import format_ms, geometric_mean, percentile

REFERENCE = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 2, 3, 4)


def test_equal_outputs_have_no_distance() -> None:
    assert compare([REFERENCE], [REFERENCE]) == Accuracy(relative_l2=0.0, max_abs=0.0)


def test_the_distance_is_relative_and_the_worst_output_counts() -> None:
    found = compare([REFERENCE, REFERENCE * 1.25], [REFERENCE, REFERENCE])
    assert found.relative_l2 == pytest.approx(0.25)
    assert found.max_abs == pytest.approx(0.25)
    assert found.within(0.3)
    assert not found.within(0.2)


def test_dropped_ones_and_narrowed_integers_are_no_error() -> None:
    indices = np.arange(3, dtype=np.int64)
    found = compare([REFERENCE[0], indices.astype(np.int32)], [REFERENCE, indices])
    assert found.within(0.0)


@pytest.mark.parametrize(
    ("outputs", "problem"),
    [
        ([], "0 outputs, the model has 1"),
        ([REFERENCE.transpose(0, 1, 3, 2)], "shape"),
        ([REFERENCE.reshape(1, 6, 4)], "shape"),
        ([np.where(REFERENCE > 0, np.nan, REFERENCE)], "not finite"),
        ([np.where(REFERENCE > 0, np.inf, REFERENCE)], "not finite"),
    ],
)
def test_what_cannot_be_compared_is_wrong(outputs: list[np.ndarray], problem: str) -> None:
    found = compare(outputs, [REFERENCE])
    assert problem in (found.problem or "")
    assert not found.within(math.inf)


def test_a_permutation_of_equal_extents_is_far_off() -> None:
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    assert not compare([square.T], [square]).within(0.1)


def test_equal_infinities_are_no_difference() -> None:
    masked = np.array([0.0, -np.inf, 1.0], np.float32)
    assert compare([masked], [masked]).within(0.0)


def test_noise_where_the_reference_is_zero_is_wrong() -> None:
    zeros = np.zeros(3, np.float32)
    assert compare([zeros], [zeros]).within(0.0)
    assert not compare([zeros + 1e-9], [zeros]).within(1.0)


def test_no_distance_is_the_worst_distance() -> None:
    good, bad = Accuracy(relative_l2=0.1, max_abs=1.0), Accuracy(relative_l2=None, max_abs=None, problem="shape")
    assert bad.worse_than(good)
    assert not good.worse_than(bad)
    assert not bad.worse_than(bad)


def test_percentiles_interpolate_as_numpy_does() -> None:
    values = [5.0, 1.0, 4.0, 2.5]
    for percent in (0, 5, 50, 95, 100):
        assert percentile(values, percent) == pytest.approx(float(np.percentile(values, percent)))
    assert percentile([3.0], 95) == 3.0


def test_the_geometric_mean_of_a_ratio_and_its_inverse_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)


def test_times_are_never_in_scientific_notation() -> None:
    assert [format_ms(v) for v in (0.012345, 9.87654, 123.456, 1999.4, 123456.7)] == [
        "0.01235",
        "9.877",
        "123.5",
        "1999",
        "123457",
    ]
    assert format_ms(1310.0, 3) == "1310"
