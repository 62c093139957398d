#!/usr/bin/env python3
"""Compile models for the Vulkan targets with optimisation on, ours and plain IREE, and validate every shader.

    python benchmarks/vulkan_compile.py --models models                     # nine models, three targets, f32 and f16
    python benchmarks/vulkan_compile.py --models models swin vit --targets adreno,mali

Each module's shaders are taken out of it and given to `spirv-val` (package spirv-tools) for the environment of the
target, Vulkan 1.1. Results go to `results/vulkan_compile.json`, a line for each compilation, after each; lines that are
there are not made again. Where plain IREE does not compile at the level, it is tried one lower. Times are of the whole
`smartmem compile`, import and report included, on both sides; on a shared machine trust those of CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smartmem_mlir.bench.host import checkout_commit
from smartmem_mlir.iree.shaders.module import find_modules
from smartmem_mlir.iree.toolchain import COMPILER_PACKAGE, package_version

MODELS = (
    "swin",
    "vit",
    "convnext",
    "resnet50",
    "efficientvit",
    "regnet",
    "resnext",
    "sd-text-encoder",
    "sd-vae-decoder",
)
TARGETS = ("vulkan", "adreno", "mali")
TYPES = ("f32", "f16")
# `vulkan` promises no 16-bit values in buffers; a description of its own does.
WITH_HALVES = {"vulkan": "vulkan-f16"}
ENVIRONMENT = "vulkan1.1"
RESULTS = Path(__file__).resolve().parent / "results" / "vulkan_compile.json"
Row = dict[str, Any]


def main() -> int:
    """Exit code: 0 if ours compiled everything and every shader is valid, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODEL", default=MODELS)
    parser.add_argument("--models", type=Path, required=True, help="folder of NAME.onnx, from `smartmem zoo build`")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--level", default="O2", help="optimisation level")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds of one compilation")
    parser.add_argument("--ours", action="store_true", help="leave plain IREE out")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.output.exists() else {"rows": []}
    results["command"] = "benchmarks/vulkan_compile.py --models models"
    results["iree"] = package_version(COMPILER_PACKAGE)
    for plain in (False,) if options.ours else (False, True):
        for target in options.targets.split(","):
            for type_ in options.types.split(","):
                for name in options.names:
                    levels = (options.level, "O1") if plain else (options.level,)
                    for row in _missing(results["rows"], options, name, target, type_, levels, plain):
                        results["rows"].append(row | {"commit": checkout_commit()})
                        results["rows"].sort(key=lambda r: (r["target"], r["type"], r["model"], r["plain"], r["level"]))
                        options.output.write_text(json.dumps(results, indent=1) + "\n")
                        print(json.dumps(row), flush=True)
    ours = [row for row in results["rows"] if not row["plain"]]
    return int(any("error" in row or row["invalid"] for row in ours))


def _missing(
    rows: Sequence[Row],
    options: argparse.Namespace,
    name: str,
    target: str,
    type_: str,
    levels: Sequence[str],
    plain: bool,
) -> list[Row]:
    """The compilations that have no line yet, down to the first level that compiles."""
    made: list[Row] = []
    for level in levels:
        key = {"model": name, "target": target, "type": type_, "level": level, "plain": plain}
        found = next((row for row in rows if key.items() <= row.items()), None)
        if found is None:
            found = key | _compile(options.models / f"{name}.onnx", key, options.time_limit)
            made.append(found)
        if "error" not in found:
            break
    return made


def _compile(model: Path, key: Row, time_limit: float) -> Row:
    target = WITH_HALVES.get(key["target"], key["target"]) if key["type"] == "f16" else key["target"]
    with tempfile.TemporaryDirectory(prefix="smartmem-sweep-") as folder:
        output = Path(folder) / "out"
        command = [sys.executable, "-m", "smartmem_mlir.cli.app", "compile", str(model), "-o", str(output)]
        command += ["--target", target, "--opt-level", key["level"], "--timeout", f"{time_limit:g}"]
        command += ["--dtype", key["type"]] if key["type"] != "f32" else []
        command += ["--baseline"] if key["plain"] else []
        before, started = os.times(), time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        after = os.times()
        cpu = after.children_user - before.children_user + after.children_system - before.children_system
        row: Row = {"seconds": round(time.monotonic() - started, 1), "cpu_seconds": round(cpu, 1)}
        if done.returncode != 0:
            error = next((line for line in done.stderr.splitlines() if "error: " in line), f"code {done.returncode}")
            return row | {"error": error.split("; reproduce")[0].replace(folder, "WORK")}
        report = json.loads((output / "report.json").read_text())
        data = (output / "model.vmfb").read_bytes()
        errors = [_invalid(_binary(data, module.offset), Path(folder)) for module in find_modules(data)]
        invalid = [error for error in errors if error]
        return row | {"kernels": report["flow"]["kernels"], "shaders": len(errors), "invalid": invalid}


def _binary(data: bytes, offset: int) -> bytes:
    """A module of a `.vmfb`, which has its length in words before it."""
    (words,) = struct.unpack_from("<I", data, offset - 4)
    return data[offset : offset + 4 * words]


def _invalid(shader: bytes, folder: Path) -> str | None:
    """What `spirv-val` says against a module."""
    file = folder / "shader.spv"
    file.write_bytes(shader)
    done = subprocess.run(
        ["spirv-val", "--target-env", ENVIRONMENT, str(file)], capture_output=True, text=True, check=False
    )
    return (done.stdout + done.stderr).strip() if done.returncode else None


if __name__ == "__main__":
    sys.exit(main())
