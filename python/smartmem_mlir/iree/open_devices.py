"""IREE's devices of this process: each is opened once, and once more when its driver lost it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any

import iree.runtime as rt

from smartmem_mlir.errors import DeviceError, first_line

_devices: dict[str, Any] = {}
_threads: dict[str, frozenset[int]] = {}
_opening = threading.Lock()


def open_device(uri: str) -> Any:
    """The device of this name.

    Args:
        uri: Device as IREE names it.

    Raises:
        DeviceError: It cannot be opened.
    """
    # Kernels are compiled for descriptors; by default the driver would also set up buffer device addresses.
    rt.flags.parse_flags("--vulkan_dispatch_abi=descriptor")
    with _opening:
        if uri not in _devices:
            before = _running_threads()
            try:
                # Not from IREE's own cache, which keeps a device that was lost.
                _devices[uri] = rt.get_device(uri, cache=False)
            except (RuntimeError, ValueError) as error:
                raise DeviceError(f"cannot open the device {uri}: {first_line(error)}") from error
            _threads[uri] = _running_threads() - before
        return _devices[uri]


def forget_device(uri: str, device: Any) -> None:
    """Takes a device that was lost out of use: who comes next gets a new one.

    Its threads wait for what never happens, in loops that nothing ends before the process (IREE 3.13): they are left
    the time that no other thread wants.

    Args:
        uri: Device as IREE names it.
        device: The lost device; another one of this name stays.
    """
    with _opening:
        if _devices.get(uri) is not device:
            return
        del _devices[uri]
        ours = {thread.native_id for thread in threading.enumerate()}
        for thread in _threads.pop(uri) - ours:
            # One that has ended by itself needs nothing; where a sandbox forbids it, they stay as they are.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))


def _running_threads() -> frozenset[int]:
    """Kernel's numbers of the threads; none where that is not Linux, which alone can leave them idle time."""
    return frozenset(map(int, os.listdir("/proc/self/task"))) if sys.platform == "linux" else frozenset()
