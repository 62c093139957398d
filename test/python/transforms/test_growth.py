"""Growing groups on graphs deeper than Python's stack."""

from __future__ import annotations

import sys

import arithmetic as math_
from mlir import ir
from program import Program

from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms.registry import run_pipeline


def test_a_branch_deeper_than_the_stack_ends_a_group() -> None:
    """y = x w; y + f(y w): the addition depends on the group through a branch that the group does not take."""
    p = Program()
    w = p.argument([8, 8])
    y = math_.matmul(p, p.argument([4, 8]), w)
    branch = math_.matmul(p, y, w)
    for _ in range(sys.getrecursionlimit() + 200):
        branch = p.transpose(math_.unary(p, branch, "math.tanh"), [0, 1])
        branch = math_.reduce(p, p.expand(branch, [[4], [8, 1]]), [2])
    p.results.append(math_.binary(p, y, branch))
    with make_context():
        module = ir.Module.parse(p.text())
        run_pipeline(module, "builtin.module(smartmem-form-groups)")
        assert str(module).count("smartmem.group") >= 2
