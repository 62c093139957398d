"""What users get wrong, and what machines refuse: one line, exit code 2, nothing half-written."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Outcome, Smartmem
from smartmem_mlir.report.schema import digest

SMARTMEM = [sys.executable, "-m", "smartmem_mlir.cli.app"]


def assert_refused(done: Outcome, *texts: object) -> None:
    """One line on stderr that holds all of `texts`, nothing on stdout, exit code 2."""
    assert done.code == 2, done
    assert done.out == ""
    # On a slow machine a stage that ended before the error has left its line.
    lines = [line for line in done.err.splitlines() if not re.fullmatch(r"[\w ]+: \d+\.\d s", line)]
    assert len(lines) == 1, done.err
    assert lines[0].startswith("smartmem: error: ")
    for text in texts:
        assert str(text) in lines[0]


# Options of compile.


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["--target", "adrno"], ["unknown target 'adrno'", "did you mean adreno"]),
        (["--target", "nowhere.yaml"], ["nowhere.yaml: no such target description"]),
        (["--pipeline", "nope"], ["unknown pipeline 'nope'"]),
        (["--dim", "n"], ["--dim n: expected NAME=VALUE"]),
        (["--dim", "n=0"], ["--dim n=0: expected a positive integer"]),
        (["--dim", "n=-3"], ["expected a positive integer"]),
        (["--dim", "n=99999999999"], ["expected a positive integer below 2**31"]),
        (["--dim", "n=٣"], ["expected a positive integer"]),
        (["--dim", "n=1", "--dim", "n=2"], ["'n' is given twice"]),
        (["--emit", "iree", "--verify"], ["--emit stops before there is a module to verify"]),
    ],
)
def test_options_that_make_no_sense(
    smartmem: Smartmem, model: Path, tmp_path: Path, arguments: list[str], texts: list[str]
) -> None:
    assert_refused(smartmem("compile", model, "-o", tmp_path / "out", *arguments), *texts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["compile"], ["compile", "m.onnx", "--dtype", "f8"], ["compile", "m.onnx", "--bogus"], ["frobnicate"]]
)
def test_usage_errors_exit_with_2(smartmem: Smartmem, arguments: list[str]) -> None:
    done = smartmem(*arguments)
    assert done.code == 2
    assert "Usage:" in done.err


def test_a_pipeline_with_an_unknown_pass_is_refused(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text("name: p\nsummary: s\npasses: [smartmem-frobnicate]\n")
    done = smartmem("compile", model, "-o", tmp_path / "out", "--pipeline", pipeline)
    assert_refused(done, "smartmem-frobnicate")
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_none_is_refused(smartmem: Smartmem, tmp_path: Path) -> None:
    path = tmp_path / "not.onnx"
    path.write_text("hello")
    assert_refused(smartmem("compile", path, "-o", tmp_path / "out"), path)
    assert_refused(smartmem("compile", tmp_path / "nowhere.onnx", "-o", tmp_path / "out"), "nowhere.onnx")
    assert [entry.name for entry in tmp_path.iterdir()] == ["not.onnx"]


def test_debug_adds_the_traceback(smartmem: Smartmem, tmp_path: Path) -> None:
    done = smartmem("compile", tmp_path / "nowhere.onnx", "--debug")
    assert done.code == 2
    assert "Traceback (most recent call last)" in done.err
    assert done.err.splitlines()[-1].startswith("smartmem: error: ")


# The output directory.


def test_a_foreign_directory_is_kept_unless_forced(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("ten years of work")
    assert_refused(smartmem("compile", model, "-o", out), out, "did not write", "--force")
    assert (out / "thesis.tex").read_text() == "ten years of work"
    assert smartmem("compile", model, "-o", out, "--baseline", "--force").code == 0
    assert not (out / "thesis.tex").exists()
    # And now it is ours, so that it can be replaced without --force, but not once something else is in it.
    assert smartmem("compile", model, "-o", out, "--baseline").code == 0
    (out / "notes.txt").write_text("mine")
    assert_refused(smartmem("compile", model, "-o", out), "did not write")


def test_the_current_directory_is_never_replaced(
    smartmem: Smartmem, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    for directory in (".", "..", tmp_path):
        assert_refused(smartmem("compile", model, "-o", directory, "--force"), "choose a subdirectory")


def test_a_file_in_the_way_is_kept(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    assert_refused(smartmem("compile", model, "-o", tmp_path / "out", "--force"), "is not a directory")
    assert_refused(
        smartmem("compile", model, "-o", tmp_path / "out" / "below"), "cannot write: file exists; a file is in the way"
    )


def test_a_directory_that_cannot_be_written(smartmem: Smartmem, model: Path) -> None:
    # /proc refuses new entries to everyone, root included.
    assert_refused(smartmem("compile", model, "-o", "/proc/smartmem"), "/proc/smartmem: cannot write")


def test_a_failing_compiler_leaves_the_old_directory_and_a_reproducer(
    smartmem: Smartmem, model: Path, cpu_copy: Path
) -> None:
    before = {entry.name: entry.read_bytes() for entry in cpu_copy.iterdir()}
    done = smartmem("compile", model, "-o", cpu_copy, "--timeout", "1")
    # Within a second nothing can be imported and compiled: some process was stopped.
    assert done.code == 3
    assert "took longer than 1 s" in done.err
    assert {entry.name: entry.read_bytes() for entry in cpu_copy.iterdir()} == before
    reproducer = cpu_copy.parent / f"{cpu_copy.name}.reproducer"
    assert f"reproduce it with {reproducer}/command.sh" in done.err
    assert {entry.name for entry in reproducer.iterdir()} == {"input.mlir", "command.sh", "stderr.txt"}
    assert {entry.name for entry in cpu_copy.parent.iterdir()} == {cpu_copy.name, reproducer.name}


def test_a_full_disk(model: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    # A mount namespace of its own: the small disk vanishes with the process.
    script = 'mount -t tmpfs -o size=128k none "$0" && "$@"; code=$?; ls -A "$0"; exit $code'
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    command = [*SMARTMEM, "compile", str(model), "--baseline", "-o", str(disk / "out")]
    done = subprocess.run(
        [*unshare, "sh", "-c", script, str(disk), *command], capture_output=True, text=True, check=False
    )
    # `ls` prints to stdout what is left on the disk: nothing.
    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), "cannot write: no space left on device")


def test_an_interrupt_leaves_nothing(model: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*SMARTMEM, "compile", str(model), "-o", str(tmp_path / "out"), "-v"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The staging directory appears when the import is done and iree-compile is next.
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


# Directories that are not what was written.


def edit_report(change: Callable[[dict[str, Any]], None], *, honest: bool) -> Callable[[Path], None]:
    """Change report.json; an honest editor brings the digest up to date."""

    def apply(folder: Path) -> None:
        path = folder / "report.json"
        content = json.loads(path.read_text())
        change(content)
        if honest:
            content["digest"] = digest(content)
        path.write_text(json.dumps(content))

    return apply


def damage(name: str, data: bytes | None) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        if data is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(data)

    return apply


def flip_a_byte(folder: Path) -> None:
    data = bytearray((folder / "model.vmfb").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "model.vmfb").write_bytes(data)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "vmfb missing": (damage("model.vmfb", None), "model.vmfb: the file is missing"),
    "weights missing": (damage("params.irpa", None), "params.irpa: the file is missing"),
    "weights cut short": (damage("params.irpa", b"IRPA"), "params.irpa: the file has 4 bytes"),
    "vmfb empty": (damage("model.vmfb", b""), "model.vmfb: the file has 0 bytes"),
    "vmfb changed": (flip_a_byte, "model.vmfb: the file is not the one that was written"),
    "report missing": (damage("report.json", None), "report.json: the file is missing"),
    "report empty": (damage("report.json", b""), "report.json: not a report"),
    "report binary": (damage("report.json", b"\xff\xfe\0"), "report.json: not a report"),
    "report nested": (damage("report.json", b"[" * 200_000), "report.json: not a report"),
    "report of others": (damage("report.json", b'{"format": "other"}'), "report.json: not a report of smartmem"),
    "assumption edited": (
        edit_report(lambda content: content["assumptions"].update(architecture="any"), honest=False),
        "report.json: the report was edited or damaged",
    ),
    "another version": (
        edit_report(lambda content: content.update(version=99), honest=True),
        "a report of version 99, this smartmem reads 1",
    ),
    "field missing": (edit_report(lambda content: content.pop("inputs"), honest=True), "field 'inputs'"),
    "field unknown": (edit_report(lambda content: content.update(colour=1), honest=True), "field 'colour'"),
    "field of another type": (
        edit_report(lambda content: content["inputs"][0].update(dtype="f31"), honest=True),
        "field 'inputs.0.dtype'",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("command", ["run", "verify", "inspect"])
def test_a_damaged_directory_is_refused(smartmem: Smartmem, cpu_copy: Path, command: str, name: str) -> None:
    apply, complaint = DAMAGE[name]
    apply(cpu_copy)
    assert_refused(smartmem(command, cpu_copy), complaint, "; ")


def test_a_vmfb_of_another_iree_is_refused(smartmem: Smartmem, cpu_copy: Path) -> None:
    data = b"\0" * 4096
    (cpu_copy / "model.vmfb").write_bytes(data)

    def own(content: dict[str, Any]) -> None:
        import hashlib

        content["files"]["model.vmfb"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    edit_report(own, honest=True)(cpu_copy)
    assert_refused(smartmem("run", cpu_copy), "model.vmfb: IREE", "cannot load the module", "compile it again")


def test_a_directory_of_others_is_refused(smartmem: Smartmem, tmp_path: Path) -> None:
    assert_refused(smartmem("run", tmp_path), "report.json: the file is missing", "smartmem compile")
    assert_refused(smartmem("inspect", tmp_path / "nowhere"), "nowhere: no such directory")


def test_a_model_that_changed_is_not_compared_with(smartmem: Smartmem, cpu_copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(b"something else")
    assert_refused(smartmem("verify", cpu_copy, "--model", other), "other.onnx: the model has changed")
    edit_report(lambda content: content["source"].update(path="/nowhere/tiny.onnx"), honest=True)(cpu_copy)
    assert_refused(smartmem("verify", cpu_copy), "/nowhere/tiny.onnx: the model is not there any more", "--model")


# Inputs and devices of run.


@pytest.mark.parametrize(
    ("arrays", "texts"),
    [
        ({"x": np.zeros((1, 49, 65), np.float32)}, ["x: expected 1x49x64xf32, given 1x49x65xf32"]),
        ({"x": np.zeros((1, 49, 64), np.float64)}, ["x: expected 1x49x64xf32, given 1x49x64xf64"]),
        ({"x": np.zeros((), np.float32)}, ["x: expected 1x49x64xf32, given f32"]),
        ({"y": np.zeros((1, 49, 64), np.float32)}, ["y: the model has no such input", "x: 1x49x64xf32"]),
        (
            {"x": np.zeros((1, 49, 64), np.float32), "z": np.zeros(1, np.float32)},
            ["z: the model has no such input"],
        ),
    ],
)
def test_inputs_that_do_not_fit(
    smartmem: Smartmem, compiled: dict[str, Path], tmp_path: Path, arrays: dict[str, Any], texts: list[str]
) -> None:
    arguments: list[object] = []
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    assert_refused(smartmem("run", compiled["cpu"], *arguments), *texts)


def test_input_files_that_are_none(smartmem: Smartmem, compiled: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("hello")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "many.npz", a=np.zeros(1))
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY\x01\x00")
    for name in ("text.npy", "objects.npy", "cut.npy"):
        assert_refused(smartmem("run", compiled["cpu"], "-i", f"x={tmp_path / name}"), name, "not a .npy array")
    assert_refused(smartmem("run", compiled["cpu"], "-i", f"x={tmp_path / 'many.npz'}"), "an archive of arrays")
    assert_refused(smartmem("run", compiled["cpu"], "-i", "x=nowhere.npy"), "nowhere.npy: no such file")


def test_two_inputs_for_one(smartmem: Smartmem, compiled: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1, 49, 64), np.float32))
    assert_refused(smartmem("run", compiled["cpu"], "-i", path, "-i", path), "2 inputs were given, the model takes 1")
    assert_refused(smartmem("run", compiled["cpu"], "-i", path, "-i", f"x={path}"), "some inputs are given by name")
    assert_refused(smartmem("run", compiled["cpu"], "-i", f"x={path}", "-i", f"x={path}"), "'x' is given twice")


@pytest.mark.parametrize(
    ("device", "texts"),
    [
        ("cuda", ["unknown device 'cuda'", "vulkan://INDEX"]),
        ("vulkan://77", ["there is no Vulkan device 'vulkan://77'", "vulkan://0"]),
        ("vulkan", ["compiled for a CPU, the device is"]),
    ],
)
def test_devices_that_do_not_fit(smartmem: Smartmem, compiled: dict[str, Path], device: str, texts: list[str]) -> None:
    assert_refused(smartmem("run", compiled["cpu"], "--device", device), *texts)


def test_outputs_that_cannot_be_written(smartmem: Smartmem, compiled: dict[str, Path]) -> None:
    done = smartmem("run", compiled["cpu"], "--output", "/proc/smartmem")
    assert done.code == 2
    assert "/proc/smartmem: cannot write" in done.err
