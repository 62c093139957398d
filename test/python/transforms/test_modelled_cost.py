"""No pass that eliminates layout transformations raises their modelled cost, on any small model of the zoo.

The cost is what computing every view by itself would read and write. Reshapes are free, since they move nothing, and so
are views of weights, which are evaluated when the model is compiled. A pass may put views where the composition behind
it takes them away again, so that a step is a pass and the composition that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import dims, linearize
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.ingress import load
from smartmem_mlir.ingress.model import ImportOptions
from smartmem_mlir.ir import make_context
from smartmem_mlir.targets import PassSpec, load_pipeline
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.movement import as_view
from smartmem_mlir.transforms.registry import run_pipeline
from smartmem_mlir.transforms.view_ops import defining_op
from smartmem_mlir.zoo.recipe import materialize

RECIPES = sorted((Path(__file__).parents[2] / "cases" / "zoo").glob("*.onnx"))
ELEMENT_BYTES = 4


def moves(view: View) -> bool:
    """Whether elements have other addresses than before, or new ones are made."""
    single = view.single_map
    if single is None or prod(view.shape) != prod(view.operands[0]):
        return True
    wanted = linearize(dims(len(view.shape)), view.shape)
    found = linearize(single.exprs, view.operands[0])
    return simplify_exprs([found], Box.of(view.shape)) != simplify_exprs([wanted], Box.of(view.shape))


def is_known(value: ir.Value) -> bool:
    """Whether a value is known when the model is compiled."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name in ("smartmem.parameter", "arith.constant", "tensor.empty", "linalg.fill"):
        return True
    return as_view(op) is not None and all(map(is_known, op.operands))


def modelled_cost(module: ir.Module) -> int:
    """Bytes that all transformations of layouts read and write."""
    total = 0
    for op in block_operations(module.operation):
        raised = as_view(op)
        if raised is not None and moves(raised[0]) and not all(map(is_known, raised[1])):
            total += 2 * ELEMENT_BYTES * prod(raised[0].shape)
    return total


def steps() -> Iterator[list[PassSpec]]:
    """Each pass in front of the choice of layouts, with the compositions that follow it."""
    step: list[PassSpec] = []
    for spec in load_pipeline("cpu").passes:
        if spec.name == "smartmem-select-layouts":
            break
        if step and spec.name != "smartmem-compose-views":
            yield step
            step = []
        step.append(spec)
    yield step


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_no_pass_raises_the_modelled_cost(recipe: Path, tmp_path: Path) -> None:
    model = tmp_path / recipe.name
    materialize(recipe, model)
    imported = load(model, ImportOptions(), lambda stage: None)
    with make_context(allow_unregistered_dialects=True):
        module = ir.Module.parse(imported.module)
        costs = [modelled_cost(module)]
        for step in steps():
            run_pipeline(module, f"builtin.module({','.join(spec.text() for spec in step)})")
            costs.append(modelled_cost(module))
            assert costs[-1] <= costs[-2], f"{step[0].name} raises the cost from {costs[-2]} to {costs[-1]} bytes"
    assert costs[-1] <= costs[0]
