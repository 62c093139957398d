"""Random tensors are the same everywhere and forever, and distributed as asked."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from smartmem_mlir.zoo import draw
from smartmem_mlir.zoo.draw import Draw, spread

DIGEST = "845bd02b720e9d2a8f0af58af648a5607e1eb6c32247d8de9bcb42be69e46c16"


def test_values_never_change() -> None:
    """Committed references depend on these bits; a change of NumPy or of ours must show here first."""
    values = Draw("layers.0.weight", (3, 5), -1.0, 1.0, seed=0).values()
    assert values.dtype == np.float32
    assert hashlib.sha256(values.astype("<f4").tobytes()).hexdigest() == DIGEST


def test_depends_on_key_and_seed_alone() -> None:
    first = Draw("a", (8,), 0, 1, seed=1).values()
    np.testing.assert_array_equal(first, Draw("a", (8,), 0, 1, seed=1).values())
    assert not np.array_equal(first, Draw("b", (8,), 0, 1, seed=1).values())
    assert not np.array_equal(first, Draw("a", (8,), 0, 1, seed=2).values())


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Draw("a", (103,), 0, 1).values()
    monkeypatch.setattr(draw, "_CHUNK", 10)
    np.testing.assert_array_equal(Draw("a", (103,), 0, 1).values(), whole)


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_odd_and_empty_counts(count: int) -> None:
    assert Draw("a", (count,), 0, 1).values().shape == (count,)


def test_mean_and_deviation() -> None:
    values = Draw("a", (100_000,), *spread(0.3, mean=2.0)).values()
    assert values.mean() == pytest.approx(2.0, abs=0.01)
    assert values.std() == pytest.approx(0.3, rel=0.01)


def test_integers_cover_the_range_without_its_end() -> None:
    values = Draw("ids", (1000,), 3, 7, dtype="int64").values()
    assert values.dtype == np.int64
    assert set(values.tolist()) == {3, 4, 5, 6}
