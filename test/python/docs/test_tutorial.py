"""The tutorial's blocks run as they stand, one after the other, in an empty folder; options in the docs exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from smartmem_mlir.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_block_of_the_tutorial_runs(tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text())
    assert [kind for kind, _ in blocks].count("sh") >= 6
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    for kind, text in blocks:
        # `smartmem doctor` says what this machine lacks, which is not the tutorial's fault.
        if text.strip() == "smartmem doctor":
            continue
        command = ["bash", "-euc", text] if kind == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
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
