"""`certificates.json`: what was rewritten, and the claim that justifies it.

The file is text that can be proved without the compiler: views in the syntax of `text.py`, claims that refer to them by
number, and for each rewrite the pass, the source model's nodes and its claim. Equal views and equal claims are written
once, which keeps the file of a model of repeated blocks small and its proof short.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from smartmem_mlir.index_maps.certificates import Certificate
from smartmem_mlir.index_maps.errors import IndexMapError
from smartmem_mlir.index_maps.movement_claims import MovementClaim
from smartmem_mlir.index_maps.text import parse_view, print_view
from smartmem_mlir.index_maps.view import View

FORMAT: Final = "smartmem-certificates"
FORMAT_VERSION: Final = 1

Claim: TypeAlias = Certificate | MovementClaim


@dataclass(frozen=True)
class Rewrite:
    """One rewrite of a pass.

    Args:
        transform: Argument of the pass.
        nodes: Names of the source model's nodes that the rewritten operation stands for.
        operation: Name of the rewritten operation.
        claim: Why it was right.
    """

    transform: str
    nodes: tuple[str, ...]
    operation: str
    claim: Claim

    def __str__(self) -> str:
        return f"{self.transform} of {self.operation} {', '.join(self.nodes) or '(no source node)'}"


@dataclass(frozen=True)
class Failure:
    """A claim that does not hold, or that could not be decided (`what` says which), with a rewrite that rests on it."""

    rewrite: Rewrite
    what: str


def check_rewrites(rewrites: Sequence[Rewrite], progress: Callable[[int, int], None] | None = None) -> list[Failure]:
    """Prove every claim once.

    Args:
        rewrites: What was rewritten.
        progress: Told how many claims of how many have been looked at.

    Returns:
        One failure for each claim that is false, malformed or undecided.
    """
    first: dict[Claim, Rewrite] = {}
    for rewrite in rewrites:
        first.setdefault(rewrite.claim, rewrite)
    failures = []
    for done, (claim, rewrite) in enumerate(first.items()):
        if progress is not None:
            progress(done, len(first))
        try:
            if not claim.check():
                failures.append(Failure(rewrite, "the claim is false"))
        except IndexMapError as error:
            failures.append(Failure(rewrite, error.message()))
    return failures


def dump_rewrites(rewrites: Iterable[Rewrite]) -> str:
    """The text of `certificates.json`."""
    views: dict[View, int] = {}
    claims: dict[Claim, int] = {}
    written: dict[tuple[str, tuple[str, ...], str, int], None] = {}
    for rewrite in rewrites:
        claim = claims.setdefault(rewrite.claim, len(claims))
        written.setdefault((rewrite.transform, rewrite.nodes, rewrite.operation, claim))
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "claims": [_dump_claim(claim, views) for claim in claims],
        "views": [print_view(view) for view in views],
        "rewrites": [
            {"pass": transform, "nodes": list(nodes), "operation": operation, "claim": claim}
            for transform, nodes, operation, claim in written
        ],
    }
    # One entry a line: a diff of two compilations shows which rewrites differ.
    sections = [f"{json.dumps(key)}: {_dump_lines(value)}" for key, value in content.items()]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def _dump_lines(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in value) + "\n]"


def _dump_claim(claim: Claim, views: dict[View, int]) -> dict[str, Any]:
    def number(view: View) -> int:
        return views.setdefault(view, len(views))

    if isinstance(claim, MovementClaim):
        return {"operation": claim.operation, "attributes": dict(claim.attributes), "view": number(claim.view)}
    content: dict[str, Any] = {"chain": [number(view) for view in claim.chain], "after": number(claim.after)}
    if any(claim.operands):
        content["operands"] = list(claim.operands)
    if claim.through:
        content["through"] = [number(view) for view in claim.through]
    if claim.sources is not None:
        content["sources"] = list(claim.sources)
    return content


def parse_rewrites(text: str | bytes) -> list[Rewrite]:
    """Reads what :func:`dump_rewrites` wrote.

    Raises:
        IndexMapError: The text is not such a file.
    """
    try:
        content = json.loads(text)
        if content.get("format") != FORMAT or content.get("version") != FORMAT_VERSION:
            raise IndexMapError(f"not a file of certificates of version {FORMAT_VERSION}")
        views = [parse_view(view) for view in content["views"]]
        claims = [_parse_claim(claim, views) for claim in content["claims"]]
        return list(_parse_entries(content["rewrites"], claims))
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise IndexMapError(f"malformed certificates: {error!r}") from error


def _parse_claim(data: dict[str, Any], views: Sequence[View]) -> Claim:
    if "operation" in data:
        return MovementClaim.from_json({**data, "view": print_view(_at(views, data["view"]))})
    chain = tuple(_at(views, view) for view in data["chain"])
    return Certificate(
        chain,
        tuple(map(int, data.get("operands", [0] * (len(chain) - 1)))),
        _at(views, data["after"]),
        through=tuple(_at(views, view) for view in data.get("through", ())),
        sources=tuple(map(int, data["sources"])) if "sources" in data else None,
    )


def _parse_entries(entries: Sequence[dict[str, Any]], claims: Sequence[Claim]) -> Iterator[Rewrite]:
    for entry in entries:
        nodes = tuple(str(node) for node in entry["nodes"])
        yield Rewrite(str(entry["pass"]), nodes, str(entry["operation"]), _at(claims, entry["claim"]))


def _at(items: Sequence[Any], position: int) -> Any:
    if not 0 <= position < len(items):
        raise IndexError(f"no entry {position} among {len(items)}")
    return items[position]
