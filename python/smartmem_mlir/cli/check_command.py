"""`smartmem check`."""

from __future__ import annotations

from smartmem_mlir.cli.options import Debug, Directory
from smartmem_mlir.cli.progress import StageProgress


def check_model(directory: Directory, debug: Debug = False) -> None:
    """Prove again, from certificates.json alone, that every rewrite of the passes was right; exit 2 if one was not."""
    from smartmem_mlir import api
    from smartmem_mlir.cli import tables

    with StageProgress() as progress:
        proofs = api.check(directory, progress)
    tables.print_proofs(proofs)
