"""A `.pt2` archive is code: nothing loads it unless the user says so, and then a warning says what that means."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import smartmem_mlir as sm
from conftest import Smartmem
from smartmem_mlir.errors import OptionError
from smartmem_mlir.report import reference


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What a torch that stands in for the real one was asked to load."""
    found: list[Path] = []

    def load(path: Path) -> object:
        found.append(path)
        raise pickle.UnpicklingError("stand-in")

    torch = ModuleType("torch")
    torch.export = SimpleNamespace(load=load)  # type: ignore[attr-defined]
    for name in ("onnxscript", "onnx_ir"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "torch", torch)
    return found


def archive(folder: Path) -> Path:
    path = folder / "net.pt2"
    path.write_bytes(b"PK")
    return path


def test_compile_refuses_and_names_the_option(smartmem: Smartmem, tmp_path: Path, loaded: list[Path]) -> None:
    done = smartmem("compile", archive(tmp_path), "-o", tmp_path / "out")
    assert done.code == 2
    assert "--trust-model" in done.err
    assert "warning" not in done.err
    assert loaded == []


def test_compile_warns_and_loads(smartmem: Smartmem, tmp_path: Path, loaded: list[Path]) -> None:
    done = smartmem("compile", archive(tmp_path), "-o", tmp_path / "out", "--trust-model")
    assert done.code == 2
    assert "warning" in done.err
    assert "runs code from it" in done.err
    assert "torch cannot load the file" in done.err
    assert loaded == [tmp_path / "net.pt2"]


def test_no_warning_for_files_that_run_no_code(smartmem: Smartmem, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"PK")
    assert "warning:" not in smartmem("compile", path, "-o", tmp_path / "out", "--trust-model").err


def test_a_compiled_directory_cannot_make_verify_load_an_archive(
    smartmem: Smartmem, compiled: dict[str, Path], tmp_path: Path, loaded: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory may be a stranger's, and names the file that is the reference."""
    path = archive(tmp_path)
    report = sm.load(compiled["cpu"]).report
    source = report.source.model_copy(update={"kind": "torch", "path": str(path), "sha256": None})
    foreign = report.model_copy(update={"source": source})
    monkeypatch.setattr("smartmem_mlir.report.directory.read_directory", lambda folder: foreign)
    done = smartmem("verify", compiled["cpu"])
    assert done.code == 2
    assert "--trust-model" in done.err
    assert loaded == []
    done = smartmem("verify", compiled["cpu"], "--trust-model")
    assert "runs code from it" in done.err
    assert loaded == [path]


def test_python_interface(tmp_path: Path, loaded: list[Path]) -> None:
    assert not sm.CompileOptions().trusted
    with pytest.raises(OptionError, match="trusted=True"):
        sm.compile(archive(tmp_path), tmp_path / "out")
    with pytest.raises(OptionError, match="trusted=True"):
        reference.torch_reference(archive(tmp_path), trusted=False)
    assert loaded == []
