"""Options that several commands share, and the parsing of `name=value`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from smartmem_mlir.errors import OptionError

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="A directory that `smartmem compile` wrote.", show_default=False)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
TrustModel = Annotated[
    bool,
    typer.Option(
        "--trust-model", help="Load a .pt2 archive although torch RUNS CODE FROM IT: only for files that you made."
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        help="cpu, local-task, local-sync, vulkan, vulkan://INDEX or vulkan://GPU-UUID; the first by default.",
        show_default=False,
    ),
]


def warn_of_trust(model: Path, trusted: bool) -> None:
    """Say on stderr that a file is about to run code, if it is of the kind that can."""
    if trusted and model.suffix == ".pt2":
        typer.echo(f"smartmem: warning: {model}: trusted, torch runs code from it with your rights", err=True)


def parse_assignments(option: str, values: Sequence[str]) -> dict[str, str]:
    """`name=value` pairs of a repeated option.

    Raises:
        OptionError: A value has no `=`, or a name is given twice.
    """
    pairs: dict[str, str] = {}
    for value in values:
        # The last "=": names of tensors may contain one, sizes and most paths do not.
        name, separator, given = value.rpartition("=")
        if not separator or not name or not given:
            raise OptionError(f"{option} {value}: expected NAME=VALUE")
        if name in pairs:
            raise OptionError(f"{option} {value}: '{name}' is given twice")
        pairs[name] = given
    return pairs


def parse_dims(values: Sequence[str]) -> dict[str, int]:
    """Sizes of symbolic dimensions from `--dim name=value`.

    Raises:
        OptionError: A value is not a positive number of a sensible size.
    """
    dims = {}
    for name, text in parse_assignments("--dim", values).items():
        # More than 2**31 elements along one axis is no tensor of an inference.
        if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 31:
            raise OptionError(f"--dim {name}={text}: expected a positive integer below 2**31")
        dims[name] = int(text)
    return dims
