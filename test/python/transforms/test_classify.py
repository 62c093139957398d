"""The rule that derives operator groups agrees with the paper's table on every operator that the table lists."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

import arithmetic as math_
import pytest
import yaml
from case_programs import convolve
from mlir import ir
from program import Program, Tensor

from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms.classify import COMPLEXITY, Classification, classify, hardest
from smartmem_mlir.transforms.ir_walk import block_operations

TABLE: list[dict[str, str]] = yaml.safe_load(
    resources.files("smartmem_mlir.transforms").joinpath("operator_table.yaml").read_text()
)


def gather(p: Program) -> Tensor:
    """Rows at positions that an operand gives."""
    x, at = p.argument([6, 4]), p.argument([3], "i64")
    body = (
        "%row = arith.index_cast %x0 : i64 to index\n    %column = linalg.index 1 : index\n"
        f"    %v = tensor.extract {x.name}[%row, %column] : {x.type}\n    linalg.yield %v : f32"
    )
    return p.generic([(at, [0])], [0, 1], "pp", body, x.array[at.array.astype(int) % 6])


def blocks(p: Program, deeper: bool) -> Tensor:
    """Depth to space (DCR) with blocks of 2, or back."""
    if deeper:
        split = p.expand(p.argument([3, 4, 6]), [[3], [2, 2], [3, 2]])
        return p.collapse(p.transpose(split, [2, 4, 0, 1, 3]), [[0, 1, 2], [3], [4]])
    split = p.expand(p.argument([12, 2, 3]), [[2, 2, 3], [2], [3]])
    return p.collapse(p.transpose(split, [2, 3, 0, 4, 1]), [[0], [1, 2], [3, 4]])


FORMS: dict[str, Callable[[Program], Tensor]] = {
    "Conv": lambda p: convolve(p, p.argument([3, 5, 6]), p.argument([4, 3, 3, 3])),
    "MatMul": lambda p: math_.matmul(p, p.argument([3, 5]), p.argument([5, 4])),
    "LayerNorm": lambda p: math_.layer_norm(p, p.argument([3, 4]), [1]),
    "Softmax": lambda p: math_.softmax(p, p.argument([3, 4]), 1),
    "Unary": lambda p: math_.unary(p, p.argument([3, 4])),
    "Add": lambda p: math_.binary(p, p.argument([3, 4]), p.argument([3, 4])),
    "Reshape": lambda p: p.collapse(p.argument([3, 4]), [[0, 1]]),
    "Transpose": lambda p: p.transpose(p.argument([3, 4]), [1, 0]),
    "DepthToSpace": lambda p: blocks(p, deeper=False),
    "SpaceToDepth": lambda p: blocks(p, deeper=True),
    "Gather": gather,
    "Slice": lambda p: p.slice(p.argument([6, 4]), [1, 0], [2, 4], [2, 1]),
}


def classified(text: str) -> list[Classification]:
    with make_context():
        module = ir.Module.parse(text)
        return [found for op in block_operations(module.operation) if (found := classify(op)) is not None]


def of(operator: Callable[[Program], Any]) -> list[Classification]:
    p = Program()
    p.results.append(operator(p))
    return classified(p.text())


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["operator"])
def test_the_rule_agrees_with_the_paper(row: dict[str, str]) -> None:
    found = of(FORMS[row["operator"]])
    wanted = f"{'ild' if row['input'] == 'dependent' else 'ili'}_{row['output']}"
    assert hardest(each.op_class for each in found) == wanted
    assert row["section"].startswith("3.1")


def test_the_table_lists_four_groups_and_each_form_once() -> None:
    assert sorted(row["operator"] for row in TABLE) == sorted(FORMS)
    assert {(row["input"], row["output"]) for row in TABLE} == {
        (a, b) for a in ("dependent", "independent") for b in ("variable", "fixed")
    }


def test_what_is_summed_is_a_reduction_axis_of_each_operand() -> None:
    (product,) = of(FORMS["MatMul"])
    assert product.reduced_axes == ((1,), (0,))
    assert product.reads == ("any", "any")
    assert product.write == "any"
    (image,) = of(FORMS["Conv"])
    assert image.reduced_axes == ((0, 1, 2), (1, 2, 3))


def test_operands_of_different_layouts_change_the_group() -> None:
    """An Add is layout-independent only while one order of axes suits both operands (section 3.1)."""
    (turned,) = of(lambda p: math_.binary(p, p.argument([3, 4]), p.argument([4, 3]), "addf", [1, 0]))
    assert turned.op_class == "ild_variable"
    (broadcast,) = of(lambda p: math_.binary(p, p.argument([3, 4]), p.argument([4]), "addf", [1]))
    assert broadcast.op_class == "ili_variable"
    assert broadcast.reads == ("joint", "joint")


def test_the_hardest_of_a_pair_is_what_the_paper_says() -> None:
    """Table 5: the resulting type is that of higher optimisation complexity."""
    assert hardest(["ili_variable", "ild_variable"]) == "ild_variable"
    assert hardest(["ild_fixed", "ili_variable"]) == "ili_variable"
    assert hardest(["ili_fixed", "ild_fixed"]) == "ild_fixed"
    assert len(set(COMPLEXITY)) == 4
