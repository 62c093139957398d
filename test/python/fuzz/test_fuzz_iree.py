"""A few random programs through IREE, and what the fuzzer makes of programs that go wrong.

`make fuzz` runs 10,000 of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from iree_batches import BatchError, Compiler, distance, draw, failures, tolerance
from program import Program

from smartmem_mlir.targets import load_target

FUZZ = Path(__file__).with_name("fuzz.py")
CPU = Compiler.of(load_target("cpu"))


def doubled(name: str, factor: float = 2.0) -> Program:
    """y = 2 x, or so it is told to be."""
    program = Program(name)
    x = program.argument([3, 5])
    body = "%y = arith.addf %x0, %x0 : f32\n    linalg.yield %y : f32"
    program.results = [program.generic([(x, [0, 1])], [0, 1], "pp", body, x.array * factor)]
    return program


def test_a_batch_is_drawn_alike_each_time() -> None:
    first, again, other = draw(3, 5), draw(3, 5), draw(4, 5)
    assert [p.text() for p in first] == [p.text() for p in again]
    assert [p.text() for p in first] != [p.text() for p in other]
    assert [p.name for p in first] == ["p0", "p1", "p2", "p3", "p4"]


def test_random_programs_compute_the_same() -> None:
    assert failures(draw(0, 20), CPU) == []


@pytest.mark.vulkan
def test_random_programs_compute_the_same_on_vulkan() -> None:
    found = failures(draw(1, 5), Compiler.of(load_target("vulkan")))
    assert [failure for failure in found if not failure.plain] == []


def test_a_wrong_program_is_found_among_right_ones() -> None:
    """NumPy is told another factor for one: plain IREE is as far from it, so that the passes are not to blame."""
    (failure,) = failures([doubled("p0"), doubled("p1", 3.0), doubled("p2")], CPU)
    assert (failure.position, failure.kind, failure.plain) == (1, "wrong", True)
    assert "@p1" in failure.text


def test_a_program_that_only_our_pipeline_breaks_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Compiler.run

    def breaks_p1(self: Compiler, programs: list[Program]) -> object:
        if self.pipeline.passes and any(p.name == "p1" for p in programs):
            raise BatchError("crashes", "exit code -11: ")
        return run(self, programs)

    monkeypatch.setattr(Compiler, "run", breaks_p1)
    (failure,) = failures([doubled("p0"), doubled("p1"), doubled("p2")], CPU)
    assert (failure.position, failure.kind, failure.plain) == (1, "crashes", False)


def test_a_program_that_does_not_compile_is_named() -> None:
    bad = doubled("p1")
    bad.lines.append('%bad = "no.such_operation"() : () -> f32')
    (failure,) = failures([doubled("p0"), bad], CPU)
    assert (failure.position, failure.kind, failure.plain) == (1, "does not compile", True)


def test_errors_are_relative_and_nan_is_infinite() -> None:
    program = doubled("p0")
    (wanted,) = program.results
    assert distance(program, [wanted.array.astype(np.float32)]) < 1e-6
    assert distance(program, [np.full_like(wanted.array, np.nan)]) == np.inf
    program.results = [replace(wanted, array=wanted.array * 100)]
    assert distance(program, [wanted.array * 100 + 1]) == pytest.approx(1 / np.abs(wanted.array * 100).max())
    assert tolerance(program) < 1e-3


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    rows = [{"batch": number, "programs": 50, "seconds": 1.0, "failures": []} for number in (0, 1)]
    rows[1]["failures"] = [{"position": 7, "kind": "wrong", "what": "off by 1", "plain": False}]
    (tmp_path / "batches.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, str(FUZZ), "--examples", "100", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, "there is a failure among the batches that were done"
    assert done.stdout == "100 programs {'wrong': 1}\n"
