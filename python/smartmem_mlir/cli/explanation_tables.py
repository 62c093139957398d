"""How explanations look on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from smartmem_mlir.cli.tables import describe_layouts
from smartmem_mlir.layouts.decision import LayoutDecision
from smartmem_mlir.report.explanation import MAX_NAMED, Movement, summarize
from smartmem_mlir.report.schema import Report

_out = Console(highlight=False)


def print_explanation(report: Report, movements: Sequence[Movement], *, single: bool) -> None:
    """Totals and a row for each movement, what was kept first; for one node all that is known about it."""
    if single:
        for movement in movements:
            _print_all(movement)
        return
    counts = summarize(report.movements)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("operator")
    for column in ("in the model", "constant", "eliminated", "kept"):
        table.add_column(column, justify="right")
    for operator, row in sorted(counts.items(), key=lambda item: (item[0] == "", -sum(item[1].values()))):
        cells = (sum(row.values()), row["constant"], row["eliminated"], row["kept"])
        table.add_row(operator or "in all", *map(str, cells))
    _out.print(table)
    flow = report.flow
    _out.print(f"{flow.kernels} kernels, {flow.movement_kernels} of them data movement\n", markup=False)
    for movement in sorted(movements, key=lambda movement: movement.verdict != "kept"):
        if movement.verdict != "constant":
            _print_movement(movement)
    _print_layouts(report.layouts)
    constants = sum(movement.verdict == "constant" for movement in movements)
    if constants:
        _out.print(f"{constants} operators with constant results: `--json` lists them, `--node` explains one")


def _print_layouts(decisions: Sequence[LayoutDecision]) -> None:
    """How layouts were chosen, and each that is not the written one with who asked for it; equal lines once."""
    for decision in decisions:
        _out.print(f"\n{describe_layouts(decision)}", markup=False, soft_wrap=True)
        counts = Counter(
            f"{'x'.join(str(layout.shape[axis]) for axis in layout.order)} as {list(layout.order)}  {layout.tensor}"
            f"  (asked by {layout.asked_by})"
            for layout in decision.layouts
        )
        for line, count in counts.items():
            _out.print(f"  {line}" + (f", {count} times" if count > 1 else ""), markup=False, soft_wrap=True)


def _named(movement: Movement) -> str:
    more = len(movement.into) - MAX_NAMED
    return ", ".join(movement.into[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _print_movement(movement: Movement) -> None:
    title = f"{movement.verdict:<10} {movement.operator} {movement.node}"
    _out.print(title, markup=False, soft_wrap=True)
    how = movement.how + (f": {_named(movement)}" if movement.into else "")
    _out.print(f"  {how}", markup=False, soft_wrap=True)


def _print_all(movement: Movement) -> None:
    _out.print(f"{movement.operator} {movement.node}: {movement.verdict}".lstrip(), markup=False, soft_wrap=True)
    _out.print(movement.how + (f" ({movement.by})" if movement.by else ""), markup=False, soft_wrap=True)
    for label, text in (("into", ", ".join(movement.into)), ("map", movement.map)):
        if text:
            _out.print(f"{label}: {text}", markup=False, soft_wrap=True)
