"""Imports point one way: a layer imports what stands below it, and what is heavy is imported where it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "smartmem_mlir"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Lowest first. Packages of one layer do not import each other, except the commands, which are parts of one program.
COMMANDS = frozenset({"bench", "cli", "zoo"})
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "signature", "i1_text"}),
    frozenset({"index_maps"}),
    frozenset({"layouts"}),
    frozenset({"_smartmem"}),
    frozenset({"dialects"}),
    frozenset({"ir"}),
    frozenset({"transforms", "ingress"}),
    frozenset({"targets"}),
    frozenset({"kernels"}),
    frozenset({"iree"}),
    frozenset({"report"}),
    frozenset({"api", "model_explorer"}),
    COMMANDS,
)
LEVEL = {package: level for level, layer in enumerate(LAYERS) for package in layer}

# Packages that must not be imported at all below the layer that is about them.
FORBIDDEN = {
    "errors": {"mlir", "islpy", "onnx", "torch_mlir", "iree", "onnxruntime", "vulkan", "numpy"},
    "index_maps": {"mlir", "onnx", "torch_mlir", "iree", "onnxruntime", "vulkan"},
    "layouts": {"mlir", "onnx", "torch_mlir", "iree", "onnxruntime", "vulkan"},
    "dialects": {"onnx", "torch_mlir", "iree", "onnxruntime", "vulkan"},
    "transforms": {"onnx", "torch_mlir", "iree", "onnxruntime", "vulkan"},
    "kernels": {"onnx", "torch_mlir", "iree", "onnxruntime", "vulkan"},
    "targets": {"mlir", "onnx", "torch_mlir", "iree", "onnxruntime"},
}


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, at its top or inside functions, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def package_of(path: Path) -> str:
    """The package, or the module directly below `smartmem_mlir`, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def may_import(package: str, other: str) -> bool:
    return other == package or LEVEL[other] < LEVEL[package] or {package, other} <= COMMANDS


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    package = package_of(path)
    wrong = []
    for name, line in imports_of(path):
        parts = name.split(".")
        if parts[0] == "smartmem_mlir" and len(parts) > 1:
            # The package itself only loads its public names from the top.
            if package != "__init__" and not may_import(package, parts[1]):
                wrong.append(f"{path.name}:{line} imports {name}")
        elif parts[0] in FORBIDDEN.get(package, ()) or name.startswith("iree.compiler"):
            wrong.append(f"{path.name}:{line} imports {name}")
    assert not wrong


def test_the_rule_refuses_what_it_should() -> None:
    assert may_import("transforms", "index_maps")
    assert not may_import("index_maps", "transforms")
    assert not may_import("transforms", "ingress")
    assert not may_import("api", "cli")


def test_the_design_page_gives_the_same_order() -> None:
    page = (ROOT / "docs" / "design.md").read_text()
    line = next(line for line in page.splitlines() if "<-" in line and "`index_maps`" in line)
    levels = [LEVEL[name] for layer in line.split("<-") for name in re.findall(r"`(\w+)`", layer)]
    assert levels == sorted(levels)
    assert len(levels) > len(LAYERS) // 2


def test_islpy_has_one_user() -> None:
    users = {path.name for path in MODULES if any(name.split(".")[0] == "islpy" for name, _ in imports_of(path))}
    assert users == {"isl.py"}


@pytest.mark.parametrize("module", ["smartmem_mlir.cli.app", "smartmem_mlir.transforms.registry"])
def test_starting_imports_nothing_heavy(module: str) -> None:
    heavy = ["islpy", "onnx", "onnxruntime", "torch_mlir", "iree.runtime", "vulkan", "torch", "ortools"]
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
