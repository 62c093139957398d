"""Times of single kernels, as IREE's runtime counts them on the CPU."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smartmem_mlir.errors import DeviceError
from smartmem_mlir.iree.archive import SCOPE
from smartmem_mlir.iree.storage import storage_flags
from smartmem_mlir.report import directory
from smartmem_mlir.report.inputs import random_inputs
from smartmem_mlir.report.schema import Report

_ROW = re.compile(
    r"^\s+host_execute (?P<name>\S+)\s+count=(?P<count>\d+) total=(?P<total>[\d.]+) (?P<unit>ns|us|ms|s)\b"
)
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class KernelTime:
    """Time of a kernel in one inference.

    Args:
        calls: How often it ran.
        ns: Time of all calls, of one core or of several at once.
    """

    calls: int
    ns: float


def measure_kernels(folder: Path, report: Report, flags: Sequence[str] = ()) -> dict[str, KernelTime]:
    """One inference on random inputs with the time of each kernel, which IREE's own runner counts.

    Args:
        folder: The compiled directory.
        report: Its report.
        flags: Further flags of IREE's runner.

    Returns:
        Times by the kernel's name. Nothing is warmed up, so that each is an upper bound.

    Raises:
        DeviceError: The module is not for this CPU, or the runner fails.
    """
    runner = Path(sys.executable).with_name("iree-run-module")
    if not runner.is_file():
        found = shutil.which("iree-run-module")
        if found is None:
            raise DeviceError("iree-run-module is not installed", hint="pip install iree-base-runtime")
        runner = Path(found)
    if report.target.cpu is None:
        raise DeviceError("kernels are measured on CPUs only", hint="leave out --measure", file=folder)
    with tempfile.TemporaryDirectory(prefix="smartmem-measure-") as workspace:
        command = [
            str(runner),
            f"--module={folder / directory.VMFB}",
            "--function=main",
            "--device=local-task",
            "--print_device_statistics",
            *flags,
        ]
        if report.weights:
            command.append(f"--parameters={SCOPE}={folder / directory.PARAMETERS}")
        specs = [info.spec for info in report.inputs]
        for position, values in enumerate(random_inputs(specs, seed=0)):
            path = Path(workspace) / f"{position}.npy"
            np.save(path, values)
            command.append(f"--input=@{path}")
        command += storage_flags([info.spec for info in report.outputs], report.transient_bytes)
        command += [f"--output=@{Path(workspace) / f'out{position}.npy'}" for position in range(len(report.outputs))]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise DeviceError(f"one inference took longer than {TIMEOUT_S:g} s", file=folder) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise DeviceError(f"iree-run-module failed: {lines[0]}", file=folder)
    return parse_statistics(done.stdout + done.stderr)


def parse_statistics(text: str) -> dict[str, KernelTime]:
    """The rows of kernels in what `iree-run-module --print_device_statistics` prints."""
    times: dict[str, KernelTime] = {}
    for line in text.splitlines():
        match = _ROW.match(line)
        if match is None:
            continue
        before = times.get(match["name"], KernelTime(0, 0.0))
        ns = float(match["total"]) * _NANOSECONDS[match["unit"]]
        times[match["name"]] = KernelTime(before.calls + int(match["count"]), before.ns + ns)
    return times
