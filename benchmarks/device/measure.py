"""Runs what `pack.py` packed on the Vulkan device of this machine: verifies, times, writes JSON.

    python benchmarks/device/measure.py PACK -o results.json

Needs IREE's runtime, NumPy, pydantic, PyYAML and the `vulkan` package, but neither MLIR nor a compiler.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from weights import make

import smartmem_mlir
from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.index_maps.text import parse_view
from smartmem_mlir.iree.archive import write_archive
from smartmem_mlir.iree.image_layer import enable
from smartmem_mlir.iree.storage import storage_flags
from smartmem_mlir.iree.stored_parameters import evaluate_view
from smartmem_mlir.report.inputs import random_inputs
from smartmem_mlir.signature import MLIR_DTYPES, Parameter, TensorSpec

ARCHIVES_AHEAD = 3
"""Weights that are made while the device is busy with others."""


def write_weights(pack: Path, model: str, folder: Path) -> Path:
    """Makes the parameter archive of a packed directory."""
    notes = json.loads((pack / f"{model}.json").read_text())
    stored = np.load(pack / f"{model}.npz")
    half = json.loads((folder / "report.json").read_text())["source"]["dtype"] == "f16"
    parameters = {}
    for key in notes["order"]:
        if key in notes["recipe"]:
            shape, mean, deviation = notes["recipe"][key]
            values = make(key, tuple(shape), mean, deviation)
        else:
            values = stored[f"weight:{key}"]
        if half and values.dtype == np.float32:
            values = values.astype(np.float16)
        spec = TensorSpec(key, tuple(values.shape), MLIR_DTYPES[values.dtype])
        parameters[key] = Parameter(spec, lambda values=values: values)
    stored = {}
    for key, derived in json.loads((folder / "weights.json").read_text()).items():
        if derived is None:
            stored[key] = parameters[key]
            continue
        source, view = parameters[derived[0]], parse_view(derived[1])
        spec = TensorSpec(key, view.shape, source.spec.dtype)
        stored[key] = Parameter(spec, lambda source=source, view=view: evaluate_view(view, source.load()))
    write_archive(folder / "params.irpa", stored)
    return folder / "params.irpa"


def verify(compiled: smartmem_mlir.CompiledModel, pack: Path, model: str) -> float:
    """Largest relative L2 distance from ONNX Runtime's outputs."""
    stored = np.load(pack / f"{model}.npz")
    seeds = json.loads((pack / f"{model}.json").read_text())["seeds"]
    worst = 0.0
    for seed in seeds:
        outputs = compiled.run(random_inputs([info.spec for info in compiled.report.inputs], seed), "vulkan")
        for name, values in outputs.items():
            wanted = stored[f"output:{seed}:{name}"].astype(np.float64)
            distance = float(np.linalg.norm(values - wanted) / np.linalg.norm(wanted))
            # Not a number compares as not greater: it must not pass for a match.
            worst = max(worst, distance if np.isfinite(distance) else np.inf)
    return worst


def time_ms(folder: Path, archive: Path, report: Any, seconds: float) -> float:
    """Median wall time of one inference, by IREE's own benchmark tool."""
    flags = [
        f"--benchmark_min_time={seconds}s",
        "--benchmark_repetitions=3",
        "--benchmark_report_aggregates_only=true",
    ]
    said = _run(_tool("iree-benchmark-module"), *_call(folder, archive, report), *flags)
    found = re.search(r"real_time_median\s+([\d.]+) (ms|us)", said)
    if found is None:
        raise RuntimeError(said[-500:])
    return float(found[1]) / (1000 if found[2] == "us" else 1)


def kernels_us(folder: Path, archive: Path, report: Any, runs: int) -> dict[str, float]:
    """Time of each kernel in one inference on the device, all its calls together, by timestamps around each."""
    with tempfile.TemporaryDirectory() as temporary:
        profile = Path(temporary) / "profile"
        flags = [
            f"--benchmark_min_time={runs}x",
            "--device_profiling_mode=dispatch-events",
            f"--device_profiling_output={profile}",
        ]
        _run(_tool("iree-benchmark-module"), *_call(folder, archive, report), *flags)
        said = _run(_tool("iree-profile"), "dispatch", str(profile))
    times: Counter[str] = Counter()
    # A group is its kernel's name on a line of its own, then lines that are indented further.
    for name, lines in re.findall(r"^  (\S+)\n((?:    .*\n?)+)", said, re.MULTILINE):
        total = re.search(r"time_ns:.* total=(\d+)", lines)
        times[name] += int(total[1]) if total else 0
    if not times:
        raise RuntimeError(said[-500:])
    return {name: round(total / runs / 1e3, 2) for name, total in times.most_common()}


def _call(folder: Path, archive: Path, report: Any) -> list[str]:
    """How IREE's tools run the module."""
    inputs = [f"--input={'x'.join(map(str, (*i.shape, i.dtype)))}=1" for i in report.inputs]
    inputs += storage_flags([info.spec for info in report.outputs], report.transient_bytes)
    return [
        f"--module={folder / 'model.vmfb'}",
        f"--parameters=model={archive}",
        "--device=vulkan",
        "--vulkan_dispatch_abi=descriptor",
        "--function=main",
        *inputs,
    ]


def _tool(name: str) -> list[str]:
    installed = Path(sys.executable).with_name(name)
    if installed.is_file():
        return [str(installed)]
    return [sys.executable, "-m", f"iree._runtime.scripts.{name.replace('-', '_')}"]


def _run(tool: list[str], *arguments: str) -> str:
    done = subprocess.run([*tool, *arguments], capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def main() -> None:
    """Parses the command line and measures every packed module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=1, help="of inferences a repetition, of which there are three")
    parser.add_argument("--runs", type=int, default=20, help="inferences whose kernels are timed")
    parser.add_argument("--kernels", action="store_true", help="the time of every kernel, too")
    arguments = parser.parse_args()
    # Before the first device: the runtime keeps it, and modules with images need the layer. It lets others pass.
    enable()
    models = [notes.stem for notes in sorted(arguments.pack.glob("*.json"))]
    folders = [(model, folder) for model in models for folder in sorted(arguments.pack.glob(f"{model}-*/"))]
    results = []
    with ProcessPoolExecutor(ARCHIVES_AHEAD) as makers:
        ahead = [makers.submit(write_weights, arguments.pack, *work) for work in folders[:ARCHIVES_AHEAD]]
        for number, (model, folder) in enumerate(folders):
            archive = ahead[number].result()
            ahead += [
                makers.submit(write_weights, arguments.pack, *work)
                for work in folders[number + ARCHIVES_AHEAD : number + ARCHIVES_AHEAD + 1]
            ]
            row = {"model": model, "module": folder.name, **measured(model, folder, archive, arguments)}
            print(json.dumps(row), flush=True)
            results.append(row)
            arguments.output.write_text(json.dumps(results, indent=1))
            archive.unlink()


def measured(model: str, folder: Path, archive: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """What is found out about one module; under `error`, why no more."""
    row: dict[str, Any] = {}
    try:
        compiled = smartmem_mlir.load(folder)
        flow = compiled.report.flow
        row |= {"target": compiled.report.target.name, "opt_level": compiled.report.opt_level}
        row |= {"baseline": compiled.report.baseline, "kernels": flow.kernels}
        row |= {"dtype": compiled.report.source.dtype or "f32", "entry": compiled.report.entry}
        row |= {"movement_kernels": flow.movement_kernels, "movement_bytes": flow.movement_bytes}
        row |= {"total_bytes": flow.total_bytes}
        row |= {"relative_l2": verify(compiled, arguments.pack, model)}
        row |= {"ms": time_ms(folder, archive, compiled.report, arguments.seconds)}
        kernels = kernels_us(folder, archive, compiled.report, arguments.runs)
        row |= {"device_ms": round(sum(kernels.values()) / 1e3, 4)}
        row |= {"kernels_us": kernels} if arguments.kernels else {}
    except (SmartMemError, RuntimeError, subprocess.TimeoutExpired) as error:
        row["error"] = str(error)
    return row


if __name__ == "__main__":
    main()
