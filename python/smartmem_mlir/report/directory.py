"""The output directory: written whole or not at all, and believed only if it is whole."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from smartmem_mlir.errors import InvalidModelError, OptionError, SmartMemError
from smartmem_mlir.report.schema import FORMAT, FORMAT_VERSION, FileInfo, Report, digest, dump
from smartmem_mlir.targets.documents import describe_validation_error

VMFB, PARAMETERS, MODULE, CERTIFICATES, REPORT = (
    "model.vmfb",
    "params.irpa",
    "model.mlir",
    "certificates.json",
    "report.json",
)
MAX_REPORT_BYTES = 64 << 20
_RECOMPILE = "compile the model again"


@contextmanager
def atomic_directory(target: Path, force: bool) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when the block ends well and vanishes when it does not.

    Args:
        target: The directory to make. An existing one is replaced if it is empty, ours, or `force` is set.
        force: Replace a directory with other people's files.

    Raises:
        OptionError: `target` exists and is not ours.
        SmartMemError: It cannot be written: no permission, disk full.
    """
    target = target.absolute()
    check_replaceable(target, force)
    # Beside the target, so that the rename stays on one file system. Named before it is made: a signal between the
    # two leaves nothing that is not removed below.
    folder = target.parent / f"{_staging_prefix(target)}{os.getpid()}.{secrets.token_hex(4)}"
    try:
        with explain_os_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(target)
            folder.mkdir(mode=0o700)
            yield folder
            folder.chmod(0o755)
            _replace(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _staging_prefix(target: Path) -> str:
    return f".{target.name}.staging."


def _remove_abandoned(target: Path) -> None:
    """Removes what a compilation to the same directory left behind that was killed: its process is no more."""
    prefix = _staging_prefix(target)
    for folder in target.parent.glob(f"{glob.escape(prefix)}*"):
        number, _, _ = folder.name.removeprefix(prefix).partition(".")
        if number.isdecimal() and folder.is_dir() and not folder.is_symlink() and not _runs(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # somebody else's, or not to be known
    return True


def check_replaceable(target: Path, force: bool) -> None:
    """Refuse an output directory that holds somebody else's files.

    Raises:
        OptionError: `target` is a file, a foreign directory without `force`, or one that must never be replaced.
    """
    target = target.absolute()
    if not target.exists():
        return
    if not target.is_dir():
        raise OptionError("the output exists and is not a directory", hint="choose another with -o", file=target)
    if target.resolve() in (Path.cwd().resolve(), *Path.cwd().resolve().parents, Path.home().resolve()):
        raise OptionError(
            "the output is the current directory, one above it or the home directory",
            hint="choose a subdirectory with -o",
            file=target,
        )
    if not force and any(target.iterdir()) and not _is_ours(target):
        raise OptionError(
            "the output directory holds files that smartmem did not write",
            hint="choose another with -o, or pass --force to replace it",
            file=target,
        )


@contextmanager
def explain_os_errors(target: Path) -> Iterator[None]:
    """Turn what the operating system says about writing `target` into an error for the user."""
    try:
        yield
    except OSError as error:
        hints = {
            errno.ENOSPC: "free some space",
            errno.EDQUOT: "free some space",
            errno.EFBIG: "raise the file size limit",
            errno.EEXIST: "a file is in the way; choose another directory with -o",
            errno.ENOTDIR: "a file is in the way; choose another directory with -o",
            errno.EACCES: "choose another directory with -o",
            errno.EPERM: "choose another directory with -o",
            errno.EROFS: "choose another directory with -o",
        }
        what = (error.strerror or str(error)).lower()
        raise SmartMemError(f"cannot write: {what}", hint=hints.get(error.errno or 0), file=target) from error


def write_report(folder: Path, report: Report) -> None:
    """Write `report.json`, the last file of the directory."""
    (folder / REPORT).write_text(dump(report))


def describe_file(path: Path, hashed: bool) -> FileInfo:
    """Size and, if `hashed`, SHA-256 of a file."""
    return FileInfo(bytes=path.stat().st_size, sha256=sha256(path) if hashed else None)


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest_of = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest_of.update(chunk)
    return digest_of.hexdigest()


def read_directory(folder: Path) -> Report:
    """Open an output directory.

    Raises:
        InvalidModelError: It is not ours, incomplete, edited by hand, or from another version.
    """
    if not folder.is_dir():
        raise InvalidModelError("no such directory", hint="name one that `smartmem compile` wrote", file=folder)
    report = _read_report(folder / REPORT)
    for name, info in report.files.items():
        path = folder / name
        if not path.is_file():
            raise InvalidModelError("the file is missing", hint=_RECOMPILE, file=path)
        if path.stat().st_size != info.bytes:
            raise InvalidModelError(
                f"the file has {path.stat().st_size} bytes, {info.bytes} were written", hint=_RECOMPILE, file=path
            )
        if info.sha256 is not None and sha256(path) != info.sha256:
            raise InvalidModelError("the file is not the one that was written", hint=_RECOMPILE, file=path)
    return report


def _read_report(path: Path) -> Report:
    if not path.is_file():
        raise InvalidModelError("the file is missing", hint="name a directory that `smartmem compile` wrote", file=path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_REPORT_BYTES + 1)
        content = json.loads(data) if len(data) <= MAX_REPORT_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidModelError(f"not a report: {error}", hint=_RECOMPILE, file=path) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidModelError("not a report of smartmem", hint=_RECOMPILE, file=path)
    if content.get("version") != FORMAT_VERSION:
        raise InvalidModelError(
            f"a report of version {content.get('version')}, this smartmem reads {FORMAT_VERSION}",
            hint=_RECOMPILE,
            file=path,
        )
    if content.get("digest") != digest(content):
        raise InvalidModelError("the report was edited or damaged", hint=_RECOMPILE, file=path)
    del content["digest"]
    try:
        return Report.model_validate(content)
    except ValidationError as error:
        what = f"bad report: {describe_validation_error(error)}"
        raise InvalidModelError(what, hint=_RECOMPILE, file=path) from error


def _is_ours(folder: Path) -> bool:
    try:
        content = json.loads((folder / REPORT).read_bytes())
    except (OSError, ValueError):
        return False
    known = {VMFB, PARAMETERS, MODULE, CERTIFICATES, REPORT}
    return (
        isinstance(content, dict)
        and content.get("format") == FORMAT
        and all(entry.name in known for entry in folder.iterdir())
    )


def _replace(folder: Path, target: Path) -> None:
    """Rename `folder` to `target`; a former directory there is moved aside first and put back on failure."""
    if not target.exists():
        os.rename(folder, target)
        return
    shelter = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    os.rename(target, shelter / target.name)
    try:
        os.rename(folder, target)
    except OSError:
        os.rename(shelter / target.name, target)
        shelter.rmdir()
        raise
    shutil.rmtree(shelter, ignore_errors=True)
