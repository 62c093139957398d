"""Runs functions of a module in a process of its own, as layers and drivers are chosen by environment variables.

    python image_worker.py plan.json

The plan names the module, the calls (function, inputs and outputs as .npy files), how often to go through all calls
and in how many threads, each with a context of its own on one device. Every repetition must give the same bits.
Prints a JSON object: `mismatches`, `seconds` per repetition, and `resident`, the process's resident bytes over time.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np

_ELEMENT_TYPES = {
    "float32": rt.HalElementType.FLOAT_32,
    "float16": rt.HalElementType.FLOAT_16,
    "uint32": rt.HalElementType.SINT_32,
}


def resident_bytes() -> int:
    """Resident memory of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Worker:
    """One thread's context."""

    def __init__(self, device: Any, module: Path) -> None:
        self.device = device
        instance = rt.VmInstance()
        self.module = rt.VmModule.copy_buffer(instance, module.read_bytes())
        self.context = rt.VmContext(instance, [rt.create_hal_module(instance, device), self.module])

    def call(self, function: str, inputs: list[np.ndarray], result_types: list[str]) -> list[np.ndarray]:
        """Invokes a function; returns its results in host memory."""
        arguments, results = rt.VmVariantList(len(inputs)), rt.VmVariantList(len(result_types))
        for values in inputs:
            arguments.push_ref(
                self.device.allocator.allocate_buffer_copy(
                    memory_type=rt.MemoryType.DEVICE_LOCAL,
                    allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
                    device=self.device,
                    buffer=np.ascontiguousarray(values),
                    element_type=_ELEMENT_TYPES[values.dtype.name],
                )
            )
        self.context.invoke(self.module.lookup_function(function), arguments, results)
        return [self.download(results, index, dtype) for index, dtype in enumerate(result_types)]

    def download(self, results: Any, index: int, dtype: str) -> np.ndarray:
        """Copies a result to the host through a staging buffer."""
        view = results.get_as_object(index, rt.HalBufferView)
        source = view.get_buffer()
        staging = self.device.allocator.allocate_buffer(
            memory_type=rt.MemoryType.HOST_LOCAL | rt.MemoryType.DEVICE_VISIBLE,
            allowed_usage=rt.BufferUsage.TRANSFER_TARGET | rt.BufferUsage.MAPPING_SCOPED,
            allocation_size=source.byte_length(),
        )
        semaphore = self.device.create_semaphore(0)
        self.device.queue_copy(
            source,
            staging,
            wait_semaphores=rt.HalFence.create_at(semaphore, 0),
            signal_semaphores=rt.HalFence.create_at(semaphore, 1),
        )
        rt.HalFence.create_at(semaphore, 1).wait()
        return np.array(staging.map().asarray(tuple(view.shape), np.dtype(dtype)), copy=True)


def main(plan_path: str) -> None:
    """Does what the plan says."""
    plan = json.loads(Path(plan_path).read_text())
    rt.flags.parse_flags("--vulkan_dispatch_abi=descriptor")
    device = rt.get_device("vulkan")
    calls = [(call, [np.load(path) for path in call["inputs"]]) for call in plan["calls"]]
    first: dict[str, np.ndarray] = {}
    mismatches, resident, seconds = [], [], []
    lock = threading.Lock()

    def work(thread: int) -> None:
        worker = Worker(device, Path(plan["module"]))
        for _ in range(plan["repeat"]):
            start = time.perf_counter()
            for call, inputs in calls:
                outputs = worker.call(call["function"], inputs, call["types"])
                with lock:
                    for path, output in zip(call["outputs"], outputs, strict=True):
                        # Bytes, as NaN is not equal to itself.
                        if first.setdefault(path, output).tobytes() != output.tobytes():
                            mismatches.append(f"thread {thread}: {call['function']}")
            seconds.append(time.perf_counter() - start)
            resident.append(resident_bytes())

    with ThreadPoolExecutor(plan["threads"]) as executor:
        for finished in [executor.submit(work, number) for number in range(plan["threads"])]:
            finished.result()
    for path, output in first.items():
        np.save(path, output)
    print(json.dumps({"mismatches": mismatches, "resident": resident, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1])
