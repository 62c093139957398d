"""The command line in this process, and models compiled once for all tests."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import tiny_onnx

import smartmem_mlir as sm
from smartmem_mlir.cli.app import main


@dataclass(frozen=True)
class Outcome:
    """Exit code and streams of a command."""

    code: int
    out: str
    err: str


Smartmem = Callable[..., Outcome]


@pytest.fixture
def smartmem(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Smartmem:
    """Run `smartmem ARGUMENTS` in this process."""

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["smartmem", *map(str, arguments)])
        # Wide enough that no message is wrapped.
        monkeypatch.setenv("COLUMNS", "400")
        capfd.readouterr()
        try:
            main()
            code = 0
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1
        streams = capfd.readouterr()
        return Outcome(code, streams.out, streams.err)

    return run


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small transformer as ONNX."""
    return tiny_onnx.transformer(tmp_path_factory.mktemp("model") / "tiny.onnx")


@pytest.fixture(scope="session")
def compiled(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The small transformer compiled for several targets, with IREE's kernels for Vulkan; not to be changed."""
    folder = tmp_path_factory.mktemp("compiled")
    directories = {name: folder / name for name in ("cpu", "vulkan", "adreno", "cpu-arm64-android")}
    for name, directory in directories.items():
        # Kernels of IREE's assume a subgroup size, shaders of ours do not.
        pipeline = "gpu" if name == "adreno" else None
        sm.compile(model, directory, target=name, baseline=name == "vulkan", pipeline=pipeline)
    return directories


@pytest.fixture
def cpu_copy(compiled: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the directory for the CPU, to damage."""
    return Path(shutil.copytree(compiled["cpu"], tmp_path / "copy"))
