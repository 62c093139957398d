"""What layouts, shared borders and gathers claim is proved; a wrong order, border, image or position is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlir import ir

from smartmem_mlir.index_maps.evidence import Rewrite, check_rewrites
from smartmem_mlir.index_maps.expr import dim
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms import gather_sources, select_layouts, share_borders
from smartmem_mlir.transforms.evidence import recording
from smartmem_mlir.transforms.registry import run_pipeline

LIT = Path(__file__).resolve().parents[2] / "transforms"
CASES = [
    ("select-layouts/convolutions.mlir", "smartmem-select-layouts{layouts=paper}"),
    ("share-borders/residual.mlir", "smartmem-share-borders"),
    ("share-borders/normalisation.mlir", "smartmem-share-borders{rows=true}"),
    ("share-borders/tokens.mlir", "smartmem-share-borders"),
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


def test_a_wrong_image_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = share_borders._Image.unfold
    monkeypatch.setattr(share_borders._Image, "unfold", lambda image: turned(image.shape).compose(right(image)))
    assert check_rewrites(recorded(*CASES[3])) != []


def turned(shape: tuple[int, ...]) -> View:
    """The image upside down, which has the same shape."""
    last = shape[0] - 1
    return View.mapped(shape, shape, [dim(0) * -1 + last, *(dim(axis) for axis in range(1, len(shape)))])


def test_a_gather_at_a_wrong_position_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = ("fold-views/gather_source.mlir", "smartmem-fold-views")
    # Read back from the IR, right positions are the view itself, which leaves nothing to prove.
    assert check_rewrites(recorded(*case)) == []
    right = gather_sources.index_value
    monkeypatch.setattr(gather_sources, "index_value", lambda expr, indices: right(expr, indices[::-1]))
    assert check_rewrites(recorded(*case)) != []
