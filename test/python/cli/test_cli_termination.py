"""Whatever ends a compilation, nothing of it stays behind: no staging folder, no temporary files, no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from smartmem_mlir.cli.termination import Terminated, clean_termination

SMARTMEM = [sys.executable, "-m", "smartmem_mlir.cli.app"]


def start(model: Path, folder: Path, *prefix: str) -> subprocess.Popen[str]:
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [*prefix, *SMARTMEM, "compile", str(model), "-o", str(folder / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        start_new_session=True,
    )


def await_stage(process: subprocess.Popen[str], folder: Path, name: str) -> list[psutil.Process]:
    """Everything that the compilation has started, once one of its processes runs `name`."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        started = psutil.Process(process.pid).children(recursive=True)
        for child in started:
            try:
                if name in " ".join(child.cmdline()):
                    return started
            except psutil.Error:
                continue
        time.sleep(0.02)
    raise AssertionError(f"no process ran {name}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("stage", ["ingress.lowering_worker", "iree.worker", "iree-compile"])
def test_a_signal_leaves_nothing(model: Path, tmp_path: Path, number: signal.Signals, stage: str) -> None:
    process = start(model, tmp_path)
    started = await_stage(process, tmp_path, stage)
    process.send_signal(number)
    said, _ = process.communicate(timeout=30)
    # Click turns SIGINT into an exit code; of the others the program dies, so that whoever waits sees why.
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert "Traceback" not in said
    assert {entry.name for entry in tmp_path.iterdir()} == {"tmp"}
    assert not list((tmp_path / "tmp").iterdir())
    psutil.wait_procs(started, timeout=5)
    assert not [child for child in started if child.is_running()]


def test_an_ignored_signal_stays_ignored(model: Path, tmp_path: Path) -> None:
    process = start(model, tmp_path, "nohup")
    await_stage(process, tmp_path, "iree-compile")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert (tmp_path / "out" / "report.json").exists()


def test_a_second_signal_does_not_interrupt_the_cleaning() -> None:
    code = (
        "import os, signal, time\n"
        "from smartmem_mlir.cli.termination import clean_termination\n"
        "with clean_termination():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        os.kill(os.getpid(), signal.SIGHUP)\n"
        "        print('clean', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == -signal.SIGTERM
    assert done.stdout == "clean\n"
    assert done.stderr == ""


def test_the_handlers_are_gone_afterwards() -> None:
    with clean_termination():
        assert callable(signal.getsignal(signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert str(Terminated(signal.SIGTERM)) == "SIGTERM"
