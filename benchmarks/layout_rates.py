"""Measures the rates by which layouts are chosen, on one core of this machine, and prints them as a target's section.

    python benchmarks/layout_rates.py [--cpu 0]

Each rate is the time of a small model that does little else: chains of convolutions in channels-last and in
channels-first order through our kernels and through IREE's, a sum, a transposition. Repeated runs; the best counts.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smartmem_mlir import api
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.targets.resources import pipelines_dir

CHAIN = 8
"""Convolutions of a chain: the copies at its ends, where the caller's order meets ours, are small beside it."""

SIZES = ((64, 56), (128, 28), (256, 14), (512, 7))
"""Channels and extent of the convolutions, as in a ResNet."""


def conv_chain(channels: int, size: int, groups: int) -> onnx.ModelProto:
    """A chain of 3x3 convolutions."""
    generator = np.random.default_rng(0)
    shape = (channels, channels // groups, 3, 3)
    weights = [numpy_helper.from_array(generator.random(shape, dtype=np.float32) / 9, f"w{i}") for i in range(CHAIN)]
    names = ["x", *(f"y{i}" for i in range(CHAIN))]
    nodes = [
        helper.make_node("Conv", [names[i], f"w{i}"], [names[i + 1]], pads=[1, 1, 1, 1], group=groups)
        for i in range(CHAIN)
    ]
    return model(nodes, {"x": (1, channels, size, size)}, {names[-1]: (1, channels, size, size)}, weights)


def matmul_chain(rows: int, width: int) -> onnx.ModelProto:
    """A chain of products of matrices."""
    weights = [numpy_helper.from_array(np.full((width, width), 1e-3, np.float32), f"w{i}") for i in range(CHAIN)]
    names = ["x", *(f"y{i}" for i in range(CHAIN))]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(CHAIN)]
    return model(nodes, {"x": (rows, width)}, {names[-1]: (rows, width)}, weights)


def model(nodes: list[onnx.NodeProto], inputs: dict, outputs: dict, weights: list) -> onnx.ModelProto:
    """An ONNX model of these nodes, all f32."""
    infos = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in part.items()]
        for part in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "rates", *infos, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def seconds(proto: onnx.ModelProto, pipeline: str, folder: Path, cpu: int) -> float:
    """Best time of one inference on one core."""
    source, compiled = folder / "model.onnx", folder / "compiled"
    onnx.save(proto, source)
    api.compile(source, compiled, pipeline=pipeline, force=True)
    inputs = [
        "--input=" + "x".join(str(d.dim_value) for d in value.type.tensor_type.shape.dim) + "xf32=0.5"
        for value in proto.graph.input
    ]
    tool = Path(sys.executable).parent / "iree-benchmark-module"
    weights = [f"--parameters=model={compiled / 'params.irpa'}"] if proto.graph.initializer else []
    command = [
        *("taskset", "-c", str(cpu), str(tool), f"--module={compiled / 'model.vmfb'}", *weights, *inputs),
        *("--device=local-sync", "--function=main", "--benchmark_repetitions=7", "--benchmark_min_time=0.2s"),
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"/real_time\s+([\d.]+) (ns|us|ms|s) ", text)
    return min(float(value) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit] for value, unit in found)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", type=int, default=0, help="the core to run on")
    cpu = parser.parse_args().cpu
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_written_order = folder / "written.yaml"
        steps = (pipelines_dir() / "cpu.yaml").read_text()
        in_written_order.write_text(re.sub(r"(?m)^.*smartmem-select-layouts\n", "", steps))
        work = sum(CHAIN * channels * channels * 9 * size * size for channels, size in SIZES)
        last, first, fallback_window = (
            work / sum(seconds(conv_chain(*shape, 1), pipeline, folder, cpu) for shape in SIZES) / 1e9
            for pipeline in ("cpu", str(in_written_order), "cpu-eliminate")
        )
        deep_size, deep = 28, 192
        depthwise = conv_chain(deep, deep_size, deep)
        deep_work = CHAIN * deep * 9 * deep_size * deep_size
        vectors = deep_work / seconds(depthwise, "cpu", folder, cpu) / 1e9
        product = matmul_chain(196, 768)
        fallback = CHAIN * 196 * 768 * 768 / seconds(product, "cpu-eliminate", folder, cpu) / 1e9
        shape, elements = (1, 64, 112, 112), 64 * 112 * 112
        add = model([helper.make_node("Add", ["a", "b"], ["c"])], {"a": shape, "b": shape}, {"c": shape}, [])
        stream = 3 * 4 * elements / seconds(add, "cpu", folder, cpu) / 1e9
        turned = (1, 112, 112, 64)
        turn = helper.make_node("Transpose", ["a"], ["c"], perm=[0, 2, 3, 1])
        strided = seconds(model([turn], {"a": shape}, {"c": turned}, []), "cpu", folder, cpu) * 1e9 / elements
        tiny = model([helper.make_node("Add", ["a", "b"], ["c"])], {"a": (16,), "b": (16,)}, {"c": (16,)}, [])
        launch = seconds(tiny, "cpu", folder, cpu) * 1e9
    found = {
        "stream_bytes_per_ns": stream,
        "strided_element_ns": strided - 4 / stream,
        "kernel_launch_ns": launch,
        "kernel_macs_per_ns": last,
        "unpacked_kernel_macs_per_ns": first,
        "vector_product_macs_per_ns": vectors,
        "fallback_matmul_macs_per_ns": fallback,
        "fallback_window_macs_per_ns": fallback_window,
    }
    print("rates:")
    for field in Rates.__dataclass_fields__:
        print(f"  {field}: {found[field]:.3g}" if field in found else f"  {field}: {getattr(Rates(), field)}")


if __name__ == "__main__":
    main()
