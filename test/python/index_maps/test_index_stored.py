"""Weights that are stored as a view of another: what the archive holds is what the view says."""

from __future__ import annotations

import numpy as np
import pytest
from chains import Step, chains, execute, inputs_of
from hypothesis import assume, given, settings
from test_index_compose import composed

from smartmem_mlir.index_maps import Box, Fill, Piece, View, dim
from smartmem_mlir.iree import stored_parameters
from smartmem_mlir.iree.stored_parameters import evaluate_view


@settings(max_examples=250, deadline=None)
@given(chains(5))
def test_random_view_of_a_weight_equals_numpy(chain: list[Step]) -> None:
    assume(not any(step.extra for step in chain))
    view = composed(chain)
    assume(view is not None)
    assert view is not None
    (array,) = inputs_of(chain)
    np.testing.assert_array_equal(evaluate_view(view, array.astype(np.float32)), execute(chain, [array]))


def test_panels_with_a_tail_are_strided(monkeypatch: pytest.MonkeyPatch) -> None:
    """[panel, term, lane] of a matrix, zeros in the last panel's lanes; no address is computed one by one."""
    monkeypatch.setattr(stored_parameters, "_gather", lambda *_: pytest.fail("gathered"))
    panel, term, lane = dim(0), dim(1), dim(2)
    exprs = (term, panel * 4 + lane)
    pieces = [
        Piece(Box((0, 0, 0), (2, 3, 4)), 0, exprs),
        Piece(Box((2, 0, 0), (3, 3, 2)), 0, exprs),
        Piece(Box((2, 0, 2), (3, 3, 4)), Fill(0.0), ()),
    ]
    matrix = np.arange(30, dtype=np.float32).reshape(3, 10)
    padded = np.zeros((3, 12), np.float32)
    padded[:, :10] = matrix
    stored = evaluate_view(View.of((3, 3, 4), [(3, 10)], pieces), matrix)
    np.testing.assert_array_equal(stored, padded.reshape(3, 3, 4).transpose(1, 0, 2))


def test_varying_strides_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    gathers: list[Box] = []
    gather = stored_parameters._gather
    monkeypatch.setattr(stored_parameters, "_gather", lambda *a: (gathers.append(a[2]), gather(*a)))
    view = View.mapped((6, 4), (4, 3, 2), (dim(1), dim(0) % 3, dim(0) // 3))
    array = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    np.testing.assert_array_equal(evaluate_view(view, array), array.transpose(2, 1, 0).reshape(6, 4))
    assert len(gathers) == 1


def test_reversed_and_repeated_elements() -> None:
    view = View.mapped((3, 5), (5,), (4 - dim(1),))
    array = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(evaluate_view(view, array), np.broadcast_to(array[::-1], (3, 5)))
