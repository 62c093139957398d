"""What kernels claim about their addresses is proved, and a wrong address is found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import kernel_programs
import linear_attention_programs
import row_programs
import test_attention
import test_launches
from mlir import ir

from smartmem_mlir.index_maps.evidence import Rewrite, check_rewrites, dump_rewrites, parse_rewrites
from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.ir import make_context
from smartmem_mlir.kernels import row_tilings
from smartmem_mlir.kernels.addresses import SplitAddress
from smartmem_mlir.kernels.cpu import attention_plan, linear_attention_plan, plan, row_blocks, staging
from smartmem_mlir.kernels.cpu.lower_groups import ATTRIBUTE
from smartmem_mlir.targets import load_pipeline
from smartmem_mlir.transforms import computed_reads, linear_attention_claims, linear_attention_epilogue
from smartmem_mlir.transforms.evidence import recording
from smartmem_mlir.transforms.registry import run_pipeline
from smartmem_mlir.transforms.structured import Access

CONTRACTIONS = "\n".join(kernel_programs.build(name).text() for name in kernel_programs.PROGRAMS)
ROWS = "\n".join(row_programs.build(name).text() for name in row_programs.PROGRAMS)
LAUNCHES = "\n".join(test_launches.build(make).text() for make in test_launches.LAUNCHES)
LINEAR_ATTENTION = linear_attention_programs.texts(list(linear_attention_programs.PROGRAMS))
ATTENTION = "\n".join(case.text(case.name) for case in test_attention.CASES)


def recorded(text: str, transform: str = "") -> list[Rewrite]:
    """What is claimed, by one pass or by all of them."""
    with make_context(allow_unregistered_dialects=True):
        module = ir.Module.parse(text)
        module.operation.attributes[ATTRIBUTE] = ir.DenseI64ArrayAttr.get([8, 16])
        pipeline = load_pipeline("cpu").text()
        with recording() as evidence:
            run_pipeline(module, pipeline.replace("select-layouts,", "select-layouts{layouts=paper},"))
    return [rewrite for rewrite in evidence.rewrites if rewrite.transform.endswith(transform)]


@pytest.mark.parametrize(
    ("text", "least"),
    [(CONTRACTIONS, 200), (ROWS, 50), (ATTENTION, 100), (LINEAR_ATTENTION, 100), (LAUNCHES, 100)],
)
def test_every_claim_is_proved(text: str, least: int) -> None:
    rewrites = recorded(text)
    assert check_rewrites(parse_rewrites(dump_rewrites(rewrites))) == []
    assert sum(rewrite.transform == "smartmem-lower-groups-to-cpu" for rewrite in rewrites) >= least


def off_by_one(address: SplitAddress | None) -> SplitAddress | None:
    return None if address is None else replace(address, outer=address.outer + 1)


@pytest.mark.parametrize("module", [plan, row_tilings])
def test_a_wrong_address_is_found(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    split = module.split_address
    monkeypatch.setattr(module, "split_address", lambda address, tiling: off_by_one(split(address, tiling)))
    name, programs = ("scaled_norm", row_programs) if module is row_tilings else ("windows", kernel_programs)
    assert check_rewrites(recorded(programs.build(name).text(), "lower-groups-to-cpu")) != []


def test_a_wrong_place_in_a_packed_weight_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = plan.packed_address
    monkeypatch.setattr(plan, "packed_address", lambda tiling: off_by_one(packed(tiling)))
    text = kernel_programs.build("bias_and_tanh").text()
    assert check_rewrites(recorded(text, "lower-groups-to-cpu")) != []


def test_a_wrong_place_in_a_window_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = staging.Windows.address
    monkeypatch.setattr(staging.Windows, "address", lambda windows, tiling: off_by_one(right(windows, tiling)))
    text = kernel_programs.build("conv_in_blocks").text()
    assert check_rewrites(recorded(text, "lower-groups-to-cpu")) != []


def test_a_wrong_address_in_attention_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = attention_plan.simplify_exprs

    def wrong(exprs: Sequence[Expr], box: object) -> tuple[Expr, ...]:
        return tuple(expr + 1 for expr in right(exprs, box))

    monkeypatch.setattr(attention_plan, "simplify_exprs", wrong)
    case = test_attention.CASES[0]
    assert check_rewrites(recorded(case.text(case.name), "lower-groups-to-cpu")) != []


def test_a_wrong_address_in_linear_attention_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = linear_attention_plan.Space.address
    monkeypatch.setattr(linear_attention_plan.Space, "address", lambda space, read: right(space, read) + 1)
    text = linear_attention_programs.build("multi_scale").text()
    assert check_rewrites(recorded(text, "lower-groups-to-cpu")) != []


def wrong_operand(level: computed_reads.Level) -> computed_reads.Level:
    """The first coordinate of what is read is one more than it should be."""
    operand = level.operand
    if isinstance(operand, float):
        return level
    return replace(level, operand=replace(operand, access=(operand.access[0] + 1, *operand.access[1:])))


def wrong_number(level: computed_reads.Level) -> computed_reads.Level:
    return replace(level, operand=2.0) if level.operand == 1.0 else level


@pytest.mark.parametrize("wrong", [wrong_operand, wrong_number])
def test_a_wrong_read_in_front_of_the_products_is_found(
    wrong: Callable[[computed_reads.Level], computed_reads.Level], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = linear_attention_claims._claim_level
    monkeypatch.setattr(linear_attention_claims, "_claim_level", lambda level: claim(wrong(level)))
    text = linear_attention_programs.build("multi_scale").text()
    assert check_rewrites(recorded(text, "lower-groups-to-cpu")) != []


def test_a_wrong_column_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    of_product = linear_attention_epilogue._Evaluation._of_product

    def wrong(evaluation: linear_attention_epilogue._Evaluation, access: Access) -> object:
        found = of_product(evaluation, access)
        return linear_attention_epilogue.Column((found.at[0] - 1,)) if not isinstance(found, int | None) else found

    monkeypatch.setattr(linear_attention_epilogue._Evaluation, "_of_product", wrong)
    text = linear_attention_programs.build("normalised").text()
    assert check_rewrites(recorded(text, "lower-groups-to-cpu")) != []


def test_rows_of_another_kernel_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = row_blocks.claim_rows_of
    monkeypatch.setattr(row_blocks, "claim_rows_of", lambda op, walk, read, step: claim(op, walk, read, 2 * step))
    rewrites = recorded(LAUNCHES, "lower-groups-to-cpu")
    assert check_rewrites(parse_rewrites(dump_rewrites(rewrites))) != []
