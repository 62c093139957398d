"""Compiling plain IREE, at every setting worth trying, and our own variants."""

from __future__ import annotations

import contextlib
import filecmp
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from smartmem_mlir.bench.peer_process import PeerError
from smartmem_mlir.bench.results import Counts
from smartmem_mlir.iree.flow.summary import FlowSummary
from smartmem_mlir.report.directory import PARAMETERS, read_directory
from smartmem_mlir.targets import TargetDescription, load_pipeline

BASELINE, OURS = "iree", "smartmem"
"""Names of the engines that run plain IREE and our modules in every table."""

# Our runtime calls every module of a table; plain IREE's stay as IREE makes them.
_OURS_OPTIONS = ("--entry", "in-place")
_GRACE_SECONDS = 10.0
_REPRODUCER = "; reproduce it with "
_LEVELS = ("O0", "O1", "O2", "O3")
_DATA_TILING = "--iree-opt-data-tiling"
_IM2COL = "--iree-global-opt-use-im2col-for-convs"
# Flags that help plain IREE on some networks and break others on a CPU; a fair baseline tries them.
_CPU_EXTRAS = {"data-tiling": (_DATA_TILING,), "im2col": (_IM2COL,), "im2col+data-tiling": (_IM2COL, _DATA_TILING)}


@dataclass(frozen=True)
class Setting:
    """One way to ask IREE for code.

    Args:
        name: Optimisation level, extra flags, and the target if there are several.
        target: The target with that level and those flags.
    """

    name: str
    target: TargetDescription


@dataclass(frozen=True)
class Variant:
    """One thing to compile.

    Args:
        engine: Its name in every table.
        title: Its name for people.
        options: Options of `smartmem compile`.
    """

    engine: str
    title: str
    options: tuple[str, ...]


def find_variant(name: str) -> Variant:
    """A variant by the name that users give it.

    Args:
        name: `baseline` (plain IREE, tried at every setting), `smartmem` (our default pipeline), or the name or path of
            another pipeline, which makes an ablation.

    Raises:
        OptionError: There is no such pipeline.
    """
    if name == "baseline":
        return Variant(BASELINE, "plain IREE", ("--baseline",))
    if name == "smartmem":
        return Variant(OURS, "SmartMem", _OURS_OPTIONS)
    pipeline = load_pipeline(name)
    return Variant(pipeline.name, f"SmartMem, pipeline {pipeline.name}", (*_OURS_OPTIONS, "--pipeline", name))


def all_settings(targets: Sequence[TargetDescription]) -> list[Setting]:
    """Every optimisation level of every target, and on a CPU the flags that matter with the highest level."""
    found = []
    for target in targets:
        prefix = f"{target.name} " if len(targets) > 1 else ""
        found += [Setting(f"{prefix}{level}", target.model_copy(update={"opt_level": level})) for level in _LEVELS]
        if target.cpu is None:
            continue
        for name, flags in _CPU_EXTRAS.items():
            changes = {"opt_level": _LEVELS[-1], "iree_flags": (*target.iree_flags, *flags)}
            found.append(Setting(f"{prefix}{_LEVELS[-1]}+{name}", target.model_copy(update=changes)))
    return found


def compile_variant(
    model: Path,
    dims: Mapping[str, int],
    setting: Setting,
    options: Sequence[str],
    output: Path,
    time_limit: float,
) -> tuple[Path, float]:
    """Run `smartmem compile` in a process of its own.

    Args:
        model: The ONNX file.
        dims: Sizes of symbolic dimensions.
        setting: The target.
        options: Further options of the command.
        output: The directory to make.
        time_limit: Seconds it has.

    Returns:
        The directory and the seconds of wall time from the file to the module, import included.

    Raises:
        PeerError: It does not compile (with the compiler's error), or takes too long.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    description = output.with_suffix(".yaml")
    description.write_text(yaml.safe_dump(setting.target.model_dump(mode="json", exclude_none=True)))
    command = [sys.executable, "-m", "smartmem_mlir.cli.app", "compile", str(model), "-o", str(output)]
    command += ["--target", str(description), "--timeout", f"{time_limit:g}", *options]
    for name, size in dims.items():
        command += ["--dim", f"{name}={size}"]
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _, stderr = process.communicate(timeout=time_limit)
    except subprocess.TimeoutExpired:
        raise PeerError("timed out", f"compiling took more than {time_limit:g} s") from None
    finally:
        _end(process)
    if process.returncode != 0:
        raise PeerError("does not compile", _error_of(stderr, process.returncode))
    return output, time.monotonic() - started


def setting_of(directory: Path, asked: Setting) -> str:
    """The setting that a directory was compiled at, by name: `compile` goes to a lower level where it has to."""
    level = read_directory(directory).opt_level
    return asked.name if level == asked.target.opt_level else f"{asked.name}, compiled at {level}"


def counts_of(directory: Path) -> Counts:
    """Kernels and bytes of a compiled directory."""
    return counts_from(read_directory(directory).flow)


def counts_from(flow: FlowSummary) -> Counts:
    """The sums that tables show."""
    return Counts(
        kernels=flow.kernels,
        movement_kernels=flow.movement_kernels,
        movement_bytes=flow.movement_bytes,
        total_bytes=flow.total_bytes,
        copy_bytes=flow.copy_bytes,
    )


def share_weights(directory: Path, other: Path) -> None:
    """Replace a directory's weights by a link to another's if they are equal, which for two settings of one model they
    are: a billion-parameter model at seven settings would fill the disk."""
    ours, theirs = directory / PARAMETERS, other / PARAMETERS
    if ours.exists() and theirs.exists() and filecmp.cmp(ours, theirs, shallow=False):
        ours.unlink()
        ours.hardlink_to(theirs)


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupt the command, so that it ends the compiler, which has a session of its own; then insist."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_GRACE_SECONDS)


def _error_of(stderr: str, code: int) -> str:
    """The last error in what the command printed, without the reproducer, which goes with the working folder."""
    lines = [line.split("error: ", 1)[1] for line in stderr.splitlines() if "error: " in line]
    return lines[-1].split(_REPRODUCER)[0] if lines else f"exit code {code}: {stderr.strip()[-500:]}"
