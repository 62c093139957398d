"""`smartmem verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smartmem_mlir.cli.options import Debug, Device, Directory, TrustModel, warn_of_trust
from smartmem_mlir.cli.progress import StageProgress
from smartmem_mlir.errors import EXIT_MISMATCH


def verify_model(
    directory: Directory,
    device: Device = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first set of random inputs.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="How many sets of inputs.")] = 3,
    model: Annotated[
        Path | None, typer.Option(help="The model file, if it has moved since.", show_default=False)
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Largest accepted relative L2 distance; 1e-4 for f32, 2e-2 for f16.", show_default=False
        ),
    ] = None,
    trust_model: TrustModel = False,
    debug: Debug = False,
) -> None:
    """Compare a compiled model with the framework that it came from; exit 1 if they differ."""
    from smartmem_mlir import api
    from smartmem_mlir.cli import tables

    compiled = api.load(directory)
    warn_of_trust(model or Path(compiled.report.source.path or ""), trust_model)
    with StageProgress() as progress:
        result = compiled.verify(
            device=device,
            seeds=range(seed, seed + seeds),
            model=model,
            tolerance=tolerance,
            trusted=trust_model,
            progress=progress,
        )
    tables.print_verification(result)
    if not result.matches:
        raise typer.Exit(EXIT_MISMATCH)
