"""One node of the source model through the compilation: what became of it, and every layout its tensor takes."""

from __future__ import annotations

from dataclasses import dataclass

from smartmem_mlir.report.explanation import Movement
from smartmem_mlir.report.schema import Report
from smartmem_mlir.report.survivors import remedy


@dataclass(frozen=True)
class Step:
    """One thing that is known about a node.

    Args:
        what: In a sentence.
        facts: Further facts by their labels.
    """

    what: str
    facts: dict[str, str]


def follow(report: Report, node: str) -> list[Step]:
    """What the compilation says about a node: its own fate, what it reads or writes through, its tensor's layouts.

    Args:
        report: Of the compilation.
        node: The name in the source model.

    Returns:
        Steps in the order of the passes; none if nothing is known.
    """
    steps = [_own(movement) for movement in report.movements if movement.node == node]
    for movement in report.movements:
        if node in movement.into and movement.node != node:
            facts = _facts(movement)
            facts.pop("into", None)
            steps.append(Step(f"takes over {movement.operator} {movement.node}".replace("  ", " "), facts))
    for decision in report.layouts:
        for layout in decision.layouts:
            if layout.tensor == node:
                stored = "x".join(str(layout.shape[axis]) for axis in layout.order)
                facts = {
                    "written as": "x".join(map(str, layout.shape)),
                    "order": str(list(layout.order)),
                    "asked by": layout.asked_by,
                    "chosen by": f"{decision.method}, {decision.status}",
                }
                steps.append(Step(f"its tensor is stored as {stored}", facts))
    return steps


def _own(movement: Movement) -> Step:
    how = movement.how + (f" ({movement.by})" if movement.by else "")
    title = f"{movement.operator} {movement.node}: {movement.verdict}".lstrip()
    return Step(f"{title}\n{how}", _facts(movement))


def _facts(movement: Movement) -> dict[str, str]:
    facts = {"into": ", ".join(movement.into), "map": movement.map, "in the source": movement.location}
    if movement.bytes:
        facts["bytes as a kernel"] = str(movement.bytes)
    if movement.verdict == "kept":
        facts["to remove it"] = remedy(movement.how)
    return {label: text for label, text in facts.items() if text}
