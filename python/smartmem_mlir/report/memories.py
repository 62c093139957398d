"""Memories of tensors, added up: how many tensors and bytes are where, and what keeps the others in buffers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smartmem_mlir.layouts.memory import TensorMemory


def in_memory(memories: Iterable[TensorMemory]) -> dict[str, dict[str, int]]:
    """Tensors and bytes by memory, the largest first."""
    return _sums((each.memory, each.bytes) for each in memories)


def in_buffers(memories: Iterable[TensorMemory]) -> dict[str, dict[str, int]]:
    """Tensors and bytes that are in buffers, by reason, the largest first."""
    return _sums((each.reason, each.bytes) for each in memories if each.memory == "buffer")


def content(memories: tuple[TensorMemory, ...]) -> dict[str, Any]:
    """What `explain --json` prints; docs/cli.md has the schema."""
    return {
        "by_memory": in_memory(memories),
        "in_buffers": in_buffers(memories),
        "tensors": [
            {name: getattr(each, name) for name in each.__dataclass_fields__}
            for each in sorted(memories, key=lambda each: -each.bytes)
        ],
    }


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for name, bytes in pairs:
        row = sums.setdefault(name, {"tensors": 0, "bytes": 0})
        row["tensors"] += 1
        row["bytes"] += bytes
    return dict(sorted(sums.items(), key=lambda item: -item[1]["bytes"]))
