"""What became of each data-movement operator of the source model."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from smartmem_mlir.ingress.model import ImportedModel
from smartmem_mlir.transforms.evidence import Fate, source_name

Verdict = Literal["eliminated", "kept", "constant"]

MOVEMENT_OPERATORS: Final = frozenset(
    {
        "CenterCropPad",
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Pad",
        "Reshape",
        "ReverseSequence",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
"""ONNX operators that only move elements."""

MAX_NAMED = 3
"""Operators that one explanation names."""


class Movement(BaseModel):
    """A data-movement operator of the source model.

    Args:
        node: Its name in the model.
        operator: Its kind there, such as `Transpose`; empty for models that are not ONNX.
        verdict: "eliminated": no operation of its own is left; "kept": it became a copy or a gather; "constant": its
            value, or that it moves nothing, was known when the model was imported.
        into: The operators of the source model that read or write through it.
        map: The index map by which they do, of all that was composed into one view; empty where there is none.
        how: What was done, as a sentence.
        by: The pass that decided.
        location: Where the source model has it, as far as the model tells.
        bytes: What a kernel of its own would read and write: twice the size of its result; 0 where it is not known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str
    operator: str
    verdict: Verdict
    into: tuple[str, ...] = ()
    map: str = ""
    how: str
    by: str = ""
    location: str = ""
    bytes: int = 0


def explain(
    nodes: Sequence[tuple[str, str]] | None, module: str, fates: Iterable[Fate], baseline: bool
) -> tuple[Movement, ...]:
    """A verdict for each data-movement operator.

    Args:
        nodes: Name and operator of each, in the model's order; None if the model is not at hand: then those that became
            views.
        module: The imported module's text, with locations.
        fates: What the passes did.
        baseline: Whether no pass ran.
    """
    by_node: dict[str, list[Fate]] = defaultdict(list)
    for fate in fates:
        for node in fate.nodes:
            by_node[node].append(fate)
    if nodes is None:
        nodes = [(node, "") for node in by_node]
    imported = _located(module)
    found = []
    for node, operator in nodes:
        if node not in imported:
            how = "its value, or that it moves no element, was known when the model was imported"
            found.append(Movement(node=node, operator=operator, verdict="constant", how=how))
        elif baseline:
            found.append(Movement(node=node, operator=operator, verdict="kept", how="left to IREE: no pass ran"))
        else:
            found.append(_judged(node, operator, by_node.get(node, [])))
    return tuple(found)


def explain_import(imported: ImportedModel, fates: Iterable[Fate], baseline: bool) -> tuple[Movement, ...]:
    """A verdict for each data-movement operator of the model that was imported; see `explain`."""
    from smartmem_mlir.report.source_nodes import movement_nodes
    from smartmem_mlir.report.source_sizes import result_bytes

    is_onnx = imported.kind == "onnx" and imported.source is not None
    nodes = movement_nodes(imported.source) if is_onnx and imported.source is not None else None
    pairs = [(node.name, node.operator) for node in nodes] if nodes is not None else None
    locations = {node.name: node.location for node in nodes or ()}
    sizes = result_bytes(imported.module)
    return tuple(
        movement.model_copy(
            update={"location": locations.get(movement.node, ""), "bytes": 2 * sizes.get(movement.node, 0)}
        )
        for movement in explain(pairs, imported.module, fates, baseline)
    )


_ONE_LOCATION = r'(?:#loc\d*|unknown|"[^"\n]*"(?:\(#loc\d*\))?)'
_PRINTED_LOCATION = re.compile(rf" loc\((?:{_ONE_LOCATION}|fused\[{_ONE_LOCATION}(?:, {_ONE_LOCATION})*\])\)")


def without_locations(module: str) -> str:
    """A module's text without locations, as people want to read it."""
    lines = (line for line in module.splitlines(keepends=True) if not line.startswith("#loc"))
    # MLIR escapes quotes inside strings, so that no string holds what the pattern matches.
    return _PRINTED_LOCATION.sub("", "".join(lines))


_LOCATION = re.compile(r'loc\("((?:[^"\\]|\\.)*)"')


def _located(module: str) -> frozenset[str]:
    """Names of the source nodes in a module's locations."""
    return frozenset(source_name(_unescaped(name)) for name in _LOCATION.findall(module))


def _unescaped(text: str) -> str:
    raw = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda code: bytes([int(code[1], 16)]), text.encode())
    return raw.replace(b"\\\\", b"\\").replace(b'\\"', b'"').decode(errors="replace")


def _judged(node: str, operator: str, fates: Sequence[Fate]) -> Movement:
    """The verdict that follows from what the passes did: a copy outweighs all else, then who took the movement over."""

    def made(how: str, chosen: Sequence[Fate], verdict: Verdict = "eliminated") -> Movement:
        into = tuple(dict.fromkeys(name for fate in chosen for name in fate.operators if name != node))
        longest = max((fate.map for fate in chosen), key=len, default="")
        by = chosen[-1].transform if chosen else "canonicalize"
        return Movement(node=node, operator=operator, verdict=verdict, into=into, map=longest, how=how, by=by)

    for kinds, describe in _RULES:
        chosen = [fate for fate in fates if fate.how in kinds]
        if chosen:
            return made(describe(chosen), chosen, "kept" if "copy" in kinds else "eliminated")
    return made("joined with an equal or inverse operation beside it, or read by nobody", fates)


def _copied(fates: Sequence[Fate]) -> str:
    reasons = "; ".join(dict.fromkeys(fate.reason for fate in fates))
    return f"a copy ({fates[0].operation or 'linalg.generic'}): {reasons}"


def _taken(fates: Sequence[Fate]) -> str:
    parts = {
        "read": "read through by the operator",
        "index": "its index is computed where it is read",
        "written": "written through by the operator that computes its source",
    }
    return ", ".join(parts[how] for how in parts if any(fate.how == how for fate in fates))


def _staged(fates: Sequence[Fate]) -> str:
    amounts = "; ".join(dict.fromkeys(fate.reason for fate in fates))
    return f"copied inside the kernel that reads it, block by block to the stack, not through memory ({amounts})"


_RULES: Final[Sequence[tuple[frozenset[str], Callable[[Sequence[Fate]], str]]]] = (
    (frozenset({"copy"}), _copied),
    (frozenset({"staged"}), _staged),
    (frozenset({"read", "index", "written"}), _taken),
    (frozenset({"reordered"}), lambda fates: "what computes its source does so in its order"),
    (frozenset({"in-place"}), lambda fates: "renames or cuts in memory order: no element moves"),
    (frozenset({"cancelled"}), lambda fates: "with the movements around it no element moves"),
)


def summarize(movements: Sequence[Movement]) -> Mapping[str, Mapping[str, int]]:
    """For each operator and in all (`""`): how many of each verdict."""
    counts: dict[str, dict[str, int]] = {}
    for movement in movements:
        for key in ("", movement.operator):
            row = counts.setdefault(key, {"eliminated": 0, "kept": 0, "constant": 0})
            row[movement.verdict] += 1
            if not movement.operator:
                break
    return counts
