"""What a failing compilation leaves behind, so that it can be repeated without us."""

from __future__ import annotations

from pathlib import Path


def leave_reproducer(folder: Path, source: Path, command: str, messages: str) -> str:
    """Write `input.mlir`, `command.sh` and `stderr.txt`.

    Args:
        folder: Where; it is created.
        source: The input of the command that failed.
        command: Shell text that repeats the failure when it is run in `folder`.
        messages: What the failing command said.

    Returns:
        A hint that says where the reproducer is, or why there is none.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "input.mlir").write_bytes(source.read_bytes())
        script = folder / "command.sh"
        script.write_text(f'#!/bin/sh\ncd "$(dirname "$0")" || exit\n{command}\n')
        script.chmod(0o755)
        (folder / "stderr.txt").write_text(messages)
    except OSError as error:
        return f"no reproducer could be written to {folder}: {error.strerror}"
    return f"reproduce it with {script}"
