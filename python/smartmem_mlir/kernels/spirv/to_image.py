"""A shader that copies a buffer into an image."""

from __future__ import annotations

from math import prod

from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.control import when
from smartmem_mlir.kernels.spirv.placements import ImageShape
from smartmem_mlir.kernels.spirv.shader import Interface, Thread, assemble
from smartmem_mlir.kernels.spirv.storage import Image, Vectors

_INVOCATIONS = 64
_COLUMNS = 4096
"""Workgroups along x, which every device allows; the others lie along y."""


def to_image(name: str, shape: ImageShape, half: bool, version: str) -> tuple[bytes, tuple[int, int]]:
    """The shader's binary and its workgroups along x and y.

    Args:
        name: Its entry point.
        shape: The image; the buffer holds its texels layer by layer, row by row.
        half: Whether elements are f16.
        version: SPIR-V version.
    """
    texels = prod(shape.extents)
    groups = -(-texels // _INVOCATIONS)
    columns = min(groups, _COLUMNS)
    rows = -(-groups // columns)
    source = Vectors("source", half=half)
    target = Image("target", True, shape, half)

    def body(thread: Thread) -> None:
        x, y = thread.workgroup
        group = integers.add(integers.scale(y, columns), x)
        number = integers.add(integers.scale(group, _INVOCATIONS), thread.local)

        def copy() -> None:
            target.store(target.place(number), source.load((number,)))

        when([integers.less(number, texels)] if rows * columns * _INVOCATIONS > texels else [], copy)

    interface = Interface(name, (source, target), _INVOCATIONS, version=version)
    return assemble(interface, body), (columns, rows)
