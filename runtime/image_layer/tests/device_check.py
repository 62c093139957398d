#!/usr/bin/env python3
"""Checks the image layer on a machine that has a GPU and little else.

    device_check.py prepare DIRECTORY    here: needs iree-compile, CMake, a C++ compiler and spirv-tools
    device_check.py run DIRECTORY        there: needs iree.runtime, NumPy and a Vulkan loader and driver

`run` goes through chains of image tensors in every format and kind of binding against NumPy, 300 invocations with
memory reuse, two threads, the canary with and without the layer, and programs that must fail. It prints a line for
each and a summary, and exits with 1 if any failed. Then, without judging, it prints how long chains of 100 small
dispatches take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[3]
HELPERS = ROOT / "test" / "python" / "image_layer"
SOURCE = ROOT / "runtime" / "image_layer"
sys.path.insert(0, str(HELPERS))

Array = npt.NDArray[Any]

LAYER = "VK_LAYER_SMARTMEM_image_memory"
CHAIN_LENGTH = 100
# How a chain's dispatches read and write what they pass on.
CHAINS: dict[str, tuple[Any, Any]] = {
    "buffer": ("buffer", "buffer"),
    "image": ("sampled", "image"),
    "texel": ("uniform_texel", "texel"),
}


# Here -----------------------------------------------------------------------------------------------------------------


def prepare(directory: Path) -> None:
    """Builds the layer and the programs, with their inputs and expected outputs, into a directory."""
    import image_cases as cases
    from image_programs import Function, compile_module, compile_program, random_tensor

    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as build:
        subprocess.run(["cmake", "-S", SOURCE, "-B", build], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("libVkLayer_smartmem_image_memory.so", "VkLayer_smartmem_image_memory.json"):
            (directory / name).write_bytes((Path(build) / name).read_bytes())

    plans: dict[str, list[dict[str, Any]]] = {}

    def add(program: str, function: str, inputs: list[Array], expected: list[Array]) -> None:
        stem = f"{program}_{function}"
        for kind, arrays in (("in", inputs), ("expected", expected)):
            for index, array in enumerate(arrays):
                np.save(directory / f"{stem}_{kind}{index}.npy", array)
        types = [array.dtype.name for array in expected]
        plans.setdefault(program, []).append(
            {"function": function, "stem": stem, "inputs": len(inputs), "types": types}
        )

    def compile_all(program: str, functions: list[Function]) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            module = compile_program(Path(scratch), functions)
            (directory / f"{program}.vmfb").write_bytes(module.read_bytes())

    for texel in cases.FORMATS:
        shapes = enumerate(cases.SHAPES)
        functions = [cases.network(index, dim, (w, h, d), texel) for index, (dim, w, h, d) in shapes]
        compile_all(texel, functions)
        for seed, function in enumerate(functions):
            value = random_tensor(function.kernels()[0], seed)
            add(texel, function.name, [value], cases.expect(function, value))
    reuse, expected = cases.reuse_program()
    compile_all("reuse", [reuse])
    add("reuse", "f", [cases.VALUE], [expected])
    compile_all("mistakes", cases.mistakes())
    for function in cases.mistakes():
        # The types are only counted: `returned` has two results.
        add("mistakes", function.name, [cases.VALUE], [cases.VALUE] * len(function.results))
    for kind, (read, write) in CHAINS.items():
        program = f"chain_{kind}"
        compile_all(program, [cases.chain(CHAIN_LENGTH, read, write)])
        value = random_tensor(cases.chain(1, read, write).kernels()[0])
        total = value.copy()
        for _ in range(CHAIN_LENGTH):
            total += np.float32(1)
        add(program, "f", [value], [total])
    for name in ("version", "mirror"):
        compile_module(SOURCE / "canary" / f"{name}.mlir", directory / f"{name}.vmfb")
    add("version", "layer_version", [], [np.array([1], np.uint32)])
    tensor = np.random.default_rng(0).uniform(-1, 1, (4, 8, 4)).astype(np.float32)
    add("mirror", "mirror", [tensor], [np.ascontiguousarray(tensor[::-1, ::-1])])
    (directory / "plans.json").write_text(json.dumps(plans))


# There ----------------------------------------------------------------------------------------------------------------


class Checks:
    """Runs the prepared programs and counts what fails."""

    def __init__(self, directory: Path, scratch: Path) -> None:
        self.directory = directory
        self.scratch = scratch
        self.plans: dict[str, list[dict[str, Any]]] = json.loads((directory / "plans.json").read_text())
        self.failures: list[str] = []
        self.count = 0

    def check(self, name: str, body: Callable[[], str]) -> None:
        """Runs one check; it raises AssertionError to fail, and returns a remark."""
        start = time.perf_counter()
        self.count += 1
        try:
            remark, verdict = body(), "pass"
        except AssertionError as error:
            remark, verdict = str(error), "FAIL"
            self.failures.append(name)
        print(f"{verdict}  {name:42} {time.perf_counter() - start:5.1f} s  {remark}", flush=True)

    def work(
        self, program: str, functions: list[str] | None = None, *, layer: bool = True, repeat: int = 1, threads: int = 1
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """Runs functions of a program in image_worker.py; returns the process and the layer's statistics."""
        calls = [call for call in self.plans[program] if functions is None or call["function"] in functions]
        plan = {
            "module": str(self.directory / f"{program}.vmfb"),
            "repeat": repeat,
            "threads": threads,
            "calls": [
                {
                    "function": call["function"],
                    "inputs": [str(self.directory / f"{call['stem']}_in{i}.npy") for i in range(call["inputs"])],
                    "outputs": [str(self.scratch / f"{call['stem']}_out{i}.npy") for i in range(len(call["types"]))],
                    "types": call["types"],
                }
                for call in calls
            ],
        }
        (self.scratch / "plan.json").write_text(json.dumps(plan))
        statistics = self.scratch / "statistics.jsonl"
        statistics.unlink(missing_ok=True)
        environment = {**os.environ, "SMARTMEM_IMAGE_STATS": str(statistics)}
        environment["VK_LAYER_PATH"] = str(self.directory)
        environment["VK_INSTANCE_LAYERS"] = LAYER if layer else ""
        process = subprocess.run(
            [sys.executable, str(HELPERS / "image_worker.py"), str(self.scratch / "plan.json")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        lines = statistics.read_text().splitlines() if statistics.exists() else []
        return process, json.loads(lines[-1]) if lines else {}

    def right(self, program: str, **options: Any) -> str:
        """The program runs, twice the same, and gives what was expected (f16: within four units in the last place)."""
        process, statistics = self.work(program, **options)
        assert process.returncode == 0, process.stderr.strip()[-600:]
        report = json.loads(next(line for line in process.stdout.splitlines() if line.startswith("{")))
        assert report["mismatches"] == [], report["mismatches"]
        for call in self.plans[program]:
            for index in range(len(call["types"])):
                actual = np.load(self.scratch / f"{call['stem']}_out{index}.npy")
                expected = np.load(self.directory / f"{call['stem']}_expected{index}.npy")
                if actual.dtype == np.float16:
                    error = np.abs(actual.astype(np.float32) - expected.astype(np.float32))
                    bound = 4 * np.spacing(np.maximum(np.abs(expected.astype(np.float32)) * 4, 16).astype(np.float16))
                    assert np.all(error <= bound.astype(np.float32)), f"{call['function']}: off by {error.max()}"
                else:
                    assert np.array_equal(actual, expected), f"{call['function']}: wrong values"
        return (
            ""
            if not statistics
            else (
                f"{statistics['dispatches_redirected']} redirected, {statistics['images_created']} images, "
                f"peak {statistics['image_bytes_peak']} bytes, {statistics['images_evicted']} evicted"
            )
        )

    def fails(self, function: str) -> str:
        """The program fails with a message of the layer."""
        process, _ = self.work("mistakes", [function])
        messages = [line for line in process.stderr.splitlines() if line.startswith("smartmem image layer: error")]
        assert process.returncode != 0, "it ran"
        assert messages, process.stderr.strip()[-600:]
        return messages[0].removeprefix("smartmem image layer: error: ")[:90]

    def absent(self) -> str:
        """Without the layer, the canary's version is 0."""
        process, _ = self.work("version", layer=False)
        assert process.returncode == 0, process.stderr.strip()[-600:]
        version = np.load(self.scratch / "version_layer_version_out0.npy")[0]
        assert version == 0, f"version {version}"
        return "version 0"

    def times(self) -> None:
        """Prints how long the chains take, the one of buffers also without the layer."""
        for kind, layer in (("buffer", False), ("buffer", True), ("texel", True), ("image", True)):
            process, _ = self.work(f"chain_{kind}", repeat=100, layer=layer)
            if process.returncode != 0:
                print(f"time  {kind}: {process.stderr.strip()[-300:]}")
                continue
            report = json.loads(next(line for line in process.stdout.splitlines() if line.startswith("{")))
            seconds = sorted(report["seconds"])
            print(
                f"time  {CHAIN_LENGTH} {kind} dispatches {'with' if layer else 'without'} the layer: "
                f"min {seconds[0] * 1e3:.3f} ms, median {seconds[len(seconds) // 2] * 1e3:.3f} ms"
            )


def run(directory: Path) -> int:
    """Runs every check; returns the exit code."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        checks = Checks(directory, Path(scratch))
        checks.check("canary without the layer", checks.absent)
        checks.check("canary with the layer", partial(checks.right, "version"))
        checks.check("canary through an image", partial(checks.right, "mirror"))
        for texel in ("rgba32f", "rgba16f", "rgba32ui"):
            checks.check(f"chains, {texel}", partial(checks.right, texel, repeat=2))
        checks.check("memory reuse, 300 invocations", partial(checks.right, "reuse", repeat=300))
        checks.check("memory reuse, two threads", partial(checks.right, "reuse", repeat=50, threads=2))
        for kind in CHAINS:
            checks.check(f"chain of {CHAIN_LENGTH}, {kind}", partial(checks.right, f"chain_{kind}"))
        for call in checks.plans["mistakes"][1:]:
            name = call["function"]
            checks.check(f"must fail: {name}", partial(checks.fails, name))
        checks.times()
    verdict = "FAIL" if checks.failures else "PASS"
    passed = checks.count - len(checks.failures)
    print(f"{verdict}  {passed} of {checks.count} checks passed in {time.perf_counter() - start:.0f} s")
    for name in checks.failures:
        print(f"failed: {name}")
    return 1 if checks.failures else 0


def main(arguments: list[str]) -> int:
    """Runs the command line; returns the exit code."""
    match arguments:
        case ["prepare", directory]:
            prepare(Path(directory))
            return 0
        case ["run", directory]:
            return run(Path(directory).resolve())
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
