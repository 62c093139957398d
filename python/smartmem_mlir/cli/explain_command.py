"""`smartmem explain`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from smartmem_mlir.cli.options import Debug, Directory
from smartmem_mlir.errors import OptionError


def explain_model(
    directory: Directory,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", help="Only this node of the source model.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show what became of each data-movement operator of the source model."""
    from smartmem_mlir import api
    from smartmem_mlir.cli import explanation_tables
    from smartmem_mlir.report.explanation import summarize

    report = api.load(directory).report
    movements = [movement for movement in report.movements if node in (None, movement.node)]
    if node is not None and not movements:
        raise OptionError(
            f"the model has no data-movement operator '{node}'",
            hint="`smartmem explain DIR` lists them",
            file=directory,
        )
    if not as_json:
        explanation_tables.print_explanation(report, movements, single=node is not None)
        return
    counts = dict(summarize(report.movements))
    content = {
        "model": report.source.name,
        "target": report.target.name,
        "totals": counts.pop("", {}),
        "operators": counts,
        "kernels": report.flow.kernels,
        "movement_kernels": report.flow.movement_kernels,
        **json.loads(report.model_dump_json(include={"layouts"})),
        "movements": [movement.model_dump(mode="json") for movement in movements],
    }
    json.dump(content, sys.stdout, indent=2)
    sys.stdout.write("\n")
