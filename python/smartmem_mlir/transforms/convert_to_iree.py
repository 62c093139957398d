"""Parameters become globals that IREE's runtime fills."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import mlir.ir as ir

from smartmem_mlir.transforms.outline import clone_into
from smartmem_mlir.transforms.pass_base import Pass, PassError, option
from smartmem_mlir.transforms.symbols import symbols, unique

ONCE = "smartmem.once"
"""Attribute of a `flow.dispatch` whose operands are weights: it runs when the module is loaded."""
DISPATCH_OP = "flow.dispatch"
LOAD_OP = "util.global.load"
PARAMETER_OP = "smartmem.parameter"
GROUP_OP = "smartmem.group"


@dataclass(frozen=True)
class ConvertToIree(Pass):
    """Turn parameters into globals of IREE, and groups into dispatch regions.

    One `util.global` for each key, with `#flow.parameter.named<"scope"::"key">` as its value: IREE's runtime maps it
    from the parameter archive, so weights never are text. Each `smartmem.parameter` becomes a `util.global.load`. What
    is in a `flow.dispatch.region` becomes one kernel; of the rest IREE forms kernels itself. MLIR does not have IREE's
    dialects: the operations are built unregistered (`--allow-unregistered-dialect`), print in generic form, and are
    checked by iree-compile when it parses them. The last pass before iree-compile; nothing after it knows the smartmem
    dialect.
    """

    argument: ClassVar[str] = "smartmem-convert-to-iree"
    dependent_dialects: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[str] = "transforms/convert-to-iree/one_global_per_key.mlir"

    scope: str = option("model", "scope of the parameters, as iree-run-module --parameters=SCOPE=FILE names it")

    def run(self, op: ir.Operation) -> None:
        if not op.context.allow_unregistered_dialects:
            raise PassError("the operations of IREE are unknown to MLIR", hint="pass --allow-unregistered-dialect")
        body = op.regions[0].blocks[0]
        taken = symbols(body)
        made: dict[str, tuple[str, ir.Type]] = {}
        for parameter in _find(op, PARAMETER_OP):
            key = ir.StringAttr(parameter.attributes["key"]).value
            tensor = parameter.results[0].type
            with parameter.location:
                if key not in made:
                    made[key] = (_unique_symbol(key, taken), tensor)
                    self._create_global(body, made[key][0], key, tensor)
                symbol, declared = made[key]
                if declared != tensor:
                    raise PassError(f"'{key}' is a {tensor} here and a {declared} elsewhere", op=parameter)
                load = ir.Operation.create(
                    LOAD_OP,
                    results=[tensor],
                    attributes={"global": ir.FlatSymbolRefAttr.get(symbol), "is_immutable": ir.UnitAttr.get()},
                    ip=ir.InsertionPoint(parameter),
                )
            parameter.results[0].replace_all_uses_with(load.results[0])
            parameter.erase()
        for dispatch in [found for found in _find(op, DISPATCH_OP) if ONCE in found.attributes]:
            _run_once(dispatch, body, taken)
        for group in _find(op, GROUP_OP):
            _create_dispatch_region(group)

    def _create_global(self, body: ir.Block, symbol: str, key: str, tensor: ir.Type) -> None:
        value = ir.Attribute.parse(f"#flow.parameter.named<{quote(self.scope)}::{quote(key)}> : {tensor}")
        ir.Operation.create(
            "util.global",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(tensor),
                "initial_value": value,
            },
            ip=ir.InsertionPoint.at_block_begin(body),
        )


def quote(text: str) -> str:
    """A string literal in MLIR's syntax."""
    escaped = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode()
    )
    return f'"{escaped}"'


def _run_once(dispatch: ir.Operation, body: ir.Block, taken: set[str]) -> None:
    """Moves a dispatch that depends on weights alone to where the module is loaded; its result becomes a global."""
    tensor = dispatch.results[0].type
    symbol = _unique_symbol("once", taken)
    name, reference = ir.StringAttr.get(symbol), ir.FlatSymbolRefAttr.get(symbol)
    del dispatch.attributes[ONCE]
    loads = [operand.owner for operand in dispatch.operands]
    if any(isinstance(load, ir.Block) or load.operation.name != LOAD_OP for load in loads):
        # Constants in the text, which only hand-written modules have: IREE does not take them in an initializer.
        return
    with dispatch.location, ir.InsertionPoint(_top_level(dispatch)):
        ir.Operation.create(
            "util.global",
            attributes={
                "sym_name": name,
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(tensor),
            },
        )
        initializer = ir.Operation.create(
            "util.initializer",
            attributes={"function_type": ir.TypeAttr.get(ir.FunctionType.get([], []))},
            regions=1,
        )
    block = ir.Block.create_at_start(initializer.regions[0], [])
    made: dict[ir.Value, ir.Value] = {}
    with dispatch.location, ir.InsertionPoint(block):
        for op in [*(load.operation for load in loads), dispatch]:
            clone_into(op, made)
        stored = made[dispatch.results[0]]
        ir.Operation.create("util.global.store", operands=[stored], attributes={"global": reference})
        ir.Operation.create("util.return")
    with dispatch.location, ir.InsertionPoint(dispatch):
        load = ir.Operation.create(LOAD_OP, results=[tensor], attributes={"global": reference})
    dispatch.results[0].replace_all_uses_with(load.results[0])
    dispatch.erase()


def _top_level(op: ir.Operation) -> ir.Operation:
    """The operation of the module that another is in."""
    while op.parent.name != "builtin.module":
        op = op.parent
    return op


def _create_dispatch_region(group: ir.Operation) -> None:
    """Puts a `flow.dispatch.region` with the group's body, which reads what the group was given, in its place."""
    results = [result.type for result in group.results]
    with group.location:
        region = ir.Operation.create(
            "flow.dispatch.region",
            results=results,
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
            regions=2,  # the second one, for an explicit number of workgroups, is empty
            ip=ir.InsertionPoint(group),
        )
    body = group.regions[0].blocks[0]
    for argument, operand in zip(list(body.arguments), list(group.operands), strict=True):
        argument.replace_all_uses_with(operand)
    block = ir.Block.create_at_start(region.regions[0], [])
    for inner in list(body.operations):
        if inner.operation.name == "smartmem.yield":
            with group.location, ir.InsertionPoint(block):
                ir.Operation.create("flow.return", operands=list(inner.operation.operands))
            inner.operation.erase()
        else:
            block.append(inner.operation)
    for old, new in zip(group.results, region.results, strict=True):
        old.replace_all_uses_with(new)
    group.erase()


def _find(op: ir.Operation, name: str) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(nested: ir.Operation) -> ir.WalkResult:
        if nested.name == name:
            found.append(nested)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def _unique_symbol(key: str, taken: set[str]) -> str:
    """A symbol that reads like the key and that nothing else has."""
    return unique("parameter_" + re.sub(r"[^A-Za-z0-9_]", "_", key), taken)
