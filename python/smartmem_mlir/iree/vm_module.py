"""Opening an IREE module."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def open_module(instance: Any, vmfb: Path) -> Any:
    """The `VmModule` in a file.

    Copied, not mapped: the runtime closes a mapping in Python when the module goes, and where that happens while an
    exception passes by, the exception is replaced by a SystemError.
    """
    import iree.runtime as rt

    return rt.VmModule.copy_buffer(instance, vmfb.read_bytes())
