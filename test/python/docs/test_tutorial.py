"""The tutorial's blocks run as they stand, one after the other, in an empty folder; options in the docs exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from blocks import ROOT, blocks_of, run
from typer.core import TyperGroup

from smartmem_mlir.cli.app import app

NOT_RUN = {
    (
        "console",
        "pip install dist/smartmem_mlir-*.whl",
    ): "needs a wheel; `make wheel-check` does it",
    ("sh", "smartmem doctor"): "fails where this machine lacks something, which is not the tutorial's fault",
    ("python no-run", "compiled = smartmem_mlir.compile(module, (x,), target="): "needs PyTorch; test_torch_backend.py",
}
"""How blocks begin that are not executed, and why."""


@pytest.mark.slow
def test_every_block_of_the_tutorial_runs(tmp_path: Path) -> None:
    left_out = []
    for block in blocks_of(ROOT / "docs" / "tutorial.md"):
        exception = next(
            (key for key in NOT_RUN if (block.kind, True) == (key[0], block.text.startswith(key[1]))), None
        )
        if exception is None:
            run(block, tmp_path)
        else:
            left_out.append(exception)
    assert sorted(left_out) == sorted(NOT_RUN)
    assert (tmp_path / "block.html").stat().st_size > 10_000
    assert (tmp_path / "results").is_dir()
    assert (tmp_path / "block-phone" / "model.vmfb").is_file()
    assert (tmp_path / "block-vulkan" / "model.vmfb").is_file()


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"], ids=lambda path: path.name
)
def test_options_of_commands_in_the_docs_exist(page: Path) -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for line in re.findall(r"^(?:\$ )?smartmem ([^#\n]*)", page.read_text(), re.MULTILINE):
        name, *words = shlex.split(line)
        if name.startswith("-") or name in ("COMMAND", "zoo", "bench"):
            continue
        known = {option for parameter in group.commands[name].params for option in parameter.opts}
        used = {word.strip("[]").split("=")[0] for word in words if word.strip("[").startswith("-")}
        assert used <= known, line
