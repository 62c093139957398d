"""Failures of iree-compile: one line, a reproducer that reproduces, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from smartmem_mlir.errors import EXIT_COMPILER_FAILED, CompilerError, SmartMemError
from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile
from smartmem_mlir.iree.toolchain import iree_compile

FLAGS = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
GOOD = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
BAD = "func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {\n  return %x : tensor<4xf32>\n}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.mlir").write_text(GOOD)
    (tmp_path / "bad.mlir").write_text(BAD)
    return tmp_path


def test_success_leaves_the_output_alone(folder: Path) -> None:
    options = CompilerOptions(reproducer=folder / "reproducer")
    seconds = run_iree_compile(folder / "good.mlir", folder / "out.vmfb", FLAGS, options)
    assert (folder / "out.vmfb").stat().st_size > 0
    assert seconds > 0
    assert not (folder / "reproducer").exists()


def test_a_failure_leaves_a_reproducer_that_fails_the_same_way(folder: Path) -> None:
    reproducer = folder / "reproducer"
    with pytest.raises(CompilerError) as caught:
        run_iree_compile(folder / "bad.mlir", folder / "out.vmfb", FLAGS, CompilerOptions(reproducer=reproducer))
    message = str(caught.value)
    assert message.startswith("iree-compile failed: bad.mlir:2:3: error: type of return operand 0")
    assert message.endswith(f"reproduce it with {reproducer}/command.sh")
    assert "\n" not in message
    assert caught.value.exit_code == EXIT_COMPILER_FAILED
    assert not (folder / "out.vmfb").exists()
    assert (reproducer / "input.mlir").read_text() == BAD
    again = subprocess.run(
        [reproducer / "command.sh"],
        check=False,
        env={**os.environ, "IREE_COMPILE": str(iree_compile())},
        capture_output=True,
        text=True,
    )
    assert again.returncode != 0
    assert "type of return operand 0" in again.stderr


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--iree-opt-level=O9", "for the --iree-opt-level option: 'O9' value not a valid"),
        ("--no-such-flag", "Unknown command line argument '--no-such-flag'"),
    ],
)
def test_a_wrong_flag_is_named(folder: Path, flag: str, why: str) -> None:
    options = CompilerOptions(reproducer=folder / "reproducer")
    with pytest.raises(CompilerError) as caught:
        run_iree_compile(folder / "good.mlir", folder / "out.vmfb", [*FLAGS, flag], options)
    assert f"iree-compile failed: iree-compile: {why}" in str(caught.value)


def test_a_time_out_stops_the_compiler(folder: Path) -> None:
    options = CompilerOptions(timeout_s=0.001, reproducer=folder / "reproducer")
    with pytest.raises(CompilerError, match=r"took longer than 0\.001 s and was stopped; reproduce it with"):
        run_iree_compile(folder / "good.mlir", folder / "out.vmfb", FLAGS, options)
    assert not (folder / "out.vmfb").exists()


@pytest.fixture
def endless(folder: Path) -> Iterator[Path]:
    """An input that never arrives: iree-compile waits for the other end of a pipe."""
    fifo = folder / "endless.mlir"
    os.mkfifo(fifo)
    # Held open for writing, so that reading it blocks; a real file by the time the reproducer is written.
    descriptor = os.open(fifo, os.O_RDWR)
    yield fifo
    os.close(descriptor)


@pytest.mark.parametrize(
    ("number", "complaint"),
    [
        (signal.SIGKILL, "was killed, most likely for lack of memory"),
        (signal.SIGSEGV, "crashed with SIGSEGV"),
        (signal.SIGABRT, "crashed with SIGABRT"),
    ],
)
def test_a_crash_names_its_signal(endless: Path, folder: Path, number: signal.Signals, complaint: str) -> None:
    def strike() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    command = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if str(endless).encode() in command:
                    time.sleep(0.3)
                    endless.unlink()
                    endless.write_text(GOOD)
                    os.kill(int(entry.name), number)
                    return
            time.sleep(0.05)

    striker = threading.Thread(target=strike)
    striker.start()
    with pytest.raises(CompilerError, match=complaint):
        run_iree_compile(
            endless, folder / "out.vmfb", FLAGS, CompilerOptions(timeout_s=60, reproducer=folder / "reproducer")
        )
    striker.join()
    assert (folder / "reproducer" / "command.sh").is_file()


def test_a_full_disk_is_not_a_compiler_failure(folder: Path) -> None:
    with pytest.raises(SmartMemError, match="no space left on the disk; free some space") as caught:
        run_iree_compile(folder / "good.mlir", Path("/dev/full"), FLAGS, CompilerOptions())
    assert not isinstance(caught.value, CompilerError)
    assert Path("/dev/full").is_char_device()


def test_an_unwritable_reproducer_is_said(folder: Path) -> None:
    blocked = folder / "good.mlir" / "reproducer"
    with pytest.raises(CompilerError, match="no reproducer could be written"):
        run_iree_compile(folder / "bad.mlir", folder / "out.vmfb", FLAGS, CompilerOptions(reproducer=blocked))
