"""The stubs of the extension name what the extension has, with the same parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import smartmem_mlir.dialects  # noqa: F401 - loads MLIR first
from smartmem_mlir import _smartmem

STUBS = Path(__file__).resolve().parents[2] / "python" / "smartmem_mlir" / "_smartmem.pyi"
INHERITED = {"isinstance", "get_static_typeid"}
"""What MLIR gives to every attribute class."""


def parameters(stub: ast.FunctionDef) -> list[str]:
    """Names in a stub, without self and cls."""
    names = [argument.arg for argument in (*stub.args.posonlyargs, *stub.args.args, *stub.args.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def parameters_at_run_time(function: Any) -> list[str]:
    """Names in nanobind's signature, without self and cls."""
    text = function.__nb_signature__[0][0]
    inside = text[text.index("(") + 1 : text.rindex(")")]
    # A name stands before a colon or the end, at bracket depth zero.
    depth, flat = 0, ""
    for character in inside:
        depth += (character == "[") - (character == "]")
        flat += character if depth == 0 and character != "]" else ""
    names = [re.split(r"[:=]", part)[0].strip() for part in flat.split(",")]
    return [name for name in names if name not in ("self", "cls", "*", "/", "")]


def public(names: Any) -> set[str]:
    return {name for name in names if not name.startswith("_")} - INHERITED


def test_functions_and_classes() -> None:
    stubs = ast.parse(STUBS.read_text()).body
    functions = {stub.name: stub for stub in stubs if isinstance(stub, ast.FunctionDef)}
    classes = {stub.name: stub for stub in stubs if isinstance(stub, ast.ClassDef)}
    assert set(functions) | set(classes) == public(dir(_smartmem))
    for name, stub in functions.items():
        assert parameters(stub) == parameters_at_run_time(getattr(_smartmem, name)), name
    for name, described in classes.items():
        real = getattr(_smartmem, name)
        members = {stub.name: stub for stub in described.body if isinstance(stub, ast.FunctionDef)}
        assert public(members) == public(vars(real)), name
        for member, stub in members.items():
            decorators = {decorator.id for decorator in stub.decorator_list if isinstance(decorator, ast.Name)}
            if "property" in decorators:
                assert isinstance(vars(real)[member], property), f"{name}.{member}"
            elif not member.startswith("_"):
                assert parameters(stub) == parameters_at_run_time(getattr(real, member)), f"{name}.{member}"


def test_the_package_says_that_it_is_typed() -> None:
    assert (STUBS.parent / "py.typed").is_file()
