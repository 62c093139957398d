"""`smartmem inspect`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from smartmem_mlir.cli.options import Debug, Directory


def inspect_model(
    directory: Directory,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show the kernels of a compiled model and the bytes they move, counted on IREE's flow IR."""
    from smartmem_mlir import api
    from smartmem_mlir.cli import tables

    compiled = api.load(directory)
    if as_json:
        flow = json.loads(compiled.report.flow.model_dump_json())
        layouts = json.loads(compiled.report.model_dump_json(include={"layouts"}))
        head = {"target": compiled.report.target.name, "baseline": compiled.report.baseline}
        json.dump({**head, **flow, **layouts}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        tables.print_flow(compiled)
