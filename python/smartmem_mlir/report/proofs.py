"""Proving the certificates of a compilation again, from their text alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.index_maps.errors import IndexMapError, UnprovedRewriteError
from smartmem_mlir.index_maps.evidence import check_rewrites, parse_rewrites
from smartmem_mlir.report.directory import CERTIFICATES

MAX_BYTES = 256 << 20


@dataclass(frozen=True)
class Proofs:
    """What was proved.

    Args:
        rewrites: Rewrites of the passes, equal ones counted once.
        claims: Distinct claims that justify them, each proved once.
    """

    rewrites: int
    claims: int


def prove_certificates(text: str | bytes, file: Path | None, progress: Callable[[str], None]) -> Proofs:
    """Prove every claim of a `certificates.json`.

    Args:
        text: Its content.
        file: The file, for errors.
        progress: Told how far it is.

    Raises:
        InvalidModelError: The text is not a file of certificates.
        UnprovedRewriteError: A claim is false or could not be decided; names the first node that rests on one.
    """
    try:
        rewrites = parse_rewrites(text)
    except IndexMapError as error:
        raise InvalidModelError(error.what, hint="compile the model again", file=file) from error

    def told(done: int, count: int) -> None:
        if done % 100 == 0:
            progress(f"proving rewrites, {done} of {count}")

    failures = check_rewrites(rewrites, told)
    if failures:
        rewrite, others = failures[0].rewrite, len(failures) - 1
        raise UnprovedRewriteError(
            f"{rewrite.transform} rewrote {rewrite.operation} and the proof fails: {failures[0].what}"
            + (f" ({others} more claims fail)" if others else ""),
            hint="the module may compute something else; report this with the certificates",
            file=file,
            node=", ".join(rewrite.nodes) or None,
        )
    return Proofs(len(rewrites), len({rewrite.claim for rewrite in rewrites}))


def check_directory(folder: Path, progress: Callable[[str], None]) -> Proofs:
    """Prove the certificates of a directory that `compile` wrote.

    Raises:
        InvalidModelError: There are none, or they are damaged.
        UnprovedRewriteError: As for :func:`prove_certificates`.
    """
    path = folder / CERTIFICATES
    if not path.is_file():
        raise InvalidModelError(
            "the file is missing", hint="name a directory that `smartmem compile` wrote, without --baseline", file=path
        )
    with path.open("rb") as stream:
        text = stream.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise InvalidModelError(f"more than {MAX_BYTES} bytes of certificates", file=path)
    return prove_certificates(text, path, progress)
