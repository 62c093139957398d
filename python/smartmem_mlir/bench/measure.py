"""Timing engines side by side: in turns, so that the machine's noise hits all alike, each verified and guarded."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from smartmem_mlir.bench.accuracy import compare
from smartmem_mlir.bench.engines import Device, Engine
from smartmem_mlir.bench.peer_process import PeerError, PeerProcess
from smartmem_mlir.bench.reference import Workload
from smartmem_mlir.bench.results import Accuracy, Counts, Measurement, Status

_TURN_SECONDS = 5.0
"""A turn is cut short after about this long, so that a slow engine does not own the machine for minutes."""


@dataclass(frozen=True)
class Plan:
    """How to time.

    Args:
        device: What to run on.
        cpus: CPUs that every engine may use; their number is the number of threads.
        runs: Timed inferences of each engine.
        rounds: Turns over which they are spread.
        time_limit: Seconds an engine has for each step: converting, loading, one turn.
        tolerance: Largest relative L2 error that counts as right.
        seconds: Seconds of inference, recorded or not, after which an engine has no further turn; each has one.
        deadline: When the race has to end, by `time.monotonic`: then no turn begins, and an engine that had none has
            timed out.
        resident: Keep every engine loaded between its turns; without it each is loaded for each turn, which bounds
            memory by the largest engine.
    """

    device: Device
    cpus: tuple[int, ...]
    runs: int
    rounds: int
    time_limit: float
    tolerance: float
    seconds: float = math.inf
    deadline: float = math.inf
    resident: bool = True

    @property
    def threads(self) -> int:
        """Number of threads of every engine."""
        return len(self.cpus)


@dataclass(frozen=True)
class Entrant:
    """An engine with what it is to run.

    Args:
        engine: The engine.
        artifact: The model in the engine's form.
        prepare_s: Seconds it took to make that.
        setting: Which of the engine's settings it is, where there is a choice.
        counts: Kernels and bytes, where known.
    """

    engine: Engine
    artifact: Path
    prepare_s: float | None = None
    setting: str | None = None
    counts: Counts | None = None


@dataclass
class _Contestant:
    """An entrant in the middle of a race."""

    entrant: Entrant
    workdir: Path
    process: PeerProcess | None = None
    failure: PeerError | None = None
    version: str | None = None
    backend: str | None = None
    load_s: float | None = None
    first_ms: float | None = None
    start_rss: int | None = None
    peak_rss: int | None = None
    accuracy: Accuracy | None = None
    times_ms: list[float] = field(default_factory=list)
    cpu_ns: int = 0
    wall_ns: int = 0
    spent_s: float = 0.0
    finished: bool = False


def race(
    entrants: Sequence[Entrant],
    workload: Workload,
    signature: dict[str, Any],
    plan: Plan,
    workdir: Path,
    say: Callable[[str], None],
) -> list[Measurement]:
    """Time engines in turns.

    Each is loaded, run once and verified; then they take turns, the order rotating, while the idle ones are stopped.
    Every turn starts with an inference that is not recorded, because the caches hold somebody else's data, and the
    last turn is verified again. An engine that fails is recorded and drops out.

    Args:
        entrants: The engines.
        workload: Inputs and reference.
        signature: The model's inputs and outputs, for the adapters.
        plan: How to time.
        workdir: Folder for the engines' files.
        say: Told what happens next.

    Returns:
        One measurement for each entrant, in order.
    """
    racers = [_Contestant(entrant, workdir / f"{i}-{entrant.engine.name}") for i, entrant in enumerate(entrants)]
    try:
        for racer in racers:
            say(f"loading {_label(racer)}")
            _guarded(racer, partial(_enter, racer, workload, signature, plan))
            _leave(racer, plan)
        per_round = math.ceil(plan.runs / plan.rounds)
        for turn in range(plan.rounds):
            start = turn % max(1, len(racers))
            for racer in racers[start:] + racers[:start]:
                if racer.failure is not None or racer.finished or (racer.times_ms and _is_over(plan)):
                    continue
                say(f"round {turn + 1} of {plan.rounds}: {_label(racer)}")
                last = turn == plan.rounds - 1
                _guarded(racer, partial(_turn, racer, per_round, last, workload, signature, plan))
                _leave(racer, plan)
    finally:
        for racer in racers:
            if racer.process is not None:
                racer.process.close()
    return [_measurement(racer, plan) for racer in racers]


def convert(
    engine: Engine, model: Path, signature: dict[str, Any], cpus: Sequence[int], workdir: Path, time_limit: float
) -> tuple[Path, float]:
    """Convert a model in a process of its own.

    Args:
        engine: The engine.
        model: The ONNX file, a copy that the converter may overwrite.
        signature: The model's inputs and outputs.
        cpus: CPUs it may use.
        workdir: Folder for what it makes.
        time_limit: Seconds it has.

    Returns:
        The artifact and the seconds it took.

    Raises:
        PeerError: The engine is not installed, or its converter failed.
    """
    _require(engine)
    with PeerProcess(engine.python, engine.adapter, workdir, cpus, engine.env) as process:
        process.request("hello", time_limit)
        started = time.monotonic()
        reply = process.request("prepare", time_limit, model=str(model), workdir=str(workdir), signature=signature)
        return Path(reply["artifact"]), time.monotonic() - started


def _enter(racer: _Contestant, workload: Workload, signature: dict[str, Any], plan: Plan) -> None:
    """Start, load, run once, verify."""
    if _is_over(plan):
        raise PeerError("timed out", "the model's time was over before the engine's turn")
    _open(racer, signature, plan)
    reply = _run(racer, 1, workload, plan, verify=True)
    if racer.first_ms is None:
        racer.first_ms = reply["times_ns"][0] / 1e6


def _turn(
    racer: _Contestant, iterations: int, last: bool, workload: Workload, signature: dict[str, Any], plan: Plan
) -> None:
    """One warm-up inference and as many recorded ones as the turn has room for."""
    if racer.process is None:
        _enter(racer, workload, signature, plan)
    else:
        racer.process.resume()
    if _is_over(plan):
        raise PeerError("timed out", "the model's time was over before the engine's turn")
    estimate = _run(racer, 1, workload, plan)["times_ns"][0] / 1e9
    count = max(1, min(iterations, int(_TURN_SECONDS / max(estimate, 1e-9))))
    racer.finished = last or racer.spent_s + (2 * count + 1) * estimate > plan.seconds
    reply = _run(racer, count, workload, plan, verify=racer.finished)
    racer.times_ms += [ns / 1e6 for ns in reply["times_ns"]]
    racer.cpu_ns += reply["cpu_ns"]
    racer.wall_ns += reply["wall_ns"]


def _leave(racer: _Contestant, plan: Plan) -> None:
    """Stop or end the process, so that it takes nothing from the next one's turn."""
    if racer.process is None:
        return
    racer.peak_rss = max(racer.peak_rss or 0, racer.process.peak_rss() or 0) or None
    if plan.resident and racer.failure is None:
        racer.process.pause()
    else:
        racer.process.close()
        racer.process = None


def _open(racer: _Contestant, signature: dict[str, Any], plan: Plan) -> None:
    engine = racer.entrant.engine
    _require(engine)
    racer.process = PeerProcess(engine.python, engine.adapter, racer.workdir, plan.cpus, engine.env)
    racer.version = racer.process.request("hello", plan.time_limit)["version"]
    racer.start_rss = racer.process.peak_rss()
    started = time.monotonic()
    artifact = str(racer.entrant.artifact)
    request = {"artifact": artifact, "threads": plan.threads, "device": plan.device, "signature": signature}
    racer.backend = racer.process.request("load", plan.time_limit, **request)["backend"]
    if racer.load_s is None:
        racer.load_s = time.monotonic() - started
    assert racer.backend is not None
    if not engine.accepts(plan.device, racer.backend):
        raise PeerError("wrong backend", f"it runs on '{racer.backend}', not on {plan.device}")


def _run(racer: _Contestant, count: int, workload: Workload, plan: Plan, verify: bool = False) -> dict[str, Any]:
    assert racer.process is not None
    inputs = [str(path) for path in workload.inputs]
    outputs = str(racer.workdir) if verify else None
    reply = racer.process.request("run", plan.time_limit, inputs=inputs, iterations=count, outputs=outputs)
    racer.spent_s += sum(reply["times_ns"]) / 1e9
    if verify:
        found = compare([np.load(path) for path in reply["outputs"]], workload.reference)
        # The worse of the first and the last inference: an engine that corrupts its state shows in the last.
        if racer.accuracy is None or found.worse_than(racer.accuracy):
            racer.accuracy = found
    return reply


def _guarded(racer: _Contestant, step: Callable[[], None]) -> None:
    try:
        step()
    except PeerError as failure:
        racer.failure = failure


def _is_over(plan: Plan) -> bool:
    return time.monotonic() > plan.deadline


def _require(engine: Engine) -> None:
    if not engine.installed:
        raise PeerError("not installed", f"no environment for {engine.title}: run {engine.setup}")


def _label(racer: _Contestant) -> str:
    setting = racer.entrant.setting
    return racer.entrant.engine.title + (f" ({setting})" if setting else "")


def _measurement(racer: _Contestant, plan: Plan) -> Measurement:
    status: Status
    error: str | None
    if racer.failure is not None:
        status, error = racer.failure.kind, racer.failure.message
    elif racer.accuracy is not None and racer.accuracy.within(plan.tolerance):
        status, error = "ok", None
    else:
        problem = racer.accuracy.problem if racer.accuracy is not None else None
        status, error = "wrong", problem
    return Measurement(
        engine=racer.entrant.engine.name,
        version=racer.version,
        device=plan.device,
        threads=plan.threads,
        status=status,
        error=error,
        backend=racer.backend,
        setting=racer.entrant.setting,
        times_ms=tuple(racer.times_ms),
        first_ms=racer.first_ms,
        prepare_s=racer.entrant.prepare_s,
        load_s=racer.load_s,
        peak_rss_bytes=racer.peak_rss,
        start_rss_bytes=racer.start_rss,
        cores_used=racer.cpu_ns / racer.wall_ns if racer.wall_ns else None,
        accuracy=racer.accuracy,
        counts=racer.entrant.counts,
    )
