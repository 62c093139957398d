"""`smartmem explain`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smartmem_mlir.cli.options import Debug, Directory, TrustModel
from smartmem_mlir.errors import OptionError

if TYPE_CHECKING:
    from smartmem_mlir.api import CompiledModel
    from smartmem_mlir.report.measure import KernelTime
    from smartmem_mlir.report.totals import Totals


def explain_model(
    directory: Directory,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", help="Only this node of the source model.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with the graph.", show_default=False)
    ] = None,
    top: Annotated[
        int,
        typer.Option(min=0, help="How many transformations that are left, and tensors in no image, are listed."),
    ] = 10,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="DIR", help="The same model compiled with --baseline, to compare.", show_default=False
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Run one inference and time each kernel (targets for this CPU).")
    ] = False,
    model: Annotated[
        Path | None, typer.Option("--model", help="The model's file, if it has moved (for --html).", show_default=False)
    ] = None,
    trust_model: TrustModel = False,
    debug: Debug = False,
) -> None:
    """Show what became of each layout transformation of the source model, what is left, and why."""
    from smartmem_mlir import api
    from smartmem_mlir.cli import explanation_tables
    from smartmem_mlir.report.follow import follow
    from smartmem_mlir.report.measure import measure_kernels
    from smartmem_mlir.report.totals import before_and_after

    compiled = api.load(directory)
    report = compiled.report
    if node is not None:
        steps = follow(report, node)
        if not steps:
            raise OptionError(
                f"the compilation says nothing about a node '{node}'",
                hint="`smartmem explain DIR --json` lists what it knows",
                file=directory,
            )
    other = _other(against, report)
    times = {"after": measure_kernels(compiled.path, report)} if measure else {}
    if measure and other is not None:
        times["before"] = measure_kernels(other.path, other.report)
    totals = before_and_after(
        report, other.report if other else None, {k: sum(t.ns for t in v.values()) / 1e6 for k, v in times.items()}
    )
    if html is not None:
        _write_page(html, compiled, totals, times.get("after"), model, trust_model)
    if as_json:
        json.dump(_content(report, node, totals, times.get("after")), sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif node is not None:
        explanation_tables.print_steps(node, steps)
    elif html is None:
        explanation_tables.print_explanation(report, totals, top, times.get("after"))


def _other(folder: Path | None, report: Any) -> CompiledModel | None:
    from smartmem_mlir import api

    if folder is None:
        return None
    other = api.load(folder)
    if other.report.source.sha256 != report.source.sha256:
        raise OptionError(
            "it was compiled from another model", hint="compile the same file with --baseline", file=folder
        )
    return other


def _content(
    report: Any, node: str | None, totals: Mapping[str, Totals], times: Mapping[str, KernelTime] | None
) -> dict[str, Any]:
    """What `--json` prints; docs/cli.md has the schema."""
    from smartmem_mlir.report import memories
    from smartmem_mlir.report.explanation import summarize
    from smartmem_mlir.report.follow import follow
    from smartmem_mlir.report.survivors import survivors

    counts = dict(summarize(report.movements))
    content = {
        "model": report.source.name,
        "target": report.target.name,
        "before": totals["before"].model_dump(mode="json"),
        "after": totals["after"].model_dump(mode="json"),
        "totals": counts.pop("", {}),
        "operators": counts,
        "kernels": report.flow.kernels,
        "movement_kernels": report.flow.movement_kernels,
        **json.loads(report.model_dump_json(include={"layouts"})),
        "memories": memories.content(report.memories),
        "survivors": [each.__dict__ for each in survivors(report.movements)],
        "movements": [
            movement.model_dump(mode="json") for movement in report.movements if node in (None, movement.node)
        ],
    }
    if node is not None:
        content["steps"] = [step.__dict__ for step in follow(report, node)]
    if times is not None:
        content["kernel_times"] = {name: {"calls": time.calls, "ns": time.ns} for name, time in times.items()}
    return content


def _write_page(
    path: Path,
    compiled: CompiledModel,
    totals: Mapping[str, Totals],
    times: Mapping[str, KernelTime] | None,
    model: Path | None,
    trusted: bool,
) -> None:
    from smartmem_mlir.api.graphs import graphs_of
    from smartmem_mlir.cli import tables
    from smartmem_mlir.cli.progress import StageProgress
    from smartmem_mlir.report.directory import explain_os_errors
    from smartmem_mlir.report.page import render_page

    with StageProgress() as progress:
        graphs, missing = graphs_of(compiled, times, model, trusted, progress)
    if missing is not None:
        if model is not None:
            raise missing
        tables.note(f"the page shows no state before: {missing}")
    with explain_os_errors(path):
        path.write_text(render_page(compiled.report, totals, graphs, times), encoding="utf-8")
