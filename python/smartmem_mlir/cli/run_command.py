"""`smartmem run`."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smartmem_mlir.cli.options import Debug, Device, Directory, parse_assignments
from smartmem_mlir.cli.progress import StageProgress
from smartmem_mlir.errors import InvalidModelError, OptionError

if TYPE_CHECKING:
    from smartmem_mlir.api import CompiledModel


def run_model(
    directory: Directory,
    input: Annotated[
        list[str],
        typer.Option(
            "--input",
            "-i",
            metavar="[NAME=]FILE.npy",
            help="An input, by name or in order; repeat. Without any, inputs are random.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    device: Device = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Directory for the outputs, one NAME.npy each.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random inputs.")] = 0,
    debug: Debug = False,
) -> None:
    """Run a compiled model once."""
    from smartmem_mlir import api
    from smartmem_mlir.cli import tables
    from smartmem_mlir.report.inputs import random_inputs

    compiled = api.load(directory)
    with StageProgress() as progress:
        arrays: Any = _read_inputs(compiled, input)
        if not input:
            arrays = random_inputs([info.spec for info in compiled.report.inputs], seed)
        progress("loading the module and running it")
        started = time.monotonic()
        outputs = compiled.run(arrays, device)
        seconds = time.monotonic() - started
    if not input and compiled.report.inputs:
        tables.note(f"inputs are random (seed {seed}); give them with --input NAME=FILE.npy")
    tables.print_outputs(outputs, seconds)
    if output is not None:
        _write_outputs(outputs, output)


def _read_inputs(compiled: CompiledModel, values: list[str]) -> Any:
    named = [value for value in values if "=" in value and not Path(value).is_file()]
    if named and len(named) != len(values):
        raise OptionError("some inputs are given by name and some in order", hint="name all of them: NAME=FILE.npy")
    if named:
        return {name: _read_array(Path(path)) for name, path in parse_assignments("--input", values).items()}
    return [_read_array(Path(path)) for path in values]


def _read_array(path: Path) -> Any:
    import numpy as np

    if not path.is_file():
        raise OptionError("no such file", hint="give an input as NAME=FILE.npy", file=path)
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidModelError(f"not a .npy array: {' '.join(str(error).split())}", file=path) from error
    if not isinstance(values, np.ndarray):
        raise InvalidModelError("an archive of arrays, expected one array", hint="save it with numpy.save", file=path)
    return values


def _write_outputs(outputs: dict[str, Any], folder: Path) -> None:
    import numpy as np

    from smartmem_mlir.report.directory import explain_os_errors

    with explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for position, (name, values) in enumerate(outputs.items()):
            stem = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".") or f"output{position}"
            np.save(folder / f"{stem}.npy", values)
