"""Results in place: an array over a device buffer that the host can read, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_HOST_DRIVERS = ("local-task", "local-sync")


def is_host_memory(device_uri: str) -> bool:
    """Whether the buffers of a device lie in the host's own cached memory. Mapping works on other devices too, but
    there a read may go over a bus, uncached."""
    return device_uri.partition("://")[0] in _HOST_DRIVERS


class _Mapping:
    """Owns a mapped buffer for as long as an array, or any view of it, is alive."""

    def __init__(self, buffer: Any, size: int, release: Callable[[], None]) -> None:
        self._release = release
        self._bytes = buffer.map().asarray((size,), np.dtype(np.uint8))
        self.__array_interface__ = self._bytes.__array_interface__

    def __del__(self) -> None:
        self._release()


def view_on_host(
    buffer: Any, shape: Sequence[int], dtype: npt.DTypeLike, release: Callable[[], None]
) -> npt.NDArray[np.generic]:
    """A buffer of the host's memory as an array.

    Args:
        buffer: A `HalBuffer` of at least the array's size.
        shape: Shape of the array.
        dtype: Its element type.
        release: Called when neither the array nor a view of it is left.

    Returns:
        The array. It aliases the buffer: nobody else may write to that before `release` is called.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    # Views of an array refer to the object at the root, which is why the root is the mapping and not an array.
    return np.asarray(_Mapping(buffer, size, release)).view(dtype).reshape(tuple(shape))
