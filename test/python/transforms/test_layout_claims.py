"""What the choice of layouts and shared borders claim is proved, and a wrong order or border is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlir import ir

from smartmem_mlir.index_maps.evidence import Rewrite, check_rewrites
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms import select_layouts, share_borders
from smartmem_mlir.transforms.evidence import recording
from smartmem_mlir.transforms.registry import run_pipeline

LIT = Path(__file__).resolve().parents[2] / "transforms"
CASES = [
    ("select-layouts/convolutions.mlir", "smartmem-select-layouts{layouts=paper}"),
    ("share-borders/residual.mlir", "smartmem-share-borders"),
    ("share-borders/normalisation.mlir", "smartmem-share-borders{rows=true}"),
]


def recorded(file: str, pipeline: str) -> list[Rewrite]:
    with make_context():
        module = ir.Module.parse((LIT / file).read_text())
        with recording() as evidence:
            run_pipeline(module, f"builtin.module({pipeline})")
    return evidence.rewrites


@pytest.mark.parametrize(("file", "pipeline"), CASES)
def test_every_claim_is_proved(file: str, pipeline: str) -> None:
    rewrites = recorded(file, pipeline)
    assert rewrites
    assert check_rewrites(rewrites) == []


def test_a_wrong_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = select_layouts.access_view

    def wrong(extents: tuple[int, ...], shape: tuple[int, ...], access: tuple[object, ...]) -> View:
        return right(extents, shape, access[::-1] if len(set(shape)) > 1 else access)

    monkeypatch.setattr(select_layouts, "access_view", wrong)
    assert check_rewrites(recorded(*CASES[0])) != []


def test_a_wrong_border_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = share_borders._surround
    monkeypatch.setattr(share_borders, "_surround", lambda shape, low, high, fill: right(shape, low, high, fill + 1.0))
    assert check_rewrites(recorded(*CASES[1])) != []
