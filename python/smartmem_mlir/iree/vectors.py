"""Kernels that IREE vectorises wrongly, made scalar.

IREE 3.13 turns the buffers of a SPIR-V kernel into buffers of vectors when all accesses are vectors, and divides each
index by the vector's width, without asking whether it is a multiple: `exp(x[:, 1:9])` reads `x[:, 0:8]`. Slices, pads
and convolution windows that start anywhere but at a multiple of four on the innermost dimension are wrong on every
device and at every level. Between choosing a kernel's configuration and generating it, IREE stops and goes on from
text; there, such kernels get the configuration of those that are distributed to threads but not vectorised.
"""

from __future__ import annotations

import re

from smartmem_mlir.errors import CompilerError

STAGE = "executable-configurations"
"""The stage of `iree-compile` whose text is read: kernels with their configurations, operations still on tensors."""

TEXT_FLAGS = ("--mlir-print-local-scope",)
"""Flags under which each operation of that text holds its own attributes."""

# The widest vectors that IREE makes of 32-bit elements.
_WIDTH = 4
_EXECUTABLE = re.compile(r'^ *hal\.executable (?:private|public) @("(?:[^"\\]|\\.)*"|[\w$.-]+)', re.MULTILINE)
_PIPELINE = re.compile(r"(#iree_gpu\.spirv_pipeline<)(\w+)")
_DISTRIBUTED = "BaseDistribute"
# Pipelines whose tiles also suit the distributed one; the others vectorise as well but distribute in ways of their own.
_REPLACEABLE = frozenset({"BaseVectorize", "MatmulPromoteVectorize"})
_SCALAR = frozenset({_DISTRIBUTED})

_BINDING = re.compile(
    r"tensor_ext\.dispatch\.tensor\.(?:load|store) .*?offsets = \[([^\]]*)\].*?"
    r"!iree_tensor_ext\.dispatch\.tensor<\w+:tensor<((?:[\d?]+x)*)[a-z]"
)
_SLICE = re.compile(r"tensor\.(?:extract_slice|insert_slice) .*?%[\w$.#-]+ ?\[([^\]]*)\]")
_PAD = re.compile(r"tensor\.pad .*? low\[([^\]]*)\]")
_MAP = re.compile(r"affine_map<\([^)]*\) -> \(([^)]*(?:\([^)]*\)[^)]*)*)\)>")
_PLAIN_INDEX = re.compile(r"\s*(?:d\d+|0)?\s*")
# Windows over the innermost dimension in named form.
_WINDOWS = re.compile(r"linalg\.\w*(?:conv|pooling)\w*_nc(?:hw|w|dhw)\w*")


def scalarize(text: str, repair: bool) -> tuple[str, list[str]]:
    """Make the kernels scalar that IREE would vectorise wrongly.

    The test errs on the safe side: a kernel may be named here whose vectors IREE would not have formed.

    Args:
        text: A module at :data:`STAGE`.
        repair: Whether to; if not, they are only named.

    Returns:
        The text, and the names of the executables.

    Raises:
        CompilerError: Such a kernel is distributed in a way that has no scalar counterpart.
    """
    starts = [match.start() for match in _EXECUTABLE.finditer(text)] or [len(text)]
    parts, found = [text[: starts[0]]], []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        pipelines = {match[2] for match in _PIPELINE.finditer(part)} - _SCALAR
        if pipelines and _starts_between_vectors(part):
            match = _EXECUTABLE.match(part)
            name = match[1].strip('"') if match else ""
            found.append(name)
            if repair and not pipelines <= _REPLACEABLE:
                raise CompilerError(
                    f"IREE would read vectors at the wrong place in kernel '{name}' (pipeline {', '.join(pipelines)}):"
                    " its slices, pads or windows do not start at a multiple of 4",
                    hint="use a target without subgroup operations, such as vulkan",
                )
            if repair:
                part = _PIPELINE.sub(rf"\g<1>{_DISTRIBUTED}", part)
        parts.append(part)
    return "".join(parts), found


def scalarize_i64(text: str) -> str:
    """Make the kernels scalar that hold 64-bit integers, for a device that has none.

    IREE computes such integers as pairs, but vectors of them not at all.

    Args:
        text: A module at :data:`STAGE`.
    """
    starts = [match.start() for match in _EXECUTABLE.finditer(text)] or [len(text)]
    parts = [text[: starts[0]]]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if "xi64>" in part and {match[2] for match in _PIPELINE.finditer(part)} <= _REPLACEABLE | _SCALAR:
            part = _PIPELINE.sub(rf"\g<1>{_DISTRIBUTED}", part)
        parts.append(part)
    return "".join(parts)


def _starts_between_vectors(body: str) -> bool:
    """Whether something in a kernel may read or write from an index that is no multiple of the vector's width on."""
    if _WINDOWS.search(body):
        return True
    for offsets, extents in _BINDING.findall(body):
        innermost = extents.rstrip("x").rpartition("x")[2]
        # Rows of odd length are not turned into vectors.
        if not (innermost.isdigit() and int(innermost) % 2) and not _is_aligned(offsets):
            return True
    if any(not _is_aligned(offsets) for pattern in (_SLICE, _PAD) for offsets in pattern.findall(body)):
        return True
    return any(
        not _PLAIN_INDEX.fullmatch(results.rpartition(",")[2])
        for line in body.splitlines()
        if "linalg.generic" in line
        for results in _MAP.findall(line)
    )


def _is_aligned(offsets: str) -> bool:
    """Whether the innermost of some offsets is a constant multiple of the vector's width."""
    innermost = offsets.rpartition(",")[2].strip()
    return innermost == "" or (innermost.isdigit() and int(innermost) % _WIDTH == 0)
