"""Engines run in processes that can crash, hang and print without harm to the harness."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from smartmem_mlir.bench.host import usable_cpus
from smartmem_mlir.bench.measure import Entrant
from smartmem_mlir.bench.peer_process import PeerError, PeerProcess

FAKE_PEER = Path(__file__).with_name("fake_peer.py")
Start = Callable[..., PeerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    processes = []

    def make(cpus: int = 1) -> PeerProcess:
        process = PeerProcess(Path(sys.executable), FAKE_PEER, tmp_path / "work", usable_cpus()[:cpus])
        processes.append(process)
        return process

    yield make
    for process in processes:
        process.close()


def _load(process: PeerProcess, entrant: Entrant, time_limit: float = 30.0) -> dict[str, Any]:
    artifact = str(entrant.artifact)
    return process.request("load", time_limit, artifact=artifact, threads=1, device="cpu", signature={})


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_what_an_engine_prints_does_not_disturb_the_protocol(start: Start, fake: Callable[..., Entrant]) -> None:
    process = start()
    assert process.request("hello", 30.0) == {"protocol": 1, "version": "0.1"}
    assert _load(process, fake("good"))["backend"] == "cpu, 1 cpus"


def test_affinity_is_what_was_asked_for(start: Start, fake: Callable[..., Entrant]) -> None:
    if len(usable_cpus()) > 1:
        assert _load(start(cpus=2), fake("good"))["backend"] == "cpu, 2 cpus"
    assert _load(start(cpus=1), fake("good"))["backend"] == "cpu, 1 cpus"


def test_times_are_nanoseconds_of_each_run(start: Start, fake: Callable[..., Entrant], workload: Any) -> None:
    process = start()
    _load(process, fake("slow", seconds=0.02))
    reply = process.request("run", 30.0, inputs=[str(workload.inputs[0])], iterations=3)
    assert len(reply["times_ns"]) == 3
    assert all(ns > 20e6 for ns in reply["times_ns"])
    assert reply["wall_ns"] >= sum(reply["times_ns"])
    # Sleeping uses no CPU: what the table calls "cores" shows an engine that waits.
    assert reply["cpu_ns"] < reply["wall_ns"] / 2


def test_a_crash_names_the_signal_and_the_last_words(start: Start, fake: Callable[..., Entrant]) -> None:
    process = start()
    with pytest.raises(PeerError) as caught:
        _load(process, fake("bad", fail_in="load", how="crash"))
    assert caught.value.kind == "crashed"
    assert "SIGSEGV" in caught.value.message
    assert "the engine's last words" in caught.value.message
    assert _gone(process.pid)


def test_a_crash_leaves_no_memory_on_the_disk(start: Start) -> None:
    former = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (former[1], former[1]))
    try:
        process = start()
        process.request("hello", 30.0)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, former)
    limits = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
    assert next(line for line in limits if line.startswith("Max core file size")).split()[4] == "0"


def test_a_silent_exit_names_its_code(start: Start, fake: Callable[..., Entrant]) -> None:
    with pytest.raises(PeerError, match="exited with code 3"):
        _load(start(), fake("bad", fail_in="load", how="exit"))


def test_an_error_carries_what_the_engine_printed(start: Start, fake: Callable[..., Entrant]) -> None:
    process = start()
    with pytest.raises(PeerError) as caught:
        _load(process, fake("bad", fail_in="load", how="raise"))
    assert caught.value.kind == "refused"
    assert caught.value.message.startswith("RuntimeError: cannot load (")
    assert "layer Foo not registered" in caught.value.message
    assert "Traceback" not in caught.value.message
    # A refusal is no crash: the process still answers.
    assert process.request("hello", 30.0)["version"] == "0.1"


def test_a_hang_is_killed_with_its_children(start: Start, fake: Callable[..., Entrant], tmp_path: Path) -> None:
    process = start()
    child = tmp_path / "child"
    process.request("hello", 30.0)
    started = time.monotonic()
    with pytest.raises(PeerError) as caught:
        _load(process, fake("bad", fail_in="load", how="hang", child=str(child)), time_limit=1.5)
    assert caught.value.kind == "timed out"
    assert "1.5 s" in caught.value.message
    assert time.monotonic() - started < 15.0
    pid = int(child.read_text())
    deadline = time.monotonic() + 10.0
    while not _gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _gone(pid)
    assert _gone(process.pid)


def test_pause_stops_and_resume_continues(start: Start, fake: Callable[..., Entrant], workload: Any) -> None:
    process = start()
    _load(process, fake("good"))
    process.pause()
    assert _state(process.pid) == "T"
    process.resume()
    assert process.request("run", 30.0, inputs=[str(workload.inputs[0])], iterations=1)["times_ns"]


def test_a_stopped_engine_is_killed_all_the_same(start: Start) -> None:
    process = start()
    process.request("hello", 30.0)
    process.pause()
    process.close()
    process.close()
    assert _gone(process.pid)


def test_a_dead_harness_leaves_no_stopped_engine_behind(tmp_path: Path) -> None:
    """The kernel kills the engine when its parent dies, though it is stopped and cannot see its pipe close."""
    script = f"""
import os, pathlib, signal, sys
from smartmem_mlir.bench.peer_process import PeerProcess
adapter, workdir = pathlib.Path({str(FAKE_PEER)!r}), pathlib.Path({str(tmp_path)!r})
process = PeerProcess(pathlib.Path(sys.executable), adapter, workdir, [{usable_cpus()[0]}])
process.request("hello", 30.0)
process.pause()
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    pid = int(result.stdout)
    deadline = time.monotonic() + 10.0
    while not _gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _gone(pid)


def test_peak_memory_grows_with_what_the_engine_holds(start: Start) -> None:
    process = start()
    process.request("hello", 30.0)
    peak = process.peak_rss()
    assert peak is not None
    assert 5e6 < peak < 5e8


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
