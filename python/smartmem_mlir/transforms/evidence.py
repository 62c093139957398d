"""The record of a compilation: what was rewritten and why that was right, and what became of each movement.

Passes tell it through `claims`; while nobody records, telling costs a look at a context variable. The record holds no
IR.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from smartmem_mlir.index_maps.evidence import Rewrite
from smartmem_mlir.layouts.decision import LayoutDecision
from smartmem_mlir.layouts.memory import TensorMemory

_LABEL = re.compile(r"""[\w.]+ (?P<quote>['"])(?P<name>.*)(?P=quote)""")
"""Of a node that the importer made for another: that one's operator and name."""


def source_name(name: str) -> str:
    """The source node's name in the name of a location."""
    label = _LABEL.fullmatch(name)
    return label["name"] if label else name


How: TypeAlias = Literal["raised", "cancelled", "read", "staged", "written", "reordered", "in-place", "index", "copy"]
"""What became of a view: raised from its operation; nothing, it and what it was composed with move no element; read
through by an operation; copied inside the kernel that reads it, a block at a time; written through by the operation
that computes its source; moved in front of operations that now compute in its order; renamed or cut in memory order;
computed as an index at each read; copied."""


@dataclass(frozen=True)
class Fate:
    """What a pass did with a view.

    Args:
        transform: Argument of the pass.
        nodes: The source model's nodes that the view stands for.
        how: What became of it.
        operation: The operation that took it over, or that it became.
        operators: Source nodes of that operation.
        map: The view's map, as MLIR prints it; empty for a view of several pieces.
        reason: Why it was copied, or how much of it inside a kernel.
    """

    transform: str
    nodes: tuple[str, ...]
    how: How
    operation: str = ""
    operators: tuple[str, ...] = ()
    map: str = ""
    reason: str = ""


@dataclass
class Evidence:
    """A record being written.

    Args:
        rewrites: Rewrites with their claims.
        fates: What became of views, in order.
        layouts: How layouts were chosen, for each function.
        memories: Where each tensor of generated shaders is.
        transform: The pass that runs.
    """

    rewrites: list[Rewrite] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    layouts: list[LayoutDecision] = field(default_factory=list)
    memories: list[TensorMemory] = field(default_factory=list)
    transform: str = ""


_current: ContextVar[Evidence | None] = ContextVar("evidence", default=None)


def current_evidence() -> Evidence | None:
    """The record that passes write to now, None if nobody records."""
    return _current.get()


@contextmanager
def recording() -> Iterator[Evidence]:
    """A new record for what passes do in this block."""
    evidence = Evidence()
    token = _current.set(evidence)
    try:
        yield evidence
    finally:
        _current.reset(token)


@contextmanager
def during(transform: str) -> Iterator[None]:
    """Names the pass that runs in this block."""
    evidence = _current.get()
    if evidence is None:
        yield
        return
    before, evidence.transform = evidence.transform, transform
    try:
        yield
    finally:
        evidence.transform = before
