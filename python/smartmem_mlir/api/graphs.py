"""The graphs of a compiled model, for pages and other viewers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from smartmem_mlir.api.compilation import import_model
from smartmem_mlir.api.compiled_model import CompiledModel
from smartmem_mlir.api.options import CompileOptions, Progress, compiler_options
from smartmem_mlir.api.verification import source_of
from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.report.graph.build import graph_after, graph_before
from smartmem_mlir.report.graph.membership import join
from smartmem_mlir.report.graph.model import Graph
from smartmem_mlir.report.measure import KernelTime


def graphs_of(
    compiled: CompiledModel,
    times: Mapping[str, KernelTime] | None = None,
    model: Path | None = None,
    trusted: bool = False,
    progress: Progress = lambda stage: None,
) -> tuple[dict[str, Graph], SmartMemError | None]:
    """The graph "after" compilation and, where the model's file is at hand, "before".

    Args:
        compiled: The model.
        times: Measured times by the kernel's name.
        model: The model's file, if it has moved since.
        trusted: Whether the file may run code while it is read, as `.pt2` archives can.
        progress: Told what happens next.

    Returns:
        The graphs, and why "before" is missing if it is.

    Raises:
        CompilerError: iree-compile fails, or its IR cannot be read.
    """
    report = compiled.report
    progress("forming kernels")
    graphs = {"after": graph_after(compiled.path, report, compiler_options(CompileOptions(), compiled.path), times)}
    try:
        options = CompileOptions(dims=report.source.dims, dtype=report.source.dtype, trusted=trusted)
        imported = import_model(source_of(report, model), options, progress)
        graphs["before"], graphs["after"] = join(graph_before(imported.module, report.movements), graphs["after"])
    except SmartMemError as error:
        return graphs, error
    return graphs, None
