"""What a campaign leaves behind: `results.json`, `results.md` and plots, each file whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from smartmem_mlir.bench.results import Campaign, Peak
from smartmem_mlir.bench.tables import markdown
from smartmem_mlir.errors import InvalidModelError, OptionError, SmartMemError
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
        from smartmem_mlir.bench import plots  # noqa: F401 - now, not after hours of measuring
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


def merge(campaigns: Sequence[Campaign]) -> Campaign:
    """One campaign from several on one machine, so that a long one can be run in parts.

    Models are joined; of a model in several, the last result counts. Limits of the machine are the highest seen.

    Raises:
        OptionError: They were run on different machines or in different ways.
    """
    first = campaigns[0]
    for other in campaigns[1:]:
        if other.settings != first.settings or other.host.cpu != first.host.cpu:
            raise OptionError("the campaigns were not run alike: machine or settings differ")
    peaks = [
        Peak(
            threads=threads,
            gflops=max(found.gflops for c in campaigns if (found := c.peak(threads)) is not None),
            gbytes_per_s=max(found.gbytes_per_s for c in campaigns if (found := c.peak(threads)) is not None),
        )
        for threads in first.settings.threads
        if any(c.peak(threads) is not None for c in campaigns)
    ]
    models = {model.facts.name: model for c in campaigns for model in c.models}
    skipped = {name: error for c in campaigns for name, error in c.skipped.items() if name not in models}
    noisiest = max((c.host for c in campaigns), key=lambda host: host.load_before)
    changes = {"models": tuple(models.values()), "skipped": skipped, "peaks": tuple(peaks), "host": noisiest}
    # A campaign may itself be one of several.
    commits = list(dict.fromkeys(commit for c in campaigns for commit in (c.commit or "unknown").split(", ")))
    return first.model_copy(update={**changes, "commit": ", ".join(commits)})


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
