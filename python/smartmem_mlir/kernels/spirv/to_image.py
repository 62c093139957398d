"""A shader that copies a buffer into an image."""

from __future__ import annotations

from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.control import when
from smartmem_mlir.kernels.spirv.shader import Interface, Thread, assemble
from smartmem_mlir.kernels.spirv.storage import Image, Vectors

_INVOCATIONS = 64


def to_image(name: str, extents: tuple[int, int], half: bool, version: str) -> tuple[bytes, tuple[int, int]]:
    """The shader's binary and its workgroups along x and y.

    Args:
        name: Its entry point.
        extents: Texels of the image along x and y; the buffer holds them row by row.
        half: Whether elements are f16.
        version: SPIR-V version.
    """
    width, height = extents
    source = Vectors("source", half=half)
    target = Image("target", True, 0, extents, half)

    def body(thread: Thread) -> None:
        x = integers.add(integers.scale(thread.workgroup[0], _INVOCATIONS), thread.local)
        y = thread.workgroup[1]

        def copy() -> None:
            number = integers.add(integers.scale(y, width), x)
            target.store((x, y), source.load((number,)))

        when([integers.less(x, width)] if width % _INVOCATIONS else [], copy)

    interface = Interface(name, (source, target), _INVOCATIONS, version=version)
    return assemble(interface, body), (-(-width // _INVOCATIONS), height)
