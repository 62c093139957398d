"""How explanations look on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from smartmem_mlir.cli.tables import describe_layouts, memory_lines, size
from smartmem_mlir.layouts.decision import LayoutDecision
from smartmem_mlir.layouts.memory import EXPLANATIONS, TensorMemory
from smartmem_mlir.report.explanation import MAX_NAMED, Movement, summarize
from smartmem_mlir.report.follow import Step
from smartmem_mlir.report.measure import KernelTime
from smartmem_mlir.report.schema import Report
from smartmem_mlir.report.survivors import Survivor, survivors
from smartmem_mlir.report.totals import Totals

_out = Console(highlight=False)


def print_explanation(
    report: Report, totals: Mapping[str, Totals], top: int, times: Mapping[str, KernelTime] | None
) -> None:
    """Totals, what is left by size, and a row for each movement, what was kept first."""
    _print_totals(totals)
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
    if times is not None:
        _print_times(times, top)
    left = survivors(report.movements)
    for survivor in left[:top]:
        _print_survivor(survivor)
    if len(left) > top:
        _out.print(f"{len(left) - top} more are left: --top {len(left)} lists them", markup=False)
    for movement in report.movements:
        if movement.verdict == "eliminated":
            _print_movement(movement)
    _print_layouts(report.layouts)
    _print_memories(report.memories, top)
    constants = sum(movement.verdict == "constant" for movement in report.movements)
    if constants:
        _out.print(f"{constants} operators with constant results: `--json` lists them, `--node` explains one")


def print_steps(node: str, steps: Sequence[Step]) -> None:
    """All that is known about one node."""
    for position, step in enumerate(steps):
        prefix = "" if position == 0 and step.what.partition(":")[0].endswith(node) else f"{node} "
        _out.print(f"{prefix}{step.what}", markup=False, soft_wrap=True)
        for label, text in step.facts.items():
            _out.print(f"{label}: {text}", markup=False, soft_wrap=True)


def _print_totals(totals: Mapping[str, Totals]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for name in totals:
        table.add_column(name, justify="right")
    rows: Sequence[tuple[str, str, Callable[[Any], str]]] = (
        ("layout transformations", "transforms", str),
        ("bytes that these move, each as a kernel", "transform_bytes", size),
        ("kernels", "kernels", str),
        ("of them data movement", "movement_kernels", str),
        ("bytes of kernels", "kernel_bytes", size),
        ("modelled time of one inference on one core", "modelled_ms", _duration),
        ("measured time of kernels", "measured_ms", _duration),
    )
    for label, key, show in rows:
        values = [getattr(each, key) for each in totals.values()]
        if any(value is not None for value in values):
            table.add_row(label, *("" if value is None else show(value) for value in values))
    _out.print(table)
    _out.print()


def _duration(ms: float) -> str:
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


def _print_times(times: Mapping[str, KernelTime], top: int) -> None:
    total = sum(time.ns for time in times.values()) or 1.0
    for name, time in sorted(times.items(), key=lambda item: -item[1].ns)[:top]:
        share = f"{100 * time.ns / total:.0f} %"
        _out.print(f"{time.ns / 1e6:8.3f} ms  {share:>5}  {time.calls} x {name}", markup=False, soft_wrap=True)
    _out.print()


def _print_survivor(survivor: Survivor) -> None:
    amount = size(survivor.bytes) if survivor.bytes else "bytes unknown"
    title = f"{'kept':<10} {survivor.operator} {survivor.node} ({amount})"
    _out.print(title, markup=False, soft_wrap=True)
    if survivor.location:
        _out.print(f"  in the source: {survivor.location}", markup=False, soft_wrap=True)
    _out.print(f"  {survivor.reason}", markup=False, soft_wrap=True)
    _out.print(f"  to remove it: {survivor.remedy}", markup=False, soft_wrap=True)


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


def _print_memories(memories: tuple[TensorMemory, ...], top: int) -> None:
    """Sums, then the largest tensors that are no images, each with the reason and what was compared."""
    if not memories:
        return
    _out.print()
    for line in memory_lines(memories):
        _out.print(line, markup=False, soft_wrap=True)
    others = sorted((each for each in memories if each.reason), key=lambda each: -each.bytes)
    for each in others[:top]:
        shape = "x".join(map(str, (*each.shape, each.element)))
        copied = ", copied into it in every inference" if each.copied else ""
        _out.print(f"  {each.memory:<13} {shape}  {each.tensor}{copied}", markup=False, soft_wrap=True)
        detail = f" ({each.detail})" if each.detail else ""
        _out.print(f"    {each.reason}: {EXPLANATIONS[each.reason]}{detail}", markup=False, soft_wrap=True)
        if len(each.costs_ns) > 1:
            costs = ", ".join(f"{memory} {ns / 1000:.3g} us" for memory, ns in each.costs_ns.items())
            _out.print(f"    modelled: {costs}", markup=False, soft_wrap=True)


def _named(movement: Movement) -> str:
    more = len(movement.into) - MAX_NAMED
    return ", ".join(movement.into[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _print_movement(movement: Movement) -> None:
    title = f"{movement.verdict:<10} {movement.operator} {movement.node}"
    _out.print(title, markup=False, soft_wrap=True)
    how = movement.how + (f": {_named(movement)}" if movement.into else "")
    _out.print(f"  {how}", markup=False, soft_wrap=True)
