"""Random programs through the whole compiler: many functions in one module, so that they share a compilation.

Programs are those of `random_graphs`, drawn by number: a batch's seed and a position in it name a program for good (as
long as hypothesis stays the same). A batch that does not compile, crashes or computes something else is halved until
single programs are left, and plain IREE is asked about these: what it does no better is its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

from program import Program, Tensor
from random_graphs import programs as random_programs

from smartmem_mlir.errors import CompilerError, SmartMemError
from smartmem_mlir.iree.build import build
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.isolation import lower_isolated
from smartmem_mlir.targets import Pipeline, TargetDescription, load_pipeline

EXECUTE = Path(__file__).with_name("execute.py")
TOLERANCE = {"f32": 1e-4, "f16": 2e-2}
"""Largest error of an element, relative to the largest element of its tensor or to 1. Norms of nearly equal numbers
amplify rounding by 32 each, and programs have several."""
# Plain IREE's error explains one of ours that is not much larger.
_AS_PLAIN = 4.0
_TIME_LIMIT_S = 900.0

Array = np.ndarray
Kind = Literal["wrong", "does not compile", "crashes"]


@dataclass(frozen=True)
class Failure:
    """A program on which something went wrong.

    Args:
        position: Its number in its batch.
        kind: What went wrong.
        what: The compiler's words, or the size of the error.
        plain: Whether plain IREE does no better on it.
        text: The program.
    """

    position: int
    kind: Kind
    what: str
    plain: bool
    text: str


class BatchError(Exception):
    """A batch as a whole has no numbers."""

    def __init__(self, kind: Kind, what: str) -> None:
        super().__init__(what)
        self.kind: Kind = kind


def draw(number: int, count: int) -> list[Program]:
    """Batch `number`: `count` programs, functions `p0`, `p1`, ...; the same ones each time."""
    drawn: list[Program] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(random_programs())
    def collect(program: Program) -> None:
        drawn.append(program)

    collect()
    for position, program in enumerate(drawn):
        program.name = f"p{position}"
    return drawn


@dataclass(frozen=True)
class Compiler:
    """How batches are compiled and where they run.

    Args:
        target: The target.
        device: IREE's name of the device.
        pipeline: The passes; the target's own by default.
        opt_level: IREE's optimisation level; the target's own by default.
    """

    target: TargetDescription
    device: str
    pipeline: Pipeline
    opt_level: str | None = None

    @staticmethod
    def of(target: TargetDescription, opt_level: str | None = None) -> Compiler:
        """Our compiler for a target."""
        device = "local-sync" if target.cpu is not None else "vulkan"
        return Compiler(target, device, load_pipeline(target.pipeline), opt_level)

    @property
    def plain(self) -> Compiler:
        """Plain IREE."""
        return Compiler(self.target, self.device, load_pipeline("baseline"), self.opt_level)

    def run(self, programs: Sequence[Program]) -> list[list[Array]]:
        """The results of each program.

        Raises:
            BatchError: The module does not compile, or running it ends the process.
        """
        with tempfile.TemporaryDirectory(prefix="smartmem-fuzz-") as scratch:
            folder = Path(scratch)
            self._compile(programs, folder)
            arguments = {
                f"{program.name}/{number}": argument.array.astype(_dtype(argument.element))
                for program in programs
                for number, argument in enumerate(program.arguments)
            }
            np.savez(folder / "arguments.npz", **arguments)
            signatures = {p.name: [_types(p.arguments), _types(p.results)] for p in programs}
            (folder / "signatures.json").write_text(json.dumps(signatures))
            command = [sys.executable, str(EXECUTE), str(folder), self.device]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIME_LIMIT_S)
            except subprocess.TimeoutExpired:
                raise BatchError("crashes", f"runs longer than {_TIME_LIMIT_S:g} s") from None
            if done.returncode != 0:
                said = done.stderr.strip().splitlines()[-1:] or [""]
                raise BatchError("crashes", f"exit code {done.returncode}: {said[0][:300]}")
            with np.load(folder / "results.npz") as found:
                return [[found[f"{p.name}/{i}"] for i in range(len(p.results))] for p in programs]

    def _compile(self, programs: Sequence[Program], folder: Path) -> None:
        options = CompilerOptions(timeout_s=_TIME_LIMIT_S, reproducer=folder / "reproducer")
        try:
            text = "".join(program.text() for program in programs)
            lowered = lower_isolated(text, self.pipeline, self.target, options)
            source = folder / "module.mlir"
            source.write_text(lowered.text)
            build(source, folder / "module.vmfb", folder, self.target, self.opt_level, options, lambda stage: None)
        except SmartMemError as error:
            what = error.what if isinstance(error, CompilerError) else f"{type(error).__name__}: {error.what}"
            raise BatchError("does not compile", what) from error


def failures(programs: Sequence[Program], compiler: Compiler) -> list[Failure]:
    """What goes wrong in a batch, program by program."""
    found = []
    for program, results in _results(programs, compiler):
        position = int(program.name.removeprefix("p"))
        if isinstance(results, BatchError):
            plain, what = _plain_refuses(program, compiler), str(results)
            found.append(Failure(position, results.kind, what, plain, program.text()))
        elif (error := distance(program, results)) > tolerance(program):
            plain = _plain_distance(program, compiler)
            # Where plain IREE has no numbers, a wrong one is ours.
            explained = plain is not None and error <= _AS_PLAIN * plain
            what = f"off by {error:.1e}, plain IREE by {'?' if plain is None else f'{plain:.1e}'}"
            found.append(Failure(position, "wrong", what, explained, program.text()))
    return found


def tolerance(program: Program) -> float:
    """The largest error that counts as rounding."""
    return TOLERANCE["f16" if re.search(r"\bf16\b|xf16", program.text()) else "f32"]


def distance(program: Program, results: Sequence[Array]) -> float:
    """The largest error of an element, as in :data:`TOLERANCE`; infinite for NaN."""
    largest = 0.0
    for wanted, found in zip(program.results, results, strict=True):
        scale = max(1.0, float(np.max(np.abs(wanted.array), initial=0.0)))
        error = float(np.max(np.abs(wanted.array - found.astype(np.float64)), initial=0.0)) / scale
        largest = max(largest, error) if np.isfinite(error) else np.inf
    return largest


def _results(programs: Sequence[Program], compiler: Compiler) -> Iterator[tuple[Program, list[Array] | BatchError]]:
    """The results of each program, or why there are none when it is alone."""
    try:
        yield from zip(programs, compiler.run(programs), strict=True)
    except BatchError as error:
        if len(programs) == 1:
            yield programs[0], error
            return
        half = len(programs) // 2
        yield from _results(programs[:half], compiler)
        yield from _results(programs[half:], compiler)


def _plain_refuses(program: Program, compiler: Compiler) -> bool:
    try:
        compiler.plain.run([program])
    except BatchError:
        return True
    return False


def _plain_distance(program: Program, compiler: Compiler) -> float | None:
    """None if plain IREE has no numbers to compare with."""
    try:
        return distance(program, compiler.plain.run([program])[0])
    except BatchError:
        return None


def _types(tensors: Sequence[Tensor]) -> list[tuple[str, tuple[int, ...]]]:
    return [(tensor.element, tensor.shape) for tensor in tensors]


def _dtype(element: str) -> str:
    return {"f32": "float32", "f16": "float16", "i64": "int64"}[element]
