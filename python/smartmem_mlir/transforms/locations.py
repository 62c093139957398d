"""Source nodes in locations.

An importer puts the name of the source model's node into the location of what it makes. Whatever a pass makes of
several operations carries all of their names, in a fused location.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from smartmem_mlir.transforms.evidence import source_name


def node_names(location: ir.Location) -> tuple[str, ...]:
    """The names in a location, each once, in order; positions in files and call sites have none."""
    names: dict[str, None] = {}
    pending = [location]
    while pending:
        at = pending.pop()
        if at.is_a_name():
            if at.name_str:
                names.setdefault(source_name(at.name_str))
            pending.append(at.child_loc)
        elif at.is_a_fused():
            pending.extend(reversed(at.locations))
    return tuple(names)


def fuse(locations: Iterable[ir.Location]) -> ir.Location:
    """One location for what stands for all of these; the context is the current one."""
    return ir.Location.fused(list(locations))
