"""From our dialect to what IREE reads: each `smartmem.parameter` becomes a global that the runtime fills from
`params.irpa`, and the module names the device it is for."""

from __future__ import annotations

import re

from mlir import ir

from smartmem_mlir.iree.archive import SCOPE
from smartmem_mlir.iree.device_target import device_targets_attr
from smartmem_mlir.targets import TargetDescription

PARAMETER_OP = "smartmem.parameter"
_KEY_ATTRIBUTE = "key"


def convert_to_iree(module: ir.Operation) -> int:
    """Replace every `smartmem.parameter` by a load of a global, one global per key.

    The globals are immutable and have no initial value of their own: `#flow.parameter.named` makes the runtime map
    them from an archive, so weights are never text. IREE's operations are built unregistered and print in generic form.

    Args:
        module: The `builtin.module`, changed in place.

    Returns:
        Number of globals.
    """
    context = module.context
    context.allow_unregistered_dialects = True
    globals_: dict[str, str] = {}
    body = module.regions[0].blocks[0]
    for parameter in _parameters(module):
        key = ir.StringAttr(parameter.attributes[_KEY_ATTRIBUTE]).value
        tensor = parameter.results[0].type
        with parameter.location:
            if key not in globals_:
                globals_[key] = f"parameter_{len(globals_)}_{re.sub(r'[^A-Za-z0-9_]', '_', key)}"
                _create_global(body, globals_[key], key, tensor)
            load = ir.Operation.create(
                "util.global.load",
                results=[tensor],
                attributes={
                    "global": ir.FlatSymbolRefAttr.get(globals_[key]),
                    "is_immutable": ir.UnitAttr.get(),
                },
                ip=ir.InsertionPoint(parameter),
            )
        parameter.results[0].replace_all_uses_with(load.results[0])
        parameter.erase()
    return len(globals_)


def set_device_targets(module: ir.Operation, target: TargetDescription) -> None:
    """Record the target's limits on the module where iree-compile has no flags for them."""
    text = device_targets_attr(target)
    if text is not None:
        module.context.allow_unregistered_dialects = True
        module.attributes["hal.device.targets"] = ir.Attribute.parse(text, context=module.context)


def quote(text: str) -> str:
    """A string literal of MLIR's syntax."""
    escaped = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode()
    )
    return f'"{escaped}"'


def _create_global(body: ir.Block, symbol: str, key: str, tensor: ir.Type) -> None:
    value = ir.Attribute.parse(f"#flow.parameter.named<{quote(SCOPE)}::{quote(key)}> : {tensor}")
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


def _parameters(module: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == PARAMETER_OP:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    return found
