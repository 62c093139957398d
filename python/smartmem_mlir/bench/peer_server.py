"""The process an engine runs in: JSON lines on stdin and stdout around one adapter.

    python -I peer_server.py --adapter ADAPTER.py --cpus 0,1

An adapter is a file with a class `Peer`. It imports nothing of ours, because it runs in the engine's own virtual
environment, and so does this file: the standard library and NumPy only. The class has:

* `version() -> str`: the engine's version.
* `prepare(model: Path, workdir: Path, signature) -> Path` (optional): convert the ONNX file, which is the adapter's own
  copy, to what `load` reads. Runs in a process of its own, so that a converter's memory is not counted as the engine's.
* `load(artifact: Path, threads: int, device: str, signature) -> str`: get ready to run and return the backend that the
  engine itself says it uses (not the one that was asked for).
* `bind(inputs: list[ndarray]) -> list` (optional): inputs in the form `run` wants, such as another integer width.
  Not timed.
* `run(inputs) -> list[ndarray]`: one inference, host memory to host memory, outputs in the model's order. Timed.

`signature` is `{"inputs": [{"name", "shape", "dtype"}, ...], "outputs": [name, ...]}` with NumPy's dtype names.
Requests are `{"op": ..., ...}`; replies are `{"ok": true, ...}` or `{"ok": false, "error": text}`. What the engine
prints goes to stderr: file descriptor 1 is moved away before anything is imported.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

PROTOCOL = 1


def serve(adapter_file: Path, replies: int) -> None:
    """Answer requests from stdin until `quit` or end of file; replies go to file descriptor `replies`."""
    peer: Any = None
    inputs: list[Any] = []
    bound_paths: list[str] | None = None
    bound: list[Any] = []
    for line in sys.stdin:
        request = json.loads(line)
        operation = request["op"]
        try:
            if operation == "quit":
                _reply(replies, {"ok": True})
                return
            if peer is None:
                peer = _load_adapter(adapter_file)
            if operation == "hello":
                answer: dict[str, Any] = {"protocol": PROTOCOL, "version": peer.version()}
            elif operation == "prepare":
                answer = {"artifact": str(_prepare(peer, request))}
            elif operation == "load":
                artifact, signature = Path(request["artifact"]), request["signature"]
                answer = {"backend": peer.load(artifact, request["threads"], request["device"], signature)}
            elif operation == "run":
                if request["inputs"] != bound_paths:
                    inputs = [_numpy().load(path) for path in request["inputs"]]
                    bound = peer.bind(inputs) if hasattr(peer, "bind") else inputs
                    bound_paths = request["inputs"]
                answer = _run(peer, bound, request["iterations"], request.get("outputs"))
            else:
                raise ValueError(f"unknown operation {operation!r}")
        except Exception as error:
            traceback.print_exc()
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}".strip()}
        _reply(replies, {"ok": True, **answer})


def _load_adapter(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("peer_adapter", file)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"no adapter at {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Peer()


def _prepare(peer: Any, request: dict[str, Any]) -> Path:
    model = Path(request["model"])
    if not hasattr(peer, "prepare"):
        return model
    artifact: Path = peer.prepare(model, Path(request["workdir"]), request["signature"])
    return artifact


def _run(peer: Any, inputs: list[Any], iterations: int, outputs: str | None) -> dict[str, Any]:
    """Run `iterations` times; with `outputs`, save the last results there as `<index>.npy`."""
    times: list[int] = []
    results: list[Any] = []
    cpu_start, wall_start = time.process_time_ns(), time.perf_counter_ns()
    for _ in range(iterations):
        start = time.perf_counter_ns()
        results = peer.run(inputs)
        times.append(time.perf_counter_ns() - start)
    answer: dict[str, Any] = {
        "times_ns": times,
        "cpu_ns": time.process_time_ns() - cpu_start,
        "wall_ns": time.perf_counter_ns() - wall_start,
    }
    if outputs is not None:
        answer["outputs"] = []
        for index, result in enumerate(results):
            path = Path(outputs) / f"{index}.npy"
            _numpy().save(path, _numpy().asarray(result))
            answer["outputs"].append(str(path))
    return answer


def _numpy() -> Any:
    # Imported late: thread pools must see the affinity that main() sets, and an engine may want its own NumPy first.
    import numpy

    return numpy


def _reply(descriptor: int, message: dict[str, Any]) -> None:
    data = (json.dumps(message) + "\n").encode()
    while data:
        data = data[os.write(descriptor, data) :]


def _die_with_parent() -> None:
    """Ask Linux to kill this process when the harness dies: it may be stopped then, and never read end of file."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _leave_no_core() -> None:
    """An engine that crashes may have gigabytes in memory, which nobody wants on the disk."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve one engine on stdin and stdout.")
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--cpus", required=True, help="CPUs to run on, comma separated")
    arguments = parser.parse_args()
    _die_with_parent()
    _leave_no_core()
    replies = os.dup(1)
    os.dup2(2, 1)  # engines and converters print; the protocol must not be broken by it
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(cpu) for cpu in arguments.cpus.split(",")})
    serve(arguments.adapter.resolve(), replies)


if __name__ == "__main__":
    main()
