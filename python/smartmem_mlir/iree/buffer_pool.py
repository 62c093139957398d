"""Memory that the calls of a module pass from one to the next."""

from __future__ import annotations

from typing import Any

import iree.runtime as rt

_KEPT = 8


class BufferPool:
    """Buffers of one size, each with one user at a time. Safe to use from several threads.

    Args:
        allocator: IREE's allocator of the device.
        size: Bytes of a buffer.
    """

    def __init__(self, allocator: Any, size: int) -> None:
        self._allocator = allocator
        # No memory of zero bytes exists, and no kernel touches the one.
        self._size = max(size, 1)
        self._free: list[Any] = []

    def take(self) -> Any:
        """A buffer that nobody else uses."""
        try:
            return self._free.pop()
        except IndexError:
            return self._allocator.allocate_buffer(
                memory_type=rt.MemoryType.DEVICE_LOCAL,
                allowed_usage=rt.BufferUsage.DEFAULT,
                allocation_size=self._size,
            )

    def give_back(self, buffer: Any) -> None:
        """The next taker may have it. Few are kept: a caller may have held the results of a thousand calls."""
        if len(self._free) < _KEPT:
            self._free.append(buffer)
