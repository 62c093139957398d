"""Bandwidth of reads from buffers, texel buffers and images, by rows, by columns and in windows of 3x3.

    python benchmarks/device/reads.py pack -o PACK              # where the compiler is
    python benchmarks/device/reads.py run PACK -o reads.json    # where the device is

`pack` compiles the kernels of `read_kernels` and copies the image layer beside them. `run` needs IREE's runtime, NumPy
and the directory. It checks every sum, times each kernel with few and with many passes over the grid, in turn, and
divides the difference of what they read by the median difference of their times, so that nothing that a call costs
besides counts. Bytes are those that invocations ask for: caches answer most of them, as in the kernels of a model. A
rate is null where the differences spread wider than their median: take more passes. Where the device refuses a kernel
there is an error: phones may allow texel buffers of 65536 texels only, which is a grid of 256x256.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from read_values import grid, sums

MODULE, KERNELS, LAYER = "reads.vmfb", "kernels.json", "layer"
MEMORIES, PATTERNS = ("buffer", "texel_buffer", "image"), ("rows", "columns", "window")
LAYER_NAME = "VK_LAYER_SMARTMEM_image_memory"


def pack(out: Path, grids: list[tuple[int, int]], passes: tuple[int, int]) -> None:
    """Compiles every kernel into one module.

    Args:
        out: The directory to write.
        grids: Texels along x and y.
        passes: Over the grid, few and many.
    """
    from mlir import ir
    from read_kernels import ReadKernel

    from smartmem_mlir.ir import make_context
    from smartmem_mlir.iree.build import build
    from smartmem_mlir.iree.compiler import CompilerOptions
    from smartmem_mlir.iree.device_target import executable_target
    from smartmem_mlir.iree.image_layer import layer_directory
    from smartmem_mlir.iree.lower import emit_iree
    from smartmem_mlir.kernels.executable import dispatch
    from smartmem_mlir.kernels.spirv.executable import add_shader
    from smartmem_mlir.kernels.spirv.to_image import to_image
    from smartmem_mlir.targets import load_target

    target = load_target("vulkan")
    made = [
        ReadKernel(memory, pattern, half, width, height, count)  # type: ignore[arg-type]
        for (width, height), half, memory, pattern, count in product(grids, (False, True), MEMORIES, PATTERNS, passes)
    ]
    with make_context(allow_unregistered_dialects=True), ir.Location.unknown():
        module = ir.Module.create()

        def add(name: str, binary: bytes, workgroups: tuple[int, int]) -> str:
            add_shader(module.body, name, binary, 1, workgroups, executable_target(target))
            return name

        copies = {}
        for kernel in made:
            key = kernel.image, kernel.half
            if kernel.memory == "image" and key not in copies:
                name = f"to_image_{kernel.width}x{kernel.height}_{'f16' if kernel.half else 'f32'}"
                copies[key] = add(name, *to_image(name, kernel.image, kernel.half, "1.3"))
            add(f"{kernel.name}_kernel", kernel.binary("1.3", f"{kernel.name}_kernel"), kernel.workgroups)
        for kernel in made:
            shape = [kernel.height, kernel.width, 4]
            given = ir.RankedTensorType.get(shape, ir.F16Type.get() if kernel.half else ir.F32Type.get())
            result = ir.RankedTensorType.get(shape, ir.F32Type.get())
            with ir.InsertionPoint(module.body):
                function = _function(kernel.name, given, result)
            block = function.add_entry_block()
            with ir.InsertionPoint(block):
                value = block.arguments[0]
                if kernel.memory == "image":
                    value = dispatch(copies[kernel.image, kernel.half], [value], given)
                _return(dispatch(f"{kernel.name}_kernel", [value], result))
        text = str(module)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary) / "reads.mlir"
        source.write_text(emit_iree(text, target))
        build(source, out / MODULE, Path(temporary), target, None, CompilerOptions(), lambda _: None)
    shutil.copytree(layer_directory(), out / LAYER, dirs_exist_ok=True)
    fields = ("name", "memory", "pattern", "half", "width", "height", "passes", "reads")
    (out / KERNELS).write_text(json.dumps([{name: getattr(kernel, name) for name in fields} for kernel in made]))


def _function(name: str, given: Any, result: Any) -> Any:
    from mlir.dialects import func
    from mlir.ir import FunctionType

    return func.FuncOp(name, FunctionType.get([given], [result]))


def _return(value: Any) -> None:
    from mlir.dialects import func

    func.ReturnOp([value])


class Runner:
    """The packed module on a device.

    Args:
        folder: What `pack` wrote.
        device: As IREE names it.
        clock: Seconds.
    """

    def __init__(self, folder: Path, device: str, clock: Callable[[], float]) -> None:
        self._clock = clock
        layers = [name for name in os.environ.get("VK_INSTANCE_LAYERS", "").split(os.pathsep) if name]
        os.environ["VK_INSTANCE_LAYERS"] = os.pathsep.join(dict.fromkeys([LAYER_NAME, *layers]))
        os.environ["VK_ADD_LAYER_PATH"] = str((folder / LAYER).resolve())
        import iree.runtime as rt

        # The layer binds images to descriptors; buffers by address pass it by.
        rt.flags.parse_flags("--vulkan_dispatch_abi=descriptor")
        self._rt = rt
        instance = rt.VmInstance()
        self._device = rt.get_device(device)
        self._module = rt.VmModule.copy_buffer(instance, (folder / MODULE).read_bytes())
        self._context = rt.VmContext(instance, [rt.create_hal_module(instance, self._device), self._module])
        self._inputs: dict[tuple[int, int, bool], Any] = {}

    def given(self, kernel: dict[str, Any]) -> Any:
        """The grid that a kernel reads, on the device."""
        key = kernel["width"], kernel["height"], kernel["half"]
        if key not in self._inputs:
            self._inputs = {key: self._rt.asdevicearray(self._device, grid(*key))}
        return self._inputs[key]

    def call(self, kernel: dict[str, Any]) -> tuple[Any, float]:
        """The sums, on the device, and the time of the call in ms."""
        arguments, results = self._rt.VmVariantList(1), self._rt.VmVariantList(1)
        arguments.push_ref(self.given(kernel)._buffer_view)
        function = self._module.lookup_function(kernel["name"])
        started = self._clock()
        self._context.invoke(function, arguments, results)
        return results, (self._clock() - started) * 1e3

    def is_right(self, kernel: dict[str, Any]) -> bool:
        """Whether the sums are NumPy's, to the last bit."""
        results, _ = self.call(kernel)
        found = self._download(results.get_as_object(0, self._rt.HalBufferView))
        wanted = sums(grid(kernel["width"], kernel["height"], kernel["half"]), kernel["pattern"], kernel["passes"])
        return bool(np.array_equal(found, wanted))

    def _download(self, view: Any) -> Any:
        """By way of a staging buffer: not every driver takes NumPy's memory."""
        rt, source = self._rt, view.get_buffer()
        staging = self._device.allocator.allocate_buffer(
            memory_type=rt.MemoryType.HOST_LOCAL | rt.MemoryType.DEVICE_VISIBLE,
            allowed_usage=rt.BufferUsage.TRANSFER_TARGET | rt.BufferUsage.MAPPING_SCOPED,
            allocation_size=source.byte_length(),
        )
        semaphore = self._device.create_semaphore(0)
        before, after = rt.HalFence.create_at(semaphore, 0), rt.HalFence.create_at(semaphore, 1)
        self._device.queue_copy(source, staging, wait_semaphores=before, signal_semaphores=after)
        after.wait()
        return np.array(staging.map().asarray(tuple(view.shape), np.dtype(np.float32)), copy=True)


def measure(folder: Path, device: str, repetitions: int, cpu_time: bool) -> dict[str, Any]:
    """Every kernel's bandwidth.

    Args:
        folder: What `pack` wrote.
        device: As IREE names it.
        repetitions: Of each pair of calls.
        cpu_time: Whether it is a driver on the CPU, whose threads' time is asked for.
    """
    runner = Runner(folder, device, time.process_time if cpu_time else time.perf_counter)
    kernels = json.loads((folder / KERNELS).read_text())
    rows = []
    for few, many in zip(kernels[::2], kernels[1::2], strict=True):
        texel = 8 if few["half"] else 16
        asked = few["width"] * few["height"] * few["reads"] * texel * (many["passes"] - few["passes"])
        row = {name: few[name] for name in ("memory", "pattern", "width", "height")}
        row |= {"element": "f16" if few["half"] else "f32", "bytes": asked, "right": False}
        try:
            row |= {"right": runner.is_right(few) and runner.is_right(many)}
            differences = [runner.call(many)[1] - runner.call(few)[1] for _ in range(repetitions)]
        except RuntimeError as error:
            # A device need not allow texel buffers as large as its images.
            row |= {"error": str(error).strip().splitlines()[0]}
        else:
            spent = float(np.median(differences))
            # The spread of the differences says whether there were enough passes.
            spread = float(np.subtract(*np.percentile(differences, [75, 25])))
            row |= {"ms": round(spent, 4), "spread_ms": round(spread, 4)}
            row |= {"gb_per_s": round(asked / spent / 1e6, 2) if spent > spread else None}
        print(json.dumps(row), flush=True)
        rows.append(row)
    passes = [kernels[0]["passes"], kernels[1]["passes"]]
    return {"device": device, "clock": "cpu" if cpu_time else "wall", "passes": passes, "reads": rows}


def main() -> int:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="compile the kernels")
    packing.add_argument("-o", "--output", type=Path, required=True)
    packing.add_argument("--grid", action="append", metavar="WxH", help="texels, powers of two, W at least 256")
    packing.add_argument("--passes", type=int, nargs=2, default=(8, 264), help="few and many")
    running = commands.add_parser("run", help="measure on the device of this machine")
    running.add_argument("pack", type=Path)
    running.add_argument("-o", "--output", type=Path, required=True)
    running.add_argument("--device", default="vulkan")
    running.add_argument("--repetitions", type=int, default=20)
    running.add_argument("--cpu-time", action="store_true", help="time of all threads, for drivers on the CPU")
    arguments = parser.parse_args()
    if arguments.command == "pack":
        texts = arguments.grid or ["1024x1024", "4096x2048"]
        grids = [tuple(map(int, text.split("x"))) for text in texts]
        if any(extent & (extent - 1) for each in grids for extent in each) or min(x for x, _ in grids) < 256:
            parser.error("a grid has powers of two along both axes, and at least 256 texels along x")
        pack(arguments.output, grids, tuple(arguments.passes))  # type: ignore[arg-type]
        return 0
    result = measure(arguments.pack, arguments.device, arguments.repetitions, arguments.cpu_time)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(row["right"] or "error" in row for row in result["reads"]) else 1


if __name__ == "__main__":
    sys.exit(main())
