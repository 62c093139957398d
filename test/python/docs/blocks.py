"""The fenced blocks of a page, and running them as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        kind: What stands behind the fence.
        text: What stands inside, with a line break at the end.
    """

    kind: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    return [Block(kind.strip(), text) for kind, text in _FENCE.findall(page.read_text())]


def run(block: Block, folder: Path) -> str:
    """Runs a block in a folder, with this environment's commands; returns what it printed, and fails where it fails."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    commands = {"sh": ["bash", "-euc", block.text], "python": [sys.executable, "-c", block.text]}
    done = subprocess.run(
        commands[block.kind], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
    return done.stdout
