"""Rewrite patterns in Python."""

from __future__ import annotations

import mlir.ir as ir
import pytest
from mlir.dialects import arith

from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms.pass_base import PassError
from smartmem_mlir.transforms.patterns import Pattern, apply_patterns, count_operations
from smartmem_mlir.transforms.walk import walk

MODULE = """
func.func @f(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %0, %b : i32
  return %1 : i32
}
"""


@pytest.fixture(autouse=True)
def module():
    with make_context():
        yield ir.Module.parse(MODULE)


def names(module: ir.Module) -> list[str]:
    return [op.name for op in walk(module.operation) if op.name.startswith("arith")]


def to_subtraction(op, rewriter) -> bool:
    rewriter.replace_op(op.operation, [arith.SubIOp(op.lhs, op.rhs).result])
    return True


def test_patterns_apply_everywhere_and_are_counted(module):
    assert apply_patterns(module.operation, [Pattern("arith.addi", to_subtraction)]) == 2
    assert names(module) == ["arith.subi", "arith.subi"]
    assert module.operation.verify()


def test_a_pattern_that_declines_changes_nothing(module):
    before = str(module)
    assert apply_patterns(module.operation, [Pattern(arith.AddIOp, lambda op, rewriter: False)]) == 0
    assert str(module) == before


def test_the_higher_benefit_goes_first(module):
    def never(op, rewriter):
        raise AssertionError("the other pattern comes first")

    apply_patterns(
        module.operation, [Pattern("arith.addi", never, benefit=1), Pattern("arith.addi", to_subtraction, benefit=2)]
    )
    assert names(module) == ["arith.subi", "arith.subi"]


def test_endless_rewriting_is_an_error(module):
    def swap(op, rewriter):
        rewriter.replace_op(op.operation, [arith.AddIOp(op.rhs, op.lhs).result])
        return True

    with pytest.raises(PassError, match="still apply after 100 rewrites"):
        apply_patterns(module.operation, [Pattern("arith.addi", swap)], max_rewrites=100)


def test_too_many_iterations_are_an_error(module):
    state = {"round": 0}

    def count_up(op, rewriter):
        # Changes an attribute in place, which the driver sees only in its next sweep.
        state["round"] += 1
        op.operation.attributes["round"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), state["round"])
        return True

    with pytest.raises(PassError, match=r"no fixed point in 3 iterations|still apply"):
        apply_patterns(module.operation, [Pattern("arith.addi", count_up)], max_iterations=3)


def test_exceptions_arrive_unchanged_and_stop_the_rewriting(module):
    calls = []

    def broken(op, rewriter):
        calls.append(op)
        raise KeyError("oops")

    with pytest.raises(KeyError, match="oops"):
        apply_patterns(module.operation, [Pattern("arith.addi", broken)])
    assert len(calls) == 1


def test_walk_and_count(module):
    assert [op.name for op in walk(module.operation)] == [
        "builtin.module",
        "func.func",
        "arith.addi",
        "arith.addi",
        "func.return",
    ]
    assert [op.name for op in walk(module.operation, skip=("func.func",))] == ["builtin.module", "func.func"]
    assert count_operations(module.operation) == 5
