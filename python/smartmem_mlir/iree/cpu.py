"""The CPU of this machine, in LLVM's names for its features."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from smartmem_mlir.targets.description import CpuTarget

_CPUINFO = Path("/proc/cpuinfo")

# LLVM's name -> the kernel's, where they differ by more than punctuation.
_KERNEL_NAMES = {
    # x86-64
    "64bit": "lm",
    "bmi": "bmi1",
    "crc32": "sse4_2",
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "prfchw": "3dnowprefetch",
    "rdrnd": "rdrand",
    "sahf": "lahf_lm",
    "sha": "sha_ni",
    "sse3": "pni",
    "x87": "fpu",
    # aarch64
    "complxnum": "fcma",
    "crc": "crc32",
    "dotprod": "asimddp",
    "fp-armv8": "fp",
    "fp16fml": "asimdfhm",
    "fullfp16": "asimdhp",
    "lse": "atomics",
    "neon": "asimd",
    "rdm": "asimdrdm",
}

NOT_HARDWARE = frozenset({"outline-atomics", "reserve-x18", "v8a"})
"""LLVM "features" of a generic target that are conventions of code generation, not abilities of a CPU."""


@dataclass(frozen=True)
class CpuFeatures:
    """The kernel's list of CPU flags, asked in LLVM's names: `"avx512bw" in features`."""

    flags: frozenset[str]

    def __contains__(self, feature: object) -> bool:
        name = str(feature)
        return _plain(_KERNEL_NAMES.get(name, name)) in self.flags


@dataclass(frozen=True)
class Cpu:
    """A CPU.

    Args:
        name: Model name as the operating system prints it.
        architecture: As `platform.machine()` names it.
        features: What it can do.
    """

    name: str
    architecture: str
    features: CpuFeatures


def this_cpu() -> Cpu:
    """The CPU of this machine."""
    text = _CPUINFO.read_text() if _CPUINFO.is_file() else ""
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    name = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    return Cpu(
        name=name[1] if name else platform.processor() or platform.machine(),
        architecture=_architecture(platform.machine()),
        features=CpuFeatures(frozenset(_plain(flag) for flag in flags[1].split()) if flags else frozenset()),
    )


def vector_registers(target: CpuTarget) -> tuple[int, int]:
    """f32 lanes of a vector register and how many registers there are, on the CPU that code is for."""
    host = this_cpu() if target.triple == "host" else None
    architecture = host.architecture if host is not None else target.triple.partition("-")[0]
    if architecture == "aarch64":
        return 4, 32

    def has(feature: str) -> bool:
        if f"-{feature}" in target.features:
            return False
        if target.cpu == "host" and host is not None and feature in host.features:
            return True
        return f"+{feature}" in target.features or target.cpu in _CPUS_WITH[feature]

    if has("avx512f"):
        return 16, 32
    return (8, 16) if has("avx2") else (4, 16)


_CPUS_WITH = {
    "avx512f": frozenset({"x86-64-v4", "skylake-avx512", "icelake-server", "sapphirerapids", "znver4", "znver5"}),
    "avx2": frozenset({"x86-64-v3", "haswell", "broadwell", "skylake", "alderlake", "znver1", "znver2", "znver3"}),
}
"""CPUs that a target may name, by the widest vectors they have."""


def _architecture(machine: str) -> str:
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name)
