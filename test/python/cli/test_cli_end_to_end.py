"""Compile, run, verify and inspect real models on the CPU and on lavapipe."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import tiny_onnx

import smartmem_mlir as sm
from conftest import Smartmem
from smartmem_mlir.errors import DeviceError

SMARTMEM = [sys.executable, "-m", "smartmem_mlir.cli.app"]


def test_help_is_fast() -> None:
    """In CPU time, which other work on the machine leaves alone."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*SMARTMEM, "--help"], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0
    for command in ("compile", "run", "verify", "inspect", "doctor"):
        assert command in done.stdout


def test_compile_writes_the_files_and_says_so(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    done = smartmem("compile", model, "-o", tmp_path / "out", "-v", "--verify")
    assert done.code == 0
    assert {entry.name for entry in (tmp_path / "out").iterdir()} == {
        "model.vmfb",
        "params.irpa",
        "report.json",
        "model.mlir",
        "certificates.json",
    }
    assert f"wrote {tmp_path / 'out'}" in done.out
    assert re.search(r"\d+ kernels, \d+ of them data movement", done.out)
    assert "matches ONNX Runtime" in done.out
    assert re.search(r"compiling \d+ kernels: \d+\.\d s", done.err)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_the_default_output_is_named_after_model_and_target(
    smartmem: Smartmem, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert smartmem("compile", model, "--baseline").code == 0
    assert (tmp_path / "tiny-cpu-baseline" / "model.vmfb").is_file()


def test_weights_are_never_in_the_module(compiled: dict[str, Path]) -> None:
    text = (compiled["cpu"] / "model.mlir").read_text()
    assert "#flow.parameter.named" in text
    assert "smartmem." not in text
    assert "dense<[" not in text
    assert 'dense<"' not in text
    assert len(text) < 400_000


def test_the_report_says_what_was_compiled(compiled: dict[str, Path], model: Path) -> None:
    report = json.loads((compiled["vulkan"] / "report.json").read_text())
    assert report["source"]["path"] == str(model)
    assert report["target"]["name"] == "vulkan"
    assert report["baseline"] is True
    assert report["passes"] == "builtin.module()"
    assert report["inputs"] == [{"name": "x", "shape": [1, 49, 64], "dtype": "f32"}]
    assert report["tools"]["iree-base-compiler"] == report["tools"]["iree-base-runtime"]
    assert report["assumptions"]["subgroup_size"] == "any"
    assert report["weight_bytes"] + 4096 <= report["files"]["params.irpa"]["bytes"]
    assert set(report["seconds"]) >= {"running passes", "writing weights", "forming kernels"}


def test_inspect_prints_the_counts_as_json(smartmem: Smartmem, compiled: dict[str, Path]) -> None:
    done = smartmem("inspect", compiled["cpu"], "--json")
    content = json.loads(done.out)
    assert content["kernels"] == sum(entry["calls"] for entry in content["entries"])
    moving = [entry for entry in content["entries"] if entry["kind"] == "movement"]
    assert content["movement_kernels"] == sum(entry["calls"] for entry in moving)
    assert content["movement_bytes"] == sum(
        entry["calls"] * (entry["read_bytes"] + entry["written_bytes"]) for entry in moving
    )
    assert content["total_bytes"] > content["movement_bytes"]


def test_inspect_lists_each_movement_kernel(smartmem: Smartmem, compiled: dict[str, Path]) -> None:
    content = json.loads(smartmem("inspect", compiled["vulkan"], "--json").out)
    text = smartmem("inspect", compiled["vulkan"]).out
    moving = [entry["name"] for entry in content["entries"] if entry["kind"] == "movement"]
    assert moving, "plain IREE at O0 moves data in this model; the test needs a kernel to list"
    for name in moving:
        assert name in text


def test_run_takes_named_and_ordered_inputs(
    smartmem: Smartmem, compiled: dict[str, Path], model: Path, tmp_path: Path
) -> None:
    x = np.random.default_rng(5).standard_normal((1, 49, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    (wanted,) = ort.InferenceSession(str(model)).run(None, {"x": x})
    for argument in (f"x={tmp_path / 'x.npy'}", tmp_path / "x.npy"):
        done = smartmem("run", compiled["cpu"], "--input", argument, "--output", tmp_path / "results")
        assert done.code == 0
        assert done.out.startswith("y: 1x49x64xfloat32: min ")
        np.testing.assert_allclose(np.load(tmp_path / "results" / "y.npy"), wanted, rtol=1e-4, atol=1e-5)


def test_run_without_inputs_says_that_they_are_random(smartmem: Smartmem, compiled: dict[str, Path]) -> None:
    done = smartmem("run", compiled["cpu"], "--device", "local-sync")
    assert done.code == 0
    assert "inputs are random (seed 0)" in done.err


def test_indices_masks_and_integer_outputs(smartmem: Smartmem, tmp_path: Path) -> None:
    path = tiny_onnx.embedding(tmp_path / "embedding.onnx")
    done = smartmem("compile", path, "-o", tmp_path / "out", "--verify")
    assert done.code == 0, done.err
    compiled = sm.load(tmp_path / "out")
    ids = np.array([[6, 0, 3, 3, 1]], np.int64)
    keep = np.array([[True, False, True, True, False]])
    values, best = ort.InferenceSession(str(path)).run(None, {"ids": ids, "keep": keep})
    outputs = compiled.run({"keep": keep, "ids": ids})
    np.testing.assert_array_equal(outputs["values"], values)
    np.testing.assert_array_equal(outputs["best"], best)


def test_random_indices_stay_inside_their_table(tmp_path: Path) -> None:
    from smartmem_mlir.report.inputs import random_inputs
    from smartmem_mlir.report.reference import index_bounds
    from smartmem_mlir.signature import TensorSpec

    bounds = index_bounds(tiny_onnx.embedding(tmp_path / "embedding.onnx", rows=7))
    assert bounds == {"ids": 7}
    (ids,) = random_inputs([TensorSpec("ids", (1000,), "i64")], 0, bounds)
    assert (ids.min(), ids.max()) == (0, 6)


def test_symbolic_dimensions_take_their_size_from_the_command_line(smartmem: Smartmem, tmp_path: Path) -> None:
    path = tiny_onnx.dynamic_batch(tmp_path / "dynamic.onnx")
    refused = smartmem("compile", path, "-o", tmp_path / "out")
    assert refused.code == 2
    assert "--dim" in refused.err
    assert not (tmp_path / "out").exists()
    assert smartmem("compile", path, "-o", tmp_path / "out", "--dim", "n=3", "--verify").code == 0
    assert sm.load(tmp_path / "out").report.inputs[0].shape == (3, 8)


def test_half_precision_on_the_cpu(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    done = smartmem("compile", model, "-o", tmp_path / "out", "--dtype", "f16", "--verify")
    assert done.code == 0, done.out + done.err
    report = sm.load(tmp_path / "out").report
    assert report.inputs[0].dtype == "f16"
    assert "tolerance 0.02" in done.out


@pytest.mark.vulkan
def test_vulkan_verifies_on_lavapipe_with_the_validation_layer_quiet(compiled: dict[str, Path]) -> None:
    done = subprocess.run(
        [*SMARTMEM, "verify", str(compiled["vulkan"]), "--device", "vulkan", "--seeds", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, "VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "matches ONNX Runtime" in done.stdout
    for complaint in ("VUID", "UNASSIGNED", "Validation Error", "Validation Warning"):
        assert complaint not in done.stdout + done.stderr


@pytest.mark.vulkan
def test_the_validation_layer_would_have_complained(compiled: dict[str, Path], tmp_path: Path) -> None:
    # The test above is worth something only if the layer is loaded: a broken SPIR-V module must make it speak.
    done = subprocess.run(
        ["vulkaninfo", "--summary"],
        capture_output=True,
        text=True,
        env={**os.environ, "VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation", "VK_LOADER_DEBUG": "layer"},
        check=False,
    )
    assert re.search(r"(Insert|insert).*VK_LAYER_KHRONOS_validation|libVkLayer_khronos_validation", done.stderr)


@pytest.mark.vulkan
@pytest.mark.parametrize("command", ["run", "verify"])
def test_a_module_for_another_subgroup_size_is_refused(
    smartmem: Smartmem, compiled: dict[str, Path], command: str
) -> None:
    done = smartmem(command, compiled["adreno"])
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert "subgroups of 64 (target adreno), the device has subgroups of 8" in done.err
    assert "llvmpipe" in done.err


@pytest.mark.parametrize("command", ["run", "verify"])
def test_a_module_for_another_architecture_is_refused(
    smartmem: Smartmem, compiled: dict[str, Path], command: str
) -> None:
    done = smartmem(command, compiled["cpu-arm64-android"])
    assert done.code == 2
    assert "architecture aarch64, the machine is" in done.err


def test_verify_fails_with_1_when_a_weight_is_wrong(smartmem: Smartmem, cpu_copy: Path) -> None:
    data = bytearray((cpu_copy / "params.irpa").read_bytes())
    # The last weight in the file, its values replaced by others of the same size.
    data[-8192:-4096] = np.full(1024, 0.5, np.float32).tobytes()
    (cpu_copy / "params.irpa").write_bytes(data)
    done = smartmem("verify", cpu_copy)
    assert done.code == 1
    assert "DIFFERS FROM ONNX Runtime" in done.out
    assert re.search(r"relative L2 \d\.\d+e[+-]\d+ is above 0\.0001", done.out)


def test_verify_honours_the_tolerance(smartmem: Smartmem, compiled: dict[str, Path]) -> None:
    done = smartmem("verify", compiled["cpu"], "--tolerance", "1e-12", "--seeds", "2", "--seed", "7")
    assert done.code == 1
    assert re.findall(r"^y +(\d+) ", done.out, re.MULTILINE) == ["7", "8"]


def test_the_python_interface(compiled: dict[str, Path], model: Path) -> None:
    x = np.random.default_rng(3).standard_normal((1, 49, 64)).astype(np.float32)
    (wanted,) = ort.InferenceSession(str(model)).run(None, {"x": x})
    np.testing.assert_allclose(sm.run(compiled["cpu"], [x])["y"], wanted, rtol=1e-4, atol=1e-5)
    opened = sm.load(compiled["cpu"])
    np.testing.assert_array_equal(opened.run({"x": x})["y"], opened.run([x])["y"])
    with pytest.raises(DeviceError, match="compiled for a CPU"):
        opened.run([x], device="vulkan")


@pytest.mark.parametrize(
    ("stage", "present", "absent"),
    [
        ("import", "smartmem.parameter", "util.global"),
        ("passes", "smartmem.parameter", "util.global"),
        ("iree", "#flow.parameter.named", "smartmem.parameter"),
        ("flow", "flow.dispatch", "smartmem.parameter"),
    ],
)
def test_emit_prints_a_stage(smartmem: Smartmem, model: Path, stage: str, present: str, absent: str) -> None:
    done = smartmem("compile", model, "--emit", stage)
    assert done.code == 0
    assert present in done.out
    assert absent not in done.out


def test_emit_writes_to_a_file(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    done = smartmem("compile", model, "--emit", "import", "-o", tmp_path / "x.mlir")
    assert (done.code, done.out) == (0, "")
    assert "smartmem.parameter" in (tmp_path / "x.mlir").read_text()


def test_doctor_finds_lavapipe(smartmem: Smartmem) -> None:
    done = smartmem("doctor", "--json")
    assert done.code == 0, done.out
    findings = {finding["name"]: finding for finding in json.loads(done.out)}
    assert findings["device vulkan://0"]["state"] == "ok"
    assert "subgroups of 8" in findings["device vulkan://0"]["detail"]
    assert findings["iree-compile"]["state"] == "ok"


def test_doctor_says_how_to_get_a_driver(smartmem: Smartmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", "/nonexistent.json")
    monkeypatch.setenv("VK_ICD_FILENAMES", "/nonexistent.json")
    done = smartmem("doctor")
    assert done.code == 0
    assert "apt install mesa-vulkan-drivers" in done.out
