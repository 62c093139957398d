"""What was converted and compiled before, so that it need not be done on the quiet machine, nor twice."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from smartmem_mlir.bench.peer_process import FailureKind, PeerError

_NOTE = "prepared.json"


class _Note(BaseModel):
    """What lies in a folder: the artifact, or why there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stamp: str
    artifact: str | None = None
    seconds: float = 0.0
    failure: FailureKind | None = None
    message: str = ""


def stamp_of(*parts: object) -> str:
    """A digest of what an artifact depends on; contents of files, where a part is a path of one."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else json.dumps(part, default=str).encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


@cache
def package_sources() -> tuple[Path, ...]:
    """What compiles: this package's modules, without the harness, and the pipelines that it has by name."""
    package = Path(__file__).resolve().parents[1]
    modules = (path for path in package.rglob("*.py") if package / "bench" not in path.parents)
    return tuple(sorted([*modules, *package.rglob("*.yaml")]))


def prepared(folder: Path, stamp: str, make: Callable[[], tuple[Path, float]]) -> tuple[Path, float]:
    """What `make` makes, or made before from the same.

    Args:
        folder: Folder of the artifact; the note beside it says what it holds.
        stamp: See :func:`stamp_of`.
        make: Makes the artifact in the folder and returns it with the seconds that took.

    Raises:
        PeerError: It cannot be made, now or then.
    """
    file = folder.with_name(f"{folder.name}.{_NOTE}")
    note = _read(file)
    if note is not None and note.stamp == stamp:
        if note.failure is not None:
            raise PeerError(note.failure, note.message)
        if note.artifact is not None and Path(note.artifact).exists():
            return Path(note.artifact), note.seconds
    shutil.rmtree(folder, ignore_errors=True)
    file.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        artifact, seconds = make()
    except PeerError as failure:
        # The next time the machine may be less busy, or the limit another.
        if failure.kind != "timed out":
            file.write_text(_Note(stamp=stamp, failure=failure.kind, message=failure.message).model_dump_json())
        raise
    file.write_text(_Note(stamp=stamp, artifact=str(artifact), seconds=seconds).model_dump_json())
    return artifact, seconds


def _read(file: Path) -> _Note | None:
    """None if there is none, or none that was written whole."""
    try:
        return _Note.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
