"""Counts of what the layout passes are to remove."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import ClassVar

import mlir.ir as ir

from smartmem_mlir.dialects.layouts import physical_bytes
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.walk import walk


@dataclass(frozen=True)
class LayoutCost:
    """What a function spends on layouts.

    Args:
        conversions: Number of `smartmem.convert_layout`.
        conversion_bytes: Bytes that they read and write, padding included.
        views: Number of `smartmem.view`.
        view_bytes: Bytes of their results: what materializing each would write.
        groups: Number of `smartmem.group`.
        group_bytes: Bytes that the groups read and write.
        parameters: Number of `smartmem.parameter`.
        parameter_bytes: Bytes of the weights.
    """

    conversions: int = 0
    conversion_bytes: int = 0
    views: int = 0
    view_bytes: int = 0
    groups: int = 0
    group_bytes: int = 0
    parameters: int = 0
    parameter_bytes: int = 0


def measure_cost(function: ir.Operation) -> LayoutCost:
    """The cost of one function, from its types: what its operations read and write, whole tensors at a time."""
    counts = dict.fromkeys(asdict(LayoutCost()), 0)
    for op in walk(function):
        reads = sum(physical_bytes(value.type) for value in op.operands) if op.name in _COUNTED else 0
        writes = sum(physical_bytes(value.type) for value in op.results) if op.name in _COUNTED else 0
        kind = _COUNTED.get(op.name)
        if kind is not None:
            counts[f"{kind}s"] += 1
            counts[f"{kind}_bytes"] += writes + (reads if kind in ("conversion", "group") else 0)
    return LayoutCost(**counts)


_COUNTED = {
    "smartmem.convert_layout": "conversion",
    "smartmem.view": "view",
    "smartmem.group": "group",
    "smartmem.parameter": "parameter",
}


@dataclass(frozen=True)
class PrintCost(Pass):
    """Print how many conversions, views and groups each function has, with their bytes.

    The IR stays as it is. One line for each function goes to stderr, as `print-op-stats` does; tests and the report
    read it to see that no pass raises the cost. Bytes come from types, padding included: a conversion or group counts
    what it reads and writes, a view what materializing it would write, a parameter its size.
    """

    argument: ClassVar[str] = "smartmem-print-cost"
    anchor: ClassVar[str] = "func.func"
    example: ClassVar[str] = "counts.mlir"

    json: bool = option(False, "Print a JSON object instead of text")

    def run(self, op: ir.Operation) -> None:
        """Prints the cost of one function."""
        cost = asdict(measure_cost(op))
        name = ir.StringAttr(op.attributes["sym_name"]).value
        if self.json:
            line = json.dumps({"function": name, **cost})
        else:
            kinds = [key for key in cost if not key.endswith("_bytes")]
            line = f"@{name}: " + ", ".join(
                f"{cost[kind]} {kind} ({cost[kind.removesuffix('s') + '_bytes']} bytes)" for kind in kinds
            )
        print(line, file=sys.stderr)
