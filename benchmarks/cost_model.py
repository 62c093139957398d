"""How far the cost model's time of each kernel is from the measured one.

    python benchmarks/cost_model.py cpu COMPILED_DIR...    # measures kernels on one core of this machine
    python benchmarks/cost_model.py nvidia MODEL.onnx...   # against kernels timed on an H200: results/h200_storage.json

For the CPU, `smartmem compile MODEL.onnx -o COMPILED_DIR` comes first; each kernel's time is the least of `--runs`
inferences on one thread. For a GPU, models are compiled as far as IREE's flow IR, with tensors in buffers and in
images. Writes `results/cost_model.json` and `.md`, one target at a time. `--fit` prints the roofline that fits.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from smartmem_mlir import api
from smartmem_mlir.bench import cost_error
from smartmem_mlir.bench.phone import roofline_of
from smartmem_mlir.errors import OptionError, SmartMemError
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.flow.work import read_work
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.report.graph.build import graph_after
from smartmem_mlir.report.measure import KernelTime, measure_kernels
from smartmem_mlir.targets import load_target

RESULTS = Path(__file__).resolve().parent / "results"
ONE_THREAD = ("--task_topology_group_count=1",)


def measure_cpu(folders: Sequence[Path], runs: int) -> tuple[list[cost_error.Sample], dict[str, Any]]:
    """Kernels of compiled directories, and the rates that they are modelled by."""
    samples: list[cost_error.Sample] = []
    rates = Rates()
    for folder in folders:
        report = api.load(folder).report
        given = report.target.rates.model_dump(exclude_none=True) if report.target.rates is not None else {}
        rates = Rates.of(given)
        least: dict[str, KernelTime] = {}
        for _ in range(runs):
            for name, time in measure_kernels(folder, report, ONE_THREAD).items():
                if name not in least or time.ns < least[name].ns:
                    least[name] = time
        with tempfile.TemporaryDirectory() as reproducer:
            graph = graph_after(folder, report, CompilerOptions(reproducer=Path(reproducer) / "reproducer"), least)
        samples += cost_error.cpu_samples(report.source.name, graph.nodes, rates)
        print(f"{report.source.name}: {len(samples)} kernels so far", flush=True)
    return samples, {name: getattr(rates, name) for name in ("kernel_macs_per_ns", "stream_bytes_per_ns")}


def read_gpu(models: Sequence[Path], target: str, measured: Path) -> list[cost_error.Timed]:
    """Kernels of models as the target's, with the times that a table has of them."""
    times = json.loads(measured.read_text())["kernels_us"]
    timed: list[cost_error.Timed] = []
    for model in models:
        if model.stem not in times:
            raise OptionError(f"no kernels of '{model.stem}' were timed", hint=f"there are {', '.join(times)}")
        for storage in ("buffer", "image"):
            with tempfile.TemporaryDirectory() as folder:
                flow = Path(folder) / "flow.mlir"
                flow.write_text(api.emit(model, "flow", target=target, storage=storage))
                work = read_work(flow)
            own = [
                cost_error.Timed(model.stem, kernel, 1e3 * times[model.stem][kernel.name][f"{storage}_us"])
                for kernel in work.kernels
                if kernel.name in times[model.stem] and kernel.issued_buffer_bytes is not None
            ]
            print(f"{model.stem}, {storage}: {len(own)} of {len(times[model.stem])} timed kernels", flush=True)
            timed += own
    return timed


def main() -> int:
    """Measures or reads, compares and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=("cpu", "nvidia"))
    parser.add_argument("inputs", nargs="+", type=Path, metavar="INPUT")
    parser.add_argument("--runs", type=int, default=7, help="inferences of which the least counts (default: 7)")
    parser.add_argument(
        "--measured", type=Path, default=RESULTS / "h200_storage.json", help="times of kernels of a GPU"
    )
    parser.add_argument("--fit", action="store_true", help="print the roofline that fits")
    parser.add_argument("-o", dest="output", type=Path, default=RESULTS / "cost_model.json")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    try:
        if options.target == "cpu":
            samples, rates = measure_cpu(options.inputs, options.runs)
            again, how = cost_error.scaled_by_family(samples), "one factor a family, fitted to the other models"
        else:
            timed = read_gpu(options.inputs, options.target, options.measured)
            start = roofline_of(options.target)
            samples, rates = cost_error.gpu_samples(timed, start), start.model_dump()
            again, how = cost_error.cross_validated(timed, start), "all rates fitted to the other models"
            if options.fit:
                fitted = cost_error.fit_roofline(timed, start).model_dump()
                print(yaml.safe_dump({"roofline": {name: float(f"{value:.3g}") for name, value in fitted.items()}}))
    except SmartMemError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    row = {
        "rates": rates,
        **({"load_before": round(load, 1), "cores": os.cpu_count()} if options.target == "cpu" else {}),
        "models": list(dict.fromkeys(sample.model for sample in samples)),
        "errors": cost_error.errors(samples),
        "by_family": cost_error.by_family(samples),
        "recalibrated": {"how": how, **cost_error.errors(again)},
        "kernels": [sample.__dict__ for sample in samples],
    }
    write(options.output, options.target, load_target(options.target).summary, row)
    return 0


def write(path: Path, target: str, summary: str, row: dict[str, Any]) -> None:
    """Puts a target's part into both files."""
    content = json.loads(path.read_text()) if path.exists() else {"targets": {}}
    content["tools"] = api.tool_versions()
    content["targets"][target] = {"summary": summary, **row}
    path.write_text(json.dumps(content, indent=1) + "\n")
    path.with_suffix(".md").write_text(cost_error.markdown(content["targets"]))


if __name__ == "__main__":
    sys.exit(main())
