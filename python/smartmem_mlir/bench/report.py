"""What a campaign leaves behind: `results.json`, `results.md` and plots, each file whole or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from smartmem_mlir.bench.results import Campaign
from smartmem_mlir.bench.tables import markdown
from smartmem_mlir.errors import InvalidModelError, SmartMemError
from smartmem_mlir.report.directory import explain_os_errors

JSON, MARKDOWN = "results.json", "results.md"


def prepare_folder(output: Path) -> None:
    """Make the folder before hours are spent on what could not be written.

    Raises:
        SmartMemError: It cannot be made or written to, or plots cannot be drawn.
    """
    with explain_os_errors(output):
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output):
            pass
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise SmartMemError("plots need matplotlib", hint="pip install 'smartmem-mlir[bench]'") from error


def write_json(campaign: Campaign, output: Path) -> None:
    """Write `results.json`."""
    _write(output / JSON, campaign.model_dump_json(indent=1) + "\n")


def read_json(path: Path) -> Campaign:
    """Read a `results.json`.

    Raises:
        InvalidModelError: It is missing or not one of ours.
    """
    try:
        return Campaign.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise InvalidModelError(f"not a result of `smartmem bench`: {error}", file=path) from error


def write(campaign: Campaign, output: Path) -> None:
    """Write everything."""
    from smartmem_mlir.bench.plots import draw

    write_json(campaign, output)
    figures = draw(campaign, output)
    images = "".join(f"\n![{path.stem.replace('-', ' ')}]({path.name})\n" for path in figures)
    _write(output / MARKDOWN, markdown(campaign) + images)


def _write(path: Path, text: str) -> None:
    with explain_os_errors(path):
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w") as stream:
                stream.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
