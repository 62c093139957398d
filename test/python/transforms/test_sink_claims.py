"""What sink-views records about the operations that it reorders is proved, and a wrong order is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mlir import ir

from smartmem_mlir.index_maps.evidence import check_rewrites
from smartmem_mlir.index_maps.expr import dim
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms import sink_views
from smartmem_mlir.transforms.evidence import Evidence, recording
from smartmem_mlir.transforms.registry import run_pipeline
from smartmem_mlir.transforms.reordering import Order, order_of
from smartmem_mlir.transforms.structured import StructuredOp

LIT = Path(__file__).resolve().parents[2] / "transforms" / "sink-views"
CASES = {"residual_of_windows": "", "feed_forward": "", "reshapes": "{reshapes=true}"}


def _recorded(case: str) -> Evidence:
    with make_context():
        module = ir.Module.parse((LIT / f"{case}.mlir").read_text())
        with recording() as evidence:
            run_pipeline(module, f"builtin.module(smartmem-sink-views{CASES[case]})")
        return evidence


@pytest.mark.parametrize("case", CASES)
def test_every_claim_is_proved(case: str) -> None:
    rewrites = _recorded(case).rewrites
    # A read of each input and the write of the result.
    assert len(rewrites) >= 3
    assert check_rewrites(rewrites) == []


def test_a_result_in_the_wrong_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreversed(op: StructuredOp, number: int, view: View) -> Order | None:
        order = order_of(op, number, view)
        if order is None:
            return None
        shape = order.result_view.shape
        return replace(order, result_view=View.mapped(shape, shape, [dim(i) for i in range(len(shape))]))

    monkeypatch.setattr(sink_views, "order_of", unreversed)
    assert check_rewrites(_recorded("feed_forward").rewrites) != []
