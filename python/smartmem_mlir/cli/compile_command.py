"""`smartmem compile`."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from smartmem_mlir.cli.config_file import use_config
from smartmem_mlir.cli.logs import show_log
from smartmem_mlir.cli.options import Debug, TrustModel, parse_dims, warn_of_trust
from smartmem_mlir.cli.progress import StageProgress
from smartmem_mlir.errors import EXIT_MISMATCH, OptionError


class DType(str, Enum):
    """Floating-point types to compute in."""

    F32 = "f32"
    F16 = "f16"


class OptLevel(str, Enum):
    """IREE's optimisation levels."""

    O0 = "O0"
    O1 = "O1"
    O2 = "O2"
    O3 = "O3"


class LayoutChoice(str, Enum):
    """Ways to choose layouts."""

    SOLVER = "solver"
    PAPER = "paper"


class StorageChoice(str, Enum):
    """Memories of tensors."""

    BUFFER = "buffer"
    IMAGE = "image"
    AUTO = "auto"


class EntryChoice(str, Enum):
    """Who provides memory for results and intermediates."""

    PLAIN = "plain"
    IN_PLACE = "in-place"


class EmitStage(str, Enum):
    """Stages whose text `--emit` prints."""

    IMPORT = "import"
    PASSES = "passes"
    IREE = "iree"
    FLOW = "flow"


def compile_model(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx, .pt2 or .mlir file.", show_default=False)],
    target: Annotated[str, typer.Option("--target", "-t", help="A target's name or its YAML description.")] = "cpu",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Output directory; MODEL-TARGET by default.", show_default=False),
    ] = None,
    dim: Annotated[
        list[str], typer.Option(metavar="NAME=SIZE", help="Size of a symbolic dimension; repeat as needed.")
    ] = [],  # noqa: B006 - typer copies it
    dtype: Annotated[
        DType | None, typer.Option(help="Floating-point type to compute in; the model's own by default.")
    ] = None,
    baseline: Annotated[bool, typer.Option("--baseline", help="Plain IREE on the same import: the yardstick.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare with the model's framework afterwards; exit 1 on a mismatch.")
    ] = False,
    emit: Annotated[
        EmitStage | None,
        typer.Option(help="Print the module at this stage (to -o, if given) and stop.", show_default=False),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(help="A pass pipeline's name or its YAML file; the target's own by default.", show_default=False),
    ] = None,
    layouts: Annotated[
        LayoutChoice | None,
        typer.Option(
            help="How to choose layouts: the cheapest of all, or the paper's rule; the pipeline's own by default.",
            show_default=False,
        ),
    ] = None,
    storage: Annotated[
        StorageChoice | None,
        typer.Option(
            help="Where tensors of generated shaders live; by default what costs least on the target.",
            show_default=False,
        ),
    ] = None,
    opt_level: Annotated[
        OptLevel | None,
        typer.Option(help="IREE's optimisation level; the target's own by default.", show_default=False),
    ] = None,
    entry: Annotated[
        EntryChoice,
        typer.Option(
            help="Who provides memory for results and intermediates: the module, or its caller (fastest on a GPU)."
        ),
    ] = EntryChoice.PLAIN,
    repair: Annotated[
        bool,
        typer.Option("--repair/--no-repair", help="Mend the Vulkan kernels that IREE makes wrongly."),
    ] = True,
    check: Annotated[
        bool, typer.Option("--check", help="Prove every rewrite of the passes; exit 2 if a proof fails.")
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds after which a run of iree-compile is stopped.")
    ] = 1800.0,
    trust_model: TrustModel = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an output directory that holds other files.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Take options from a .toml or .yaml file; what is given here comes first.",
            callback=use_config,
            is_eager=True,
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Show every stage with its time; twice, the log as well.")
    ] = 0,
    debug: Debug = False,
) -> None:
    """Compile a model to a directory: model.vmfb, params.irpa, report.json, model.mlir."""
    from smartmem_mlir import api
    from smartmem_mlir.cli import tables

    if emit is not None and verify:
        raise OptionError("--emit stops before there is a module to verify", hint="give one of --emit and --verify")
    warn_of_trust(model, trust_model)
    show_log(verbose)
    with StageProgress(verbose=verbose > 0) as progress:
        options = api.CompileOptions(
            target=target,
            dims=parse_dims(dim),
            dtype=dtype.value if dtype else None,
            baseline=baseline,
            pipeline=pipeline,
            layouts=layouts.value if layouts else None,
            storage=storage.value if storage else None,
            opt_level=opt_level.value if opt_level else None,
            entry=entry.value,
            repair=repair,
            check=check,
            timeout_s=timeout,
            trusted=trust_model,
            progress=progress,
        )
        if emit is not None:
            text = api.emit(model, emit.value, options)
        else:
            compiled = api.compile(model, output, force=force, options=options)
            result = compiled.verify(trusted=trust_model, progress=progress) if verify else None
    if emit is not None:
        _write_text(text, output)
        return
    tables.print_compiled(compiled)
    if result is not None:
        tables.print_verification(result)
        if not result.matches:
            raise typer.Exit(EXIT_MISMATCH)


def _write_text(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    from smartmem_mlir.report.directory import explain_os_errors

    with explain_os_errors(output):
        output.write_text(text)
