#!/usr/bin/env python3
"""Compile each model of the zoo for the CPU, compare it with ONNX Runtime, and record what that took.

    for m in resnet50 swin; do smartmem zoo build $m -o models/$m.onnx; done
    python benchmarks/full_size.py --models models resnet50 swin       # plain IREE, at the best level that works
    python benchmarks/full_size.py --models models --ours              # ours
    python benchmarks/full_size.py --small                             # the small variants, which need no export

Results go to `results/baseline_full.json`, ours to `results/smartmem_full.json` (or `--output`), a line for each model,
after each model; models that are not named keep their lines. Levels are tried in the order of `--levels` until one
compiles and verifies; what went wrong at the others is recorded. Compilation and verification run in a process of their
own each: peak memory is that of the largest process (the importer, iree-compile or the reference among them), and one
that is killed stops nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from smartmem_mlir import api
from smartmem_mlir.cli.termination import clean_termination
from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.iree.toolchain import COMPILER_PACKAGE, package_version
from smartmem_mlir.zoo.cards import CARDS

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "test" / "cases" / "zoo"
RESULTS = Path(__file__).resolve().parent / "results"
LEVELS = ("O3", "O2", "O1", "O0")
GRACE_S = 10.0
WHAT = (
    "One inference at batch 1 in f32 on random inputs, compared with ONNX Runtime: kernels, data-movement kernels and "
    "their bytes (reads plus writes) on IREE's flow IR, largest relative L2 distance of an output, seconds by the "
    "clock and of CPU time, peak resident memory of the largest process in MB. The machine was shared: of the seconds "
    "trust those of CPU time."
)


def main() -> int:
    """Exit code: 0 if every model compiled and verified at some level, 1 if one did not, 2 for a wrong command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODEL", help="names; every model that has a file by default")
    parser.add_argument("--models", type=Path, help="folder of NAME.onnx, as `smartmem zoo build` writes them")
    parser.add_argument("--small", action="store_true", help="the small variants, from the committed recipes")
    parser.add_argument("--ours", action="store_true", help="our pipeline instead of plain IREE")
    parser.add_argument("--levels", default=",".join(LEVELS), help="optimisation levels, in the order to try")
    parser.add_argument("--time-limit", type=float, default=3600.0, help="seconds for one step of one model")
    parser.add_argument("--output", type=Path, help="file to write; rows of other models stay")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(_measured(options.step, json.loads(options.names[0]))))
        return 0
    if (options.models is None) == (not options.small):
        parser.error("name a folder with --models, or pass --small")
    unknown = [name for name in options.names if name not in CARDS]
    if unknown:
        parser.error(f"unknown model '{unknown[0]}'; models: {', '.join(CARDS)}")
    output = options.output or RESULTS / ("smartmem_full.json" if options.ours else "baseline_full.json")
    good = True
    for name in options.names or CARDS:
        with tempfile.TemporaryDirectory(prefix="smartmem-full-") as scratch:
            model = _small(name, Path(scratch)) if options.small else options.models / f"{name}.onnx"
            if model is None or not model.exists():
                print(f"{name}: no file")
                good = good and name not in options.names
                continue
            row = {"model": name, **_try_levels(model, Path(scratch), options)}
        _record(output, row, options.ours)
        print(json.dumps(row), flush=True)
        good = good and row["level"] is not None
    return 0 if good else 1


def _small(name: str, scratch: Path) -> Path | None:
    from smartmem_mlir.zoo import materialize

    recipe = RECIPES / f"{name.replace('-', '_')}.onnx"
    if not recipe.exists():
        return None
    materialize(recipe, scratch / f"{name}.onnx")
    return scratch / f"{name}.onnx"


def _try_levels(model: Path, scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What the first level gave that compiles and verifies, and the errors of those before it."""
    failed: dict[str, str] = {}
    for level in options.levels.split(","):
        folder = scratch / level
        request = {"model": str(model), "folder": str(folder), "level": level, "baseline": not options.ours}
        request["time_limit"] = options.time_limit
        result: dict[str, Any] = {}
        for step in STEPS:
            found = _run_step(step, request, options.time_limit)
            result |= found
            if "error" in found:
                failed[level] = found["error"].replace(str(scratch), "WORK").replace(str(model.parent), "MODELS")
                break
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(scratch / f"{level}.reproducer", ignore_errors=True)
        if level not in failed:
            return {"level": level, **result, "failed": failed}
    return {"level": None, "failed": failed}


def _run_step(step: str, request: dict[str, Any], time_limit: float) -> dict[str, Any]:
    """One step in a process group of its own; `error` in the result says why there is nothing else."""
    command = [sys.executable, __file__, "--step", step, json.dumps(request)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        printed, said = process.communicate(timeout=time_limit)
    except subprocess.TimeoutExpired:
        return {"error": f"{step}: took more than {time_limit:g} s"}
    finally:
        _end(process)
    if process.returncode == -signal.SIGKILL:
        return {"error": f"{step}: killed, most likely for lack of memory"}
    if process.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines()
        return {"error": f"{step}: exit code {process.returncode}: {lines[-1] if lines else ''}"}
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a step that still runs: by a signal that lets it end iree-compile and remove its files, then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=GRACE_S)


def _measured(step: str, request: dict[str, Any]) -> dict[str, Any]:
    """A step's result with its wall time and peak memory."""
    started = time.monotonic()
    try:
        found = STEPS[step](request)
    except SmartMemError as error:
        return {"error": f"{step}: {' '.join(str(error).split())}"}
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    times = {
        f"{step}_s": round(time.monotonic() - started, 1),
        f"{step}_cpu_s": round(sum(usage.ru_utime + usage.ru_stime for usage in used), 1),
        f"{step}_peak_mb": round(max(usage.ru_maxrss for usage in used) / 1e3),
    }
    return found | times


def _compile(request: dict[str, Any]) -> dict[str, Any]:
    compiled = api.compile(
        request["model"],
        request["folder"],
        baseline=request["baseline"],
        opt_level=request["level"],
        timeout_s=request["time_limit"],
    )
    if compiled.report.fallbacks:
        return {"error": f"compile: {compiled.report.fallbacks[0].error}"}
    flow = compiled.report.flow
    return {
        "kernels": flow.kernels,
        "movement_kernels": flow.movement_kernels,
        "bytes": flow.total_bytes,
        "movement_bytes": flow.movement_bytes,
        "copy_bytes": flow.copy_bytes,
        "weight_bytes": compiled.report.weight_bytes,
        "module_bytes": compiled.report.files["model.vmfb"].bytes,
    }


def _verify(request: dict[str, Any]) -> dict[str, Any]:
    result = api.load(request["folder"]).verify(seeds=(0,))
    differences = [difference for found in result.by_seed.values() for difference in found]
    largest = max(difference.relative_l2 for difference in differences)
    if not result.matches:
        return {"error": f"verify: relative L2 {largest:.2e} against {result.reference}"}
    return {"relative_l2": float(f"{largest:.2e}")}


STEPS = {"compile": _compile, "verify": _verify}
"""What is done with each model, in order."""


def _record(output: Path, row: dict[str, Any], ours: bool) -> None:
    """Put a model's row into the file, in the zoo's order, a line each."""
    rows = {old["model"]: old for old in json.loads(output.read_text())["rows"]} if output.exists() else {}
    rows[row["model"]] = row
    lines = ",\n".join(f"  {json.dumps(rows[name])}" for name in CARDS if name in rows)
    command = f"benchmarks/full_size.py{' --ours' if ours else ''}"
    head = {"what": WHAT, "command": command, "compiler": package_version(COMPILER_PACKAGE)}
    text = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    output.write_text(f'{{\n{text},\n "rows": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    with clean_termination():
        sys.exit(main())
