"""What is read of attributes, remembered: they never change, and reading them through the bindings is slow.

A remembered attribute keeps its context alive, and with it every attribute and type of a module, so what was remembered
is forgotten when a pipeline ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

_SIZE = 4096
"""Results of one function that are kept. A model of 5,000 operations has a few hundred different maps and views."""
_caches: list[Callable[[], None]] = []


def remembered(function: _F) -> _F:
    """A pure function of attributes, types and hashable values that computes each result once."""
    cached = lru_cache(maxsize=_SIZE)(function)
    _caches.append(cached.cache_clear)
    return cached  # type: ignore[return-value]


def forget() -> None:
    """Forgets every result, and lets go of their contexts."""
    for clear in _caches:
        clear()
