"""Calls into MLIR in a process of its own, so that its crashes become errors of one line and leave a reproducer."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smartmem_mlir import errors
from smartmem_mlir.errors import CompilerError, SmartMemError
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.flow.summary import FlowSummary
from smartmem_mlir.iree.record import Record, read_record
from smartmem_mlir.iree.reproducer import leave_reproducer
from smartmem_mlir.iree.storage import Entry
from smartmem_mlir.targets import Pipeline, TargetDescription


@dataclass(frozen=True)
class DerivedParameter:
    """A weight that is stored as a view of another.

    Args:
        source: Key of that other.
        view: The view, as `index_maps.text` writes it.
    """

    source: str
    view: str


@dataclass(frozen=True)
class LoweredModule:
    """A module after our passes.

    Args:
        text: As iree-compile reads it, or as our passes left it.
        parameters: The key of each weight that it reads; with it, for a view of another weight, what it is a view of.
        record: What the passes told of themselves.
    """

    text: str
    parameters: dict[str, DerivedParameter | None]
    record: Record


def lower_isolated(
    module_text: str,
    pipeline: Pipeline,
    target: TargetDescription,
    options: CompilerOptions,
    emit: bool = True,
    entry: Entry = "plain",
) -> LoweredModule:
    """Run a pipeline on a module in our dialect and emit it for iree-compile.

    Args:
        module_text: MLIR 22 text.
        pipeline: The passes.
        target: What to make kernels for.
        options: Time limit and where a crash leaves its reproducer.
        emit: Whether to go on after the passes.
        entry: Who provides memory for results and intermediates.

    Raises:
        OptionError: The pipeline names a pass or an option that there is not.
        SmartMemError: A pass cannot do its work.
        CompilerError: A pass crashed, failed or took too long.
    """
    with tempfile.TemporaryDirectory(prefix="smartmem-lower-") as folder:
        source, output = Path(folder) / "input.mlir", Path(folder) / "output.mlir"
        source.write_text(module_text)
        arguments = {
            "module": str(source),
            "output": str(output),
            "pipeline": pipeline.model_dump(mode="json", by_alias=True),
            "target": target.model_dump(mode="json"),
            "emit": emit,
            "entry": entry,
        }
        command = f"exec smartmem-opt --pass-pipeline={shlex.quote(pipeline.text())} input.mlir"
        read = _call("lower", arguments, source, command, f"pipeline '{pipeline.name}'", options)
        parameters = {key: of and DerivedParameter(**of) for key, of in read.items()}
        return LoweredModule(output.read_text(), parameters, read_record(Path(folder)))


def count_isolated(flow: Path, options: CompilerOptions) -> FlowSummary:
    """Count the kernels of a module's flow IR; see :func:`smartmem_mlir.iree.flow.read.read_flow`.

    Raises:
        CompilerError: The IR does not parse, or reading it crashed or took too long.
    """
    command = "exec smartmem-opt --allow-unregistered-dialect input.mlir"
    value = _call("count", {"flow": str(flow)}, flow, command, "counting kernels", options)
    return FlowSummary.model_validate(value)


def _call(
    task: str, arguments: dict[str, Any], source: Path, reproduce: str, what: str, options: CompilerOptions
) -> Any:
    """The value that a task of `iree.worker` returns."""
    with tempfile.TemporaryDirectory(prefix="smartmem-worker-") as folder:
        request, result = Path(folder) / "request.json", Path(folder) / "result.json"
        request.write_text(json.dumps({"task": task, "arguments": arguments}))
        command = [sys.executable, "-m", "smartmem_mlir.iree.worker", str(request), str(result)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=options.timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise CompilerError(
                f"{what} took longer than {options.timeout_s:g} s and was stopped",
                hint=leave_reproducer(options.reproducer, source, reproduce, ""),
            ) from error
        if done.returncode != 0 or not result.is_file():
            raise CompilerError(
                f"{what} {_how_it_ended(done.returncode, done.stderr)}",
                hint=leave_reproducer(options.reproducer, source, reproduce, done.stderr),
            )
        content = json.loads(result.read_text())
    if "error" in content:
        raise _restored(content["error"])
    return content["value"]


def _how_it_ended(code: int, messages: str) -> str:
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    asserted = [line for line in lines if "Assertion" in line or "LLVM ERROR" in line]
    if code == -signal.SIGKILL:
        return "was killed, most likely for lack of memory"
    return f"crashed: {(asserted or lines[-1:] or [f'exit code {code}'])[0][:300]}"


def _restored(error: dict[str, Any]) -> SmartMemError:
    """The error that the other process raised, of the nearest class that is known here."""
    known = getattr(errors, error["type"], SmartMemError)
    return known(error["what"], hint=error["hint"], file=error["file"], node=error["node"])  # type: ignore[no-any-return]
