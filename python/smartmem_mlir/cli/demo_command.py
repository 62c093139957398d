"""`smartmem demo`: the main job on a network that the package makes itself."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smartmem_mlir.cli.options import Debug
from smartmem_mlir.cli.progress import StageProgress
from smartmem_mlir.errors import EXIT_MISMATCH, DeviceError

if TYPE_CHECKING:
    from smartmem_mlir.api import CompiledModel

RUNS = 10
"""Timed runs of each module; the median is shown."""


@dataclass(frozen=True)
class _Row:
    target: str
    baseline: bool
    compiled: CompiledModel
    matches: bool
    relative_l2: float
    median_ms: float


def run_demo(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Keep the network and the modules here.", show_default=False),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Target; repeat for several. By default cpu, and vulkan where there is a driver."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Compile a small Swin-style network with and without the elimination passes, verify both, show the difference."""
    from smartmem_mlir.zoo.demo import save_demo

    with tempfile.TemporaryDirectory() as temporary:
        folder = output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        model = folder / "demo.onnx"
        save_demo(model)
        rows = [
            _measure(model, name, baseline)
            for name in target or ["cpu", *_vulkan_if_present()]
            for baseline in (True, False)
        ]
        _print_rows(rows)
    if not all(row.matches for row in rows):
        raise typer.Exit(EXIT_MISMATCH)


def _vulkan_if_present() -> list[str]:
    from smartmem_mlir.iree.vulkan import vulkan_devices

    try:
        return ["vulkan"] if vulkan_devices() else []
    except DeviceError:
        return []


def _measure(model: Path, target: str, baseline: bool) -> _Row:
    from smartmem_mlir import api
    from smartmem_mlir.report.inputs import random_inputs

    kind = "plain IREE" if baseline else "SmartMem"
    with StageProgress() as progress:

        def stage(text: str) -> None:
            progress(f"{target}, {kind}: {text}")

        options = api.CompileOptions(target=target, baseline=baseline, progress=stage)
        compiled = api.compile(
            model, model.parent / f"{target}-{'baseline' if baseline else 'smartmem'}", force=True, options=options
        )
        result = compiled.verify(progress=stage)
        stage("timing")
        inputs = random_inputs([info.spec for info in compiled.report.inputs], 0)
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            compiled.run(inputs)
            times.append(time.perf_counter() - start)
    worst = max(d.relative_l2 for differences in result.by_seed.values() for d in differences)
    return _Row(target, baseline, compiled, result.matches, worst, sorted(times)[RUNS // 2] * 1e3)


def _print_rows(rows: list[_Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="demo: a Swin-style transformer, 1.4 M parameters, 112x112, f32")
    table.add_column("target")
    table.add_column("compiler")
    for name in ("kernels", "movement", "moved", "bytes", "ms", "rel. L2"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        flow = row.compiled.report.flow
        table.add_row(
            row.target,
            "plain IREE" if row.baseline else "SmartMem",
            str(flow.kernels),
            str(flow.movement_kernels),
            f"{flow.movement_bytes / 1e6:.2f} MB",
            f"{flow.total_bytes / 1e6:.1f} MB",
            f"{row.median_ms:.1f}",
            f"{row.relative_l2:.1e}" + ("" if row.matches else "  DIFFERS"),
        )
    console = Console()
    console.print(table)
    console.print(
        "kernels: IREE dispatches an inference; movement: those that compute nothing; moved: the bytes that these read "
        "and write; ms: median of ten runs here; rel. L2: distance from ONNX Runtime's outputs",
        style="dim",
    )
