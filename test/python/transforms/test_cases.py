"""Networks that other tools got wrong: the same numbers, and the movement that each is about is gone."""

from __future__ import annotations

import pytest
from case_programs import CASES, build
from mlir import ir
from test_differential import PIPELINES, check

from smartmem_mlir.index_maps.evidence import check_rewrites, dump_rewrites, parse_rewrites
from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms.evidence import recording
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.movement import as_view
from smartmem_mlir.transforms.registry import run_pipeline

RESULT = "it is a result of the model"
BORDER = "its border is no element"
CONTRACTION = "a contraction reads it"
KEPT: dict[str, list[str]] = {
    # What is returned has the caller's layout, and nothing behind it could take the movement over.
    "fused_projection": [RESULT],
    "split_projection": [RESULT] * 3,
    "pixel_shuffle_tail": [RESULT],
    # A convolution reads its border.
    "convnext_block": [BORDER],
    # ... and a reversed weight has a negative stride.
    "groups_then_padding": [BORDER, CONTRACTION],
    "padding_then_groups": [BORDER, CONTRACTION],
    # A rotation is no split of an iteration space, and the weight's transposition is refused with it.
    "shifted_windows": [CONTRACTION, CONTRACTION],
}
"""The copies that may be left of a case, by how their reasons begin; none of all others."""


def movements(module: ir.Module) -> list[str]:
    """The operations that only move elements."""
    return [op.name for op in block_operations(module.operation) if as_view(op) is not None]


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", CASES)
def test_the_movement_is_gone_and_the_numbers_are_not(name: str, pipeline: str) -> None:
    program = build(name)
    with make_context():
        module = ir.Module.parse(program.text())
        assert movements(module), "the program has nothing to eliminate"
        with recording() as evidence:
            run_pipeline(module, PIPELINES[pipeline].text())
        check(module, program, f"after {pipeline}")
    copies = [fate for fate in evidence.fates if fate.how == "copy"]
    allowed = list(KEPT.get(name, []))
    for copy in copies:
        reason = next((reason for reason in allowed if copy.reason.startswith(reason)), None)
        assert reason is not None, f"{copy.operation} {copy.map} is left: {copy.reason}"
        allowed.remove(reason)
    rewrites = parse_rewrites(dump_rewrites(evidence.rewrites))
    assert rewrites
    assert check_rewrites(rewrites) == []
