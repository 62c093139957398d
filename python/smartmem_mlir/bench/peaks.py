"""What this machine can do: the two ceilings of a roofline, measured in a process of their own.

    python -m smartmem_mlir.bench.peaks --cpus 0,1

* Arithmetic: a 512x512x512 f32 matrix product through ONNX Runtime, whose kernel is the fastest at hand; the same
  ceiling that the engines see, below the one of the data sheet.
* Bandwidth: copying arrays far larger than the caches with one thread a CPU, reads plus writes.

Each is the best of many short trials, because noise only ever slows a trial down.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from smartmem_mlir.bench.results import Peak
from smartmem_mlir.errors import SmartMemError

_MATRIX = 512
_COPY_BYTES = 128 << 20
_TRIAL_SECONDS = 3.0


def measure_peak(cpus: Sequence[int], time_limit: float = 120.0) -> Peak:
    """Measure both ceilings.

    Args:
        cpus: CPUs to use; their number is the number of threads.
        time_limit: Seconds before the probe is given up.

    Raises:
        SmartMemError: The probe failed.
    """
    command = [sys.executable, "-m", "smartmem_mlir.bench.peaks", "--cpus", ",".join(map(str, cpus))]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=time_limit, check=True)
        measured = json.loads(result.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        detail = getattr(error, "stderr", None) or str(error)
        raise SmartMemError(f"the machine's limits could not be measured: {detail.strip()[-500:]}") from error
    return Peak(threads=len(cpus), gflops=measured["gflops"], gbytes_per_s=measured["gbytes_per_s"])


def _best_seconds(trial: Callable[[], object]) -> float:
    best, end = float("inf"), time.monotonic() + _TRIAL_SECONDS
    trial()
    while time.monotonic() < end:
        started = time.perf_counter()
        trial()
        best = min(best, time.perf_counter() - started)
    return best


def _gflops(threads: int) -> float:
    import numpy as np
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).standard_normal((_MATRIX, _MATRIX)).astype(np.float32)
    shape = [_MATRIX, _MATRIX]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "peak",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        # An initializer, so that it is packed once, as a model's weights are.
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    seconds = _best_seconds(lambda: session.run(None, {"x": weights}))
    return 2 * _MATRIX**3 / seconds / 1e9


def _gbytes_per_s(threads: int) -> float:
    import numpy as np

    elements = _COPY_BYTES // threads // 4
    pairs: list[tuple[Any, Any]] = [
        (np.ones(elements, np.float32), np.zeros(elements, np.float32)) for _ in range(threads)
    ]

    def trial() -> None:
        # NumPy drops the interpreter lock while it copies.
        workers = [threading.Thread(target=np.copyto, args=(target, source)) for source, target in pairs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return 2 * 4 * elements * threads / _best_seconds(trial) / 1e9


def main() -> None:
    """Print both ceilings as JSON."""
    parser = argparse.ArgumentParser(description="Measure this machine's peak arithmetic and bandwidth.")
    parser.add_argument("--cpus", required=True, help="CPUs to use, comma separated")
    cpus = {int(cpu) for cpu in parser.parse_args().cpus.split(",")}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)
    print(json.dumps({"gflops": _gflops(len(cpus)), "gbytes_per_s": _gbytes_per_s(len(cpus))}))


if __name__ == "__main__":
    main()
