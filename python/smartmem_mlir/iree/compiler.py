"""Running iree-compile: a subprocess with a time limit whose failure leaves a reproducer, never a half-written file."""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from smartmem_mlir.errors import CompilerError, SmartMemError
from smartmem_mlir.iree.reproducer import leave_reproducer
from smartmem_mlir.iree.toolchain import COMPILER_PACKAGE, iree_compile, package_version

_LOG = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 1800.0
_MAX_MESSAGE = 300
_ERROR_LINE = re.compile(
    r"(?:^|\s)(?:fatal )?error:?\s|LLVM ERROR|Assertion .* failed|PLEASE submit a bug report"
    # What it says about flags, which come from a target's description.
    r"|^iree-compile: (?:for the -|Unknown command line argument)"
)


class TimeLimitError(CompilerError):
    """iree-compile took too long: what it might have said is not known."""


@dataclass(frozen=True)
class CompilerOptions:
    """How to run iree-compile.

    Args:
        timeout_s: Seconds after which a run is killed.
        reproducer: Folder that a failing run leaves behind: `input.mlir`, `command.sh`, `stderr.txt`.
    """

    timeout_s: float = DEFAULT_TIMEOUT_S
    reproducer: Path = Path("smartmem-reproducer")


def run_iree_compile(source: Path, output: Path, flags: Sequence[str], options: CompilerOptions) -> float:
    """Compile `source` to `output`.

    Args:
        source: MLIR text.
        output: The file to write; absent after a failure.
        flags: Flags of iree-compile.
        options: Time limit and where a failure leaves its reproducer.

    Returns:
        Seconds it took.

    Raises:
        CompilerError: It failed, crashed or was killed.
        TimeLimitError: It ran into the time limit.
        SmartMemError: The disk is full.
    """
    command = [str(iree_compile()), str(source), *flags, "-o", str(output)]
    started = time.monotonic()
    with tempfile.TemporaryFile() as stderr:
        try:
            code = _run(command, stderr, options)
        except BaseException:
            _remove(output)
            raise
        if code == 0:
            return time.monotonic() - started
        stderr.seek(0)
        messages = stderr.read().decode(errors="replace")
    _remove(output)
    if "No space left on device" in messages:
        raise SmartMemError("no space left on the disk", hint="free some space", file=output)
    if code == -signal.SIGXFSZ:
        raise SmartMemError("the file grew over the size limit", hint="raise it (ulimit -f)", file=output)
    what = _describe_failure(code, messages, source, options.timeout_s)
    kind = TimeLimitError if code is None else CompilerError
    raise kind(what, hint=leave_reproducer(options.reproducer, source, _reproduction(output, flags), messages))


def _run(command: Sequence[str], stderr: IO[bytes], options: CompilerOptions) -> int | None:
    """Exit code, negative for a signal; None for a time-out. No process outlives the call."""
    _LOG.debug("running %s", shlex.join(command))
    # A session of its own, so that the linker that iree-compile may start dies with it.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
    )
    try:
        return process.wait(timeout=options.timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _remove(output: Path) -> None:
    # Nothing but a file: the output may be a device, which is not ours to remove.
    if output.is_file():
        output.unlink()


def _describe_failure(code: int | None, messages: str, source: Path, timeout_s: float) -> str:
    detail = _first_error(messages, source)
    if code is None:
        return f"iree-compile took longer than {timeout_s:g} s and was stopped"
    if code == -signal.SIGKILL:
        return "iree-compile was killed, most likely for lack of memory"
    if code < 0:
        name = signal.Signals(-code).name
        return f"iree-compile crashed with {name}" + (f": {detail}" if detail else "")
    return f"iree-compile failed: {detail or f'exit code {code}'}"


def _first_error(messages: str, source: Path) -> str:
    """The first line that reports an error, without the folder of our temporary files."""
    for line in messages.splitlines():
        if _ERROR_LINE.search(line):
            text = " ".join(line.replace(f"{source.parent}{os.sep}", "").split())
            return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}..."
    return ""


def _reproduction(output: Path, flags: Sequence[str]) -> str:
    """Shell text that repeats the run on `input.mlir`. Weights are parameters: none are needed to compile."""
    version = package_version(COMPILER_PACKAGE)
    arguments = shlex.join(["input.mlir", *flags, "-o", output.name])
    return f'# {COMPILER_PACKAGE} {version}\nexec "${{IREE_COMPILE:-iree-compile}}" {arguments}'
