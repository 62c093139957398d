"""Runs modules on a driver, with or without the image layer and the validation layer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from image_programs import Array

Refuses = Callable[[str], AbstractContextManager[None]]
"""A block that must end in a failed Vulkan call, with a message of the layer that contains the text."""

NO_LOADER = "the Vulkan loader is missing; tools/install-system-packages installs it"
LAYER = "VK_LAYER_SMARTMEM_image_memory"
VALIDATION = "VK_LAYER_KHRONOS_validation"
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Driver:
    """A Vulkan driver, by its manifest."""

    name: str
    manifest: Path


@dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    code: int
    text: str
    """Standard output and standard error."""
    statistics: list[dict[str, Any]]
    """The layer's, one object per device."""

    def validation_errors(self) -> list[str]:
        """Lines in which the validation layer objects to something."""
        return [line for line in self.text.splitlines() if "Validation Error" in line or "VUID-" in line]


@dataclass(frozen=True)
class Call:
    """One invocation: the function and its inputs; `types` are the results' NumPy types."""

    function: str
    inputs: Sequence[Array]
    types: Sequence[str]


@dataclass(frozen=True)
class Runner:
    """A driver and where the layer is."""

    driver: Driver
    layer_directory: Path
    scratch: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        command: Sequence[str],
        *,
        layer: bool = True,
        validation: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Runs a command under the driver."""
        statistics = self.scratch / "statistics.jsonl"
        statistics.unlink(missing_ok=True)
        layers = ([LAYER] if layer else []) + ([VALIDATION] if validation else [])
        variables = {
            **os.environ,
            "VK_ICD_FILENAMES": str(self.driver.manifest),
            "VK_DRIVER_FILES": str(self.driver.manifest),
            "VK_ADD_LAYER_PATH": str(self.layer_directory),
            "VK_INSTANCE_LAYERS": ":".join(layers),
            "SMARTMEM_IMAGE_STATS": str(statistics),
            **self.environment,
            **(environment or {}),
        }
        process = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
        lines = statistics.read_text().splitlines() if statistics.exists() else []
        return Outcome(process.returncode, process.stdout + process.stderr, [json.loads(line) for line in lines])

    def invoke(
        self, module: Path, function: str, inputs: Sequence[Array], results: int = 1, **options: Any
    ) -> tuple[Outcome, list[Array]]:
        """One invocation by iree-run-module; no results if it failed."""
        command = ["iree-run-module", "--device=vulkan", "--vulkan_dispatch_abi=descriptor"]
        command += [f"--module={module}", f"--function={function}"]
        for number, values in enumerate(inputs):
            path = self.scratch / f"input{number}.npy"
            np.save(path, values.view(np.int32) if values.dtype == np.uint32 else values)
            command.append(f"--input=@{path}")
        outputs = [self.scratch / f"output{number}.npy" for number in range(results)]
        for output in outputs:
            output.unlink(missing_ok=True)
            command.append(f"--output=@{output}")
        outcome = self.run(command, **options)
        return outcome, [np.load(output) for output in outputs if output.exists()]

    def work(
        self, module: Path, calls: Sequence[Call], *, repeat: int = 1, threads: int = 1, **options: Any
    ) -> tuple[Outcome, list[list[Array]], dict[str, Any]]:
        """Many invocations in one process (image_worker.py): outcome, outputs by call, the worker's report."""
        plan: dict[str, Any] = {"module": str(module), "repeat": repeat, "threads": threads, "calls": []}
        paths: list[list[Path]] = []
        for number, call in enumerate(calls):
            inputs = [self.scratch / f"call{number}_input{index}.npy" for index in range(len(call.inputs))]
            for path, values in zip(inputs, call.inputs, strict=True):
                np.save(path, values)
            paths.append([self.scratch / f"call{number}_output{index}.npy" for index in range(len(call.types))])
            plan["calls"].append(
                {
                    "function": call.function,
                    "inputs": [str(path) for path in inputs],
                    "outputs": [str(path) for path in paths[-1]],
                    "types": list(call.types),
                }
            )
        plan_path = self.scratch / "plan.json"
        plan_path.write_text(json.dumps(plan))
        worker = Path(__file__).with_name("image_worker.py")
        outcome = self.run([sys.executable, str(worker), str(plan_path)], **options)
        if outcome.code != 0:
            return outcome, [], {}
        report = json.loads(next(line for line in outcome.text.splitlines() if line.startswith("{")))
        return outcome, [[np.load(path) for path in row] for row in paths], report
