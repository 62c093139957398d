"""The machine and the checkout that a campaign ran on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from smartmem_mlir.bench.results import Host
from smartmem_mlir.errors import OptionError
from smartmem_mlir.iree.cpu import this_cpu

_MEMINFO = Path("/proc/meminfo")


def this_host() -> Host:
    """Describe this machine."""
    return Host(
        cpu=this_cpu().name,
        cores=len(usable_cpus()),
        memory_bytes=_meminfo("MemTotal"),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        load_before=os.getloadavg()[0],
    )


def usable_cpus() -> list[int]:
    """CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def cpus_for(threads: int) -> tuple[int, ...]:
    """CPUs to pin engines with so many threads to.

    Raises:
        OptionError: There are not that many.
    """
    usable = usable_cpus()
    if not 1 <= threads <= len(usable):
        raise OptionError(f"--threads {threads}: this machine lends {len(usable)} CPUs")
    return tuple(usable[:threads])


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping; None where the system does not say."""
    return _meminfo("MemAvailable")


def checkout_commit() -> str | None:
    """Commit of the checkout this package is installed from, with `+` after it if files differ; None outside one."""
    folder = Path(__file__).resolve().parent
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    result = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def _meminfo(field: str) -> int | None:
    if not _MEMINFO.exists():
        return None
    for line in _MEMINFO.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None
