"""What passes record: node names survive, every claim is proved, and a rewrite that is wrong is found and named."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import arithmetic as math_
import pytest
from case_programs import build
from hypothesis import HealthCheck, given, settings
from mlir import ir
from program import Program
from random_graphs import programs
from test_differential import PIPELINES

from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.evidence import Failure, check_rewrites, dump_rewrites, parse_rewrites
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms import absorb_views, access_folding, compose_views, hoist_views, raise_views, sink_scales
from smartmem_mlir.transforms import recompute_elementwise as recompute
from smartmem_mlir.transforms.evidence import Evidence, current_evidence, recording
from smartmem_mlir.transforms.registry import run_pipeline

ROW_NORM = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @f(%x: tensor<6x6x4xf32>, %w: tensor<8x4xf32>, %mean: tensor<36xf32>, %start: tensor<36xf32>)
    -> tensor<6x6x8xf32> {
  %a = tensor.extract_slice %x[1, 0, 0] [5, 6, 4] [1, 1, 1] : tensor<6x6x4xf32> to tensor<5x6x4xf32> loc("tail")
  %b = tensor.extract_slice %x[0, 0, 0] [1, 6, 4] [1, 1, 1] : tensor<6x6x4xf32> to tensor<1x6x4xf32> loc("head")
  %r = tensor.concat dim(0) %a, %b : (tensor<5x6x4xf32>, tensor<1x6x4xf32>) -> tensor<6x6x4xf32> loc("roll")
  %s = tensor.expand_shape %r [[0, 1], [2, 3], [4]] output_shape [2, 3, 2, 3, 4]
      : tensor<6x6x4xf32> into tensor<2x3x2x3x4xf32> loc("split")
  %e5 = tensor.empty() : tensor<2x2x3x3x4xf32>
  %t = linalg.transpose ins(%s : tensor<2x3x2x3x4xf32>) outs(%e5 : tensor<2x2x3x3x4xf32>) permutation = [0, 2, 1, 3, 4]
      loc("partition")
  %rows = tensor.collapse_shape %t [[0, 1, 2, 3], [4]] : tensor<2x2x3x3x4xf32> into tensor<36x4xf32> loc("rows")
  %e = tensor.empty() : tensor<36x4xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%rows, %mean : tensor<36x4xf32>, tensor<36xf32>) outs(%e : tensor<36x4xf32>) {
  ^bb0(%p: f32, %m: f32, %o: f32):
    %v = arith.subf %p, %m : f32
    linalg.yield %v : f32
  } -> tensor<36x4xf32> loc("center")
  %q = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<36x4xf32>) outs(%start : tensor<36xf32>) {
  ^bb0(%p: f32, %o: f32):
    %v = arith.addf %p, %o : f32
    linalg.yield %v : f32
  } -> tensor<36xf32> loc("sum")
  %n = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d, %q : tensor<36x4xf32>, tensor<36xf32>) outs(%e : tensor<36x4xf32>) {
  ^bb0(%p: f32, %m: f32, %o: f32):
    %v = arith.mulf %p, %m : f32
    linalg.yield %v : f32
  } -> tensor<36x4xf32> loc("scale")
  %ew = tensor.empty() : tensor<4x8xf32>
  %wt = linalg.transpose ins(%w : tensor<8x4xf32>) outs(%ew : tensor<4x8xf32>) permutation = [1, 0] loc("weight")
  %zero = arith.constant 0.0 : f32
  %em = tensor.empty() : tensor<36x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%em : tensor<36x8xf32>) -> tensor<36x8xf32>
  %mm = linalg.matmul ins(%n, %wt : tensor<36x4xf32>, tensor<4x8xf32>) outs(%fill : tensor<36x8xf32>)
      -> tensor<36x8xf32> loc("product")
  %back = tensor.expand_shape %mm [[0, 1, 2, 3], [4]] output_shape [2, 2, 3, 3, 8]
      : tensor<36x8xf32> into tensor<2x2x3x3x8xf32> loc("unrows")
  %e6 = tensor.empty() : tensor<2x3x2x3x8xf32>
  %u = linalg.transpose ins(%back : tensor<2x2x3x3x8xf32>) outs(%e6 : tensor<2x3x2x3x8xf32>)
      permutation = [0, 2, 1, 3, 4] loc("unpartition")
  %0 = tensor.collapse_shape %u [[0, 1], [2, 3], [4]] : tensor<2x3x2x3x8xf32> into tensor<6x6x8xf32> loc("unsplit")
  return %0 : tensor<6x6x8xf32>
}
"""
"""Windows of a rolled image, centred and scaled by row, times a transposed weight, and back to an image."""
NODES = {"tail", "head", "roll", "split", "partition", "rows", "weight", "unrows", "unpartition", "unsplit"}


def record(text: str, pipeline: str) -> Evidence:
    with make_context(), recording() as evidence:
        run_pipeline(ir.Module.parse(text), PIPELINES[pipeline].text())
    return evidence


def failures(evidence: Evidence) -> list[Failure]:
    return check_rewrites(parse_rewrites(dump_rewrites(evidence.rewrites)))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_movement_is_accounted_for_and_every_claim_is_true(pipeline: str) -> None:
    evidence = record(ROW_NORM, pipeline)
    assert failures(evidence) == []
    settled = {node for fate in evidence.fates if fate.how != "raised" for node in fate.nodes}
    assert settled >= NODES
    read = {fate.nodes: fate.operators for fate in evidence.fates if fate.how in ("read", "written")}
    assert read["weight",] == ("product",)
    assert current_evidence() is None


def test_nobody_records_by_default() -> None:
    with make_context():
        run_pipeline(ir.Module.parse(ROW_NORM), PIPELINES["default"].text())
    assert current_evidence() is None


def shifted(exprs: Any) -> Any:
    """An access with its first index that depends on anything turned by one."""
    at = next((i for i, expr in enumerate(exprs) if expr.dims), None)
    return exprs if at is None else (*exprs[:at], exprs[at] + 1, *exprs[at + 1 :])


def wrong_view(view: View) -> View:
    """The view with its reads off by one."""
    return View(
        view.shape,
        view.operands,
        tuple(type(p)(p.box, p.source, shifted(p.exprs)) if p.exprs else p for p in view.pieces),
    )


def broken_compose(monkeypatch: pytest.MonkeyPatch) -> None:
    right = compose_views._compose
    monkeypatch.setattr(compose_views, "_compose", lambda *a: (found := right(*a)) and wrong_view(found))


def broken_unification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose_views, "unify_pieces", wrong_view)


def broken_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    right = raise_views.as_view
    monkeypatch.setattr(raise_views, "as_view", lambda op: (f := right(op)) and (wrong_view(f[0]), f[1]))


def broken_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    right = access_folding._digits_read
    monkeypatch.setattr(access_folding, "_digits_read", lambda *a: wrong_view(right(*a)))


def broken_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two axes of equal extent change places: the access still has strides."""
    right = access_folding.inverse

    def swapped(index_map: IndexMap, box: Box) -> IndexMap:
        exprs = list(right(index_map, box).exprs)
        extents = index_map.domain.extents
        i, j = next((i, j) for i in range(len(exprs)) for j in range(i) if extents[i] == extents[j])
        exprs[i], exprs[j] = exprs[j], exprs[i]
        return IndexMap(box, tuple(exprs))

    monkeypatch.setattr(access_folding, "inverse", swapped)


def broken_hoist(monkeypatch: pytest.MonkeyPatch) -> None:
    right = hoist_views.simplify_exprs
    monkeypatch.setattr(hoist_views, "simplify_exprs", lambda exprs, box: shifted(right(exprs, box)))


def broken_recomputation(monkeypatch: pytest.MonkeyPatch) -> None:
    right = recompute.simplify_exprs
    monkeypatch.setattr(recompute, "simplify_exprs", lambda exprs, box: tuple(reversed(right(exprs, box))))


def broken_absorption(monkeypatch: pytest.MonkeyPatch) -> None:
    right = absorb_views.read_element
    monkeypatch.setattr(
        absorb_views,
        "read_element",
        lambda view, *rest: right(wrong_view(view) if len(view.pieces) == 1 else view, *rest),
    )


def broken_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sink_scales.simplify_exprs
    monkeypatch.setattr(sink_scales, "simplify_exprs", lambda exprs, box: tuple(e // 2 for e in right(exprs, box)))


def square_heads() -> str:
    """A product whose result is stored by heads: [4, 3*3] as [3, 4, 3]."""
    p = Program()
    product = math_.matmul(p, p.argument([3, 5]), p.argument([5, 9]))
    p.results.append(math_.unary(p, p.transpose(p.expand(product, [[3], [3, 3]]), [1, 0, 2])))
    return p.text()


BROKEN: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str, Callable[[], str]]] = {
    "compose": (broken_compose, "smartmem-compose-views", lambda: ROW_NORM),
    "unify": (broken_unification, "smartmem-compose-views", lambda: ROW_NORM),
    "raise": (broken_definition, "smartmem-raise-views", lambda: ROW_NORM),
    "digits": (broken_digits, "smartmem-fold-views", lambda: ROW_NORM),
    "inverse": (broken_inverse, "smartmem-fold-views", square_heads),
    "hoist": (broken_hoist, "smartmem-hoist-views", lambda: build("token_mixing").text()),
    "recompute": (broken_recomputation, "smartmem-recompute-elementwise", lambda: build("attention_rank_3").text()),
    "absorb": (broken_absorption, "smartmem-absorb-views", lambda: ROW_NORM),
    "factor": (broken_factor, "smartmem-sink-scales", lambda: build("attention_rank_3").text()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rewrite_is_found_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it, transform, text = BROKEN[name]
    program = text()
    assert failures(record(program, "gpu")) == []
    break_it(monkeypatch)
    # Wrong indices may also be refused further on; what was recorded until then counts.
    with make_context(), recording() as evidence, suppress(SmartMemError, ir.MLIRError, ValueError):
        run_pipeline(ir.Module.parse(program), PIPELINES["gpu"].text())
    found = [failure for failure in failures(evidence) if failure.rewrite.transform == transform]
    assert found
    if program == ROW_NORM:
        assert all(failure.rewrite.nodes for failure in found)


@settings(max_examples=15, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_claims_about_random_programs_are_true(program: Program) -> None:
    for pipeline in PIPELINES:
        assert failures(record(program.text(), pipeline)) == []
