#!/usr/bin/env python3
"""Builds a wheel into dist/, tagged with the oldest glibc that its libraries run on; `--check` tries it in a new venv.

tools/build_wheel.py            build and tag
tools/build_wheel.py --check    also install it, with all that it needs, into a venv of its own, and run the demo there

The tag is that of PEP 600 (`manylinux_2_34_x86_64`). MLIR's libraries come from wheels of their own and are not packed,
so that the wheel is a megabyte.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLIBC = re.compile(r"\bGLIBC_2\.(\d+)\b")
OLDEST = 17
"""The least minor version that PEP 600 knows."""


def build(folder: Path) -> Path:
    """Builds the wheel with the packages of this environment; the file."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("smartmem_mlir-*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("smartmem_mlir-*.whl")
    return wheel


def needed_glibc(wheel: Path) -> int:
    """The minor version of the oldest glibc that has every symbol which the wheel's libraries import."""
    newest = OLDEST
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                library = archive.extract(name, folder)
                symbols = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
                newest = max(newest, *(int(minor) for minor in GLIBC.findall(symbols)))
    return newest


def retag(wheel: Path) -> Path:
    """Renames a wheel to say which glibc it needs."""
    tag = f"manylinux_2_{needed_glibc(wheel)}_{platform.machine()}"
    command = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, str(wheel)]
    named = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]
    return wheel.parent / named


def check(wheel: Path) -> None:
    """Installs the wheel into a new venv, compiles and verifies the demo network there, and explains it."""
    with tempfile.TemporaryDirectory(prefix="smartmem-wheel-") as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        programs = Path(folder) / "bin"
        subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", str(wheel)], check=True)
        # Elsewhere than in the checkout, whose sources must not be found.
        for command in (["demo"], ["--help"]):
            subprocess.run([programs / "smartmem", *command], check=True, cwd=folder)
        subprocess.run([programs / "smartmem-opt", "--version"], check=True, cwd=folder, stdout=subprocess.DEVNULL)


def main() -> None:
    """Builds, tags, and checks if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="install it into a new venv and run the demo")
    arguments = parser.parse_args()
    wheel = retag(build(ROOT / "dist"))
    print(f"built {wheel.relative_to(ROOT)}")
    if arguments.check:
        check(wheel)


if __name__ == "__main__":
    main()
