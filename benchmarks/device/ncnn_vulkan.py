"""Times ncnn on the Vulkan device of this machine, beside `measure.py`.

    python benchmarks/device/ncnn_vulkan.py resnet50.ncnn.param=3x224x224 ... -o ncnn.json

Weights are zeros, so that a graph of some kilobytes is all that travels. So nothing is verified here: whether ncnn is
right about a model is checked, on the CPU, where the weights are (`smartmem bench --peers ncnn`). Zeros take less
power, and ncnn may be somewhat faster than with real weights. Needs NumPy and the `ncnn` package. A call is from an
array in host memory to an array in host memory, as ncnn's interface has it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import ncnn
import numpy as np

WARM_UP, RUNS = 5, 30


def time_ms(param: Path, shape: tuple[int, ...], half: bool) -> float:
    """Median wall time of one inference.

    Raises:
        RuntimeError: ncnn does not load or run the graph.
    """
    net = ncnn.Net()
    options = net.opt
    options.use_vulkan_compute = True
    options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = half
    options.use_bf16_storage = False
    if net.load_param(str(param)) != 0 or net.load_model(ncnn.DataReaderFromEmpty()) != 0:
        raise RuntimeError("ncnn does not load the graph")
    given = np.random.default_rng(0).standard_normal(shape, np.float32)
    times = []
    for _ in range(WARM_UP + RUNS):
        started = time.perf_counter()
        with net.create_extractor() as extractor:
            extractor.input(net.input_names()[0], ncnn.Mat(given))
            for name in net.output_names():
                code, values = extractor.extract(name)
                if code != 0:
                    raise RuntimeError(f"ncnn cannot compute {name} (code {code})")
                np.array(values)
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times[WARM_UP:])


def main() -> int:
    """Exit code: 0, or 1 if there is no Vulkan device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="PARAM=SHAPE")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    if ncnn.get_gpu_count() == 0:
        print("ncnn finds no Vulkan device", file=sys.stderr)
        return 1
    device = ncnn.get_gpu_info(ncnn.get_default_gpu_index()).device_name()
    rows: list[dict[str, Any]] = []
    for given in arguments.models:
        file, _, sizes = given.rpartition("=")
        shape = tuple(int(size) for size in sizes.split("x"))
        for half in (False, True):
            row: dict[str, Any] = {"model": Path(file).name.partition(".")[0], "dtype": "f16" if half else "f32"}
            try:
                row["ms"] = time_ms(Path(file), shape, half)
            except RuntimeError as error:
                row["error"] = str(error)
            print(json.dumps(row), flush=True)
            rows.append(row)
            results = {"device": device, "ncnn": ncnn.__version__, "rows": rows}
            arguments.output.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
