"""Lower through torch-mlir in a process of its own, so that its crashes become errors of one line."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.ingress.child_process import child_environment
from smartmem_mlir.ingress.lowering_worker import ATTEMPT, PARAMETERS, SINGLY, has_result
from smartmem_mlir.ingress.onnx_model.refusals import Refusals
from smartmem_mlir.ingress.onnx_model.single_node import distinct_nodes

WORKER: Sequence[str] = (sys.executable, "-m", "smartmem_mlir.ingress.lowering_worker")
"""The command of the worker; its argument is the directory of the models."""

TIMEOUT_S = 300.0
"""Time without a result after which the importer counts as hung; the largest models that we know take 20 s."""


def lower_isolated(model: onnx.ModelProto, parameters: Sequence[str], file: Path | None) -> str:
    """Lower a static ONNX model to linalg on tensors.

    Args:
        model: As for :func:`smartmem_mlir.ingress.lowering.lower`.
        parameters: Names of the inputs that are parameters.
        file: The model's file, for errors.

    Returns:
        The module as text.

    Raises:
        UnsupportedModelError: torch-mlir rejects some nodes; lists all of them.
        CompilerError: torch-mlir rejects the model, or crashes on it, though it accepts each node by itself.
    """
    [result] = lower_all([model], parameters)
    if result.text is not None:
        return result.text
    refusals = Refusals(file)
    nodes = distinct_nodes(model)
    for group, probe in zip(nodes, lower_all([g.model for g in nodes], []), strict=True):
        if probe.text is None:
            for node in group.nodes:
                refusals.add(node, probe.error)
    refusals.raise_if_any()
    raise CompilerError(f"the importer failed: {result.error}", hint="report this model", file=file)


@dataclass(frozen=True)
class Lowered:
    """The text of a lowered model, or, if that is None, what went wrong."""

    text: str | None
    error: str = ""


def lower_all(models: Sequence[onnx.ModelProto], parameters: Sequence[str]) -> list[Lowered]:
    """Lower models, starting the worker again after each crash."""
    with tempfile.TemporaryDirectory(prefix="smartmem-import-") as name:
        directory = Path(name)
        (directory / PARAMETERS).write_text(json.dumps(list(parameters)))
        paths = [directory / f"{i}.onnx" for i in range(len(models))]
        for path, model in zip(paths, models, strict=True):
            path.write_bytes(model.SerializeToString())
        while True:
            outcome = _run_worker(directory)
            if all(has_result(path) for path in paths):
                return [_read(path) for path in paths]
            _blame(directory, outcome)


def _blame(directory: Path, outcome: str) -> None:
    """After a crash: give the model that was being lowered its error, or let those of a group be lowered alone."""
    attempt = directory / ATTEMPT
    stems = json.loads(attempt.read_text()) if attempt.exists() else []
    if len(stems) > 1:
        singly = directory / SINGLY
        before = json.loads(singly.read_text()) if singly.exists() else []
        singly.write_text(json.dumps(before + stems))
        return
    unfinished = [p for p in sorted(directory.glob("*.onnx"), key=lambda p: int(p.stem)) if not has_result(p)]
    culprit = directory / f"{stems[0]}.onnx" if stems else unfinished[0]
    (unfinished[0] if has_result(culprit) else culprit).with_suffix(".error").write_text(outcome)


def _run_worker(directory: Path) -> str:
    """Run the worker until it ends or stops making progress; returns one line on how it ended."""
    log = directory / "worker.log"
    with log.open("wb") as stream:
        worker = subprocess.Popen([*WORKER, str(directory)], stdout=stream, stderr=stream, env=child_environment())
        try:
            finished = -1
            while finished != (finished := _count_results(directory)):
                try:
                    worker.wait(TIMEOUT_S)
                    break
                except subprocess.TimeoutExpired:
                    continue
            else:
                return f"the importer takes longer than {TIMEOUT_S:.0f} s"
        finally:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
    if worker.returncode == 0:
        return "the importer ended without a result"
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    asserted = [line for line in lines if "Assertion" in line or "LLVM ERROR" in line]
    reason = (asserted or lines[-1:] or [f"exit code {worker.returncode}"])[0]
    return f"the importer crashed: {reason}"


def _count_results(directory: Path) -> int:
    return sum(path.suffix in (".mlir", ".error") for path in directory.iterdir())


def _read(path: Path) -> Lowered:
    text = path.with_suffix(".mlir")
    if text.exists():
        return Lowered(text.read_text())
    return Lowered(None, path.with_suffix(".error").read_text())
