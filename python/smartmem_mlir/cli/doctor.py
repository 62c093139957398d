"""`smartmem doctor`: what is installed, what is missing, how to get it."""

from __future__ import annotations

import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import typer

from smartmem_mlir.cli.options import Debug
from smartmem_mlir.errors import EXIT_BAD_INPUT, SmartMemError

_VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Args:
        name: What.
        state: "ok", "missing" (and needed), or "absent" (and optional).
        detail: Version or description.
        remedy: How to get it, where it is not there.
    """

    name: str
    state: Literal["ok", "missing", "absent"]
    detail: str
    remedy: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Check the installation: versions, devices, what is missing and how to get it."""
    findings = [*_python(), *_packages(), *_tools(), *_targets(), *_devices(), *_optional()]
    if as_json:
        json.dump([asdict(finding) for finding in findings], sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        _print(findings)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(EXIT_BAD_INPUT)


def _python() -> Iterator[Finding]:
    yield Finding("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _packages() -> Iterator[Finding]:
    from smartmem_mlir.iree.toolchain import package_version

    needed = (
        "smartmem-mlir", "xtc-mlir-python-bindings", "torch-mlir", "iree-base-compiler", "iree-base-runtime", "numpy",
        "onnx", "onnxruntime", "islpy",
    )  # fmt: skip
    for package in needed:
        version = package_version(package)
        remedy = "pip install smartmem-mlir" if package == "smartmem-mlir" else f"pip install {package}"
        yield Finding(package, "ok" if version else "missing", version or "not installed", "" if version else remedy)
    extension = importlib.util.find_spec("smartmem_mlir._smartmem")
    yield Finding(
        "smartmem dialect",
        "ok" if extension else "missing",
        "native extension" if extension else "native extension not built",
        "" if extension else "build the project: pip install .",
    )


def _tools() -> Iterator[Finding]:
    from smartmem_mlir.iree.toolchain import COMPILER_PACKAGE, iree_compile

    try:
        result = subprocess.run(
            [iree_compile(), "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (SmartMemError, OSError, subprocess.SubprocessError) as error:
        yield Finding("iree-compile", "missing", str(error), f"pip install {COMPILER_PACKAGE}")
        return
    version = next((line.strip() for line in result.stdout.splitlines() if "version" in line), "runs")
    yield Finding("iree-compile", "ok", version)


def _targets() -> Iterator[Finding]:
    from smartmem_mlir.targets import load_target, target_names

    try:
        names = target_names()
        for name in names:
            load_target(name)
    except SmartMemError as error:
        yield Finding("targets", "missing", str(error), "pip install --force-reinstall smartmem-mlir")
        return
    yield Finding("targets", "ok", ", ".join(names))


def _devices() -> Iterator[Finding]:
    from smartmem_mlir.errors import DeviceError
    from smartmem_mlir.iree.cpu import this_cpu
    from smartmem_mlir.iree.vulkan import vulkan_devices

    cpu = this_cpu()
    yield Finding("device local-task", "ok", f"{cpu.name} ({cpu.architecture})")
    try:
        devices = vulkan_devices()
    except DeviceError as error:
        yield Finding("device vulkan", "absent", error.what, error.hint or "")
        return
    if not devices:
        yield Finding("device vulkan", "absent", "no driver", "apt install mesa-vulkan-drivers, or a GPU's own driver")
    for device in devices:
        yield Finding(
            f"device vulkan://{device.index}",
            "ok",
            f"{device.name}, {device.driver}, Vulkan {device.api_version[0]}.{device.api_version[1]}, "
            f"subgroups of {device.subgroup_size}",
        )


def _optional() -> Iterator[Finding]:
    from smartmem_mlir.iree.toolchain import package_version
    from smartmem_mlir.iree.vulkan import vulkan_layers

    torch = package_version("torch")
    yield Finding(
        "torch", "ok" if torch else "absent", torch or "only for PyTorch models", "" if torch else "pip install torch"
    )
    present = _VALIDATION_LAYER in vulkan_layers()
    yield Finding(
        "Vulkan validation layer",
        "ok" if present else "absent",
        _VALIDATION_LAYER if present else "only for tests",
        "" if present else "apt install vulkan-validationlayers",
    )


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    colours = {"ok": "green", "missing": "bold red", "absent": "yellow"}
    for finding in findings:
        detail = finding.detail + (f"  ->  {finding.remedy}" if finding.remedy else "")
        table.add_row(f"[{colours[finding.state]}]{finding.state}[/]", finding.name, detail)
    Console(highlight=False).print(table)
