"""Kernels that do nothing but read, written with the generator that writes the compiler's shaders.

A kernel has one invocation for each texel of a grid. In each pass an invocation reads one texel, or nine, and adds them
up; from pass to pass the workgroup moves on, around the grid, so that no pass reads what the one before has read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mlir import ir
from mlir.dialects import arith, scf
from read_values import STRIDE

from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.placements import ImageShape
from smartmem_mlir.kernels.spirv.shader import Body, Interface, Thread, assemble
from smartmem_mlir.kernels.spirv.storage import Image, TexelBuffer, VectorMemory, Vectors
from smartmem_mlir.kernels.spirv.vectors import splat

Memory = Literal["buffer", "texel_buffer", "image"]
Pattern = Literal["rows", "columns", "window"]

INVOCATIONS = 64
TILE: Mapping[Pattern, tuple[int, int]] = {"rows": (64, 1), "columns": (1, 64), "window": (8, 8)}
"""Texels of a workgroup along x and y: whose neighbours read neighbouring texels of a row, of a column, or of both."""


@dataclass(frozen=True)
class ReadKernel:
    """A kernel.

    Args:
        memory: What it reads.
        pattern: How its invocations lie on the grid; those of a window read it and its eight neighbours.
        half: Whether it reads f16.
        width: Texels of the grid along x, a power of two of at least 64.
        height: Along y, the same.
        passes: How often each invocation reads.
    """

    memory: Memory
    pattern: Pattern
    half: bool
    width: int
    height: int
    passes: int

    @property
    def name(self) -> str:
        """Of the function that runs it."""
        element = "f16" if self.half else "f32"
        return f"{self.memory}_{self.pattern}_{element}_{self.width}x{self.height}_{self.passes}"

    @property
    def reads(self) -> int:
        """Texels that an invocation reads in a pass."""
        return 9 if self.pattern == "window" else 1

    @property
    def workgroups(self) -> tuple[int, int]:
        """Along x and y."""
        across, down = TILE[self.pattern]
        return self.width // across, self.height // down

    @property
    def image(self) -> ImageShape:
        """The grid as an image."""
        return ImageShape(1, (self.width, self.height))

    def binary(self, version: str, name: str) -> bytes:
        """Its SPIR-V, by a name: binding 0 is the grid, binding 1 a sum for each texel, in f32."""
        source = self._source()
        target = Vectors("sums", writable=True)
        interface = Interface(name, (source, target), INVOCATIONS, version=version)
        return assemble(interface, self._body(source, target))

    def _source(self) -> VectorMemory:
        if self.memory == "image":
            return Image("grid", False, self.image, self.half)
        return (TexelBuffer if self.memory == "texel_buffer" else Vectors)("grid", half=self.half)

    def _body(self, source: VectorMemory, target: Vectors) -> Body:
        across, down = TILE[self.pattern]

        def read(x: ir.Value, y: ir.Value) -> ir.Value:
            if self.memory == "image":
                return source.load((x, y))
            return source.load((integers.add(integers.scale(y, self.width), x),))

        def body(thread: Thread) -> None:
            group_x, group_y = thread.workgroup
            x = integers.add(integers.scale(group_x, across), integers.remainder(thread.local, across))
            y = integers.add(integers.scale(group_y, down), integers.divide(thread.local, across))
            loop = scf.ForOp(integers.constant(0), integers.constant(self.passes), integers.constant(1), [splat(0.0)])
            with ir.InsertionPoint(loop.body):
                # Around the grid: a remainder by a power of two is a bit mask.
                at = _around(integers.add(x, integers.scale(loop.induction_variable, STRIDE)), self.width)
                total = loop.inner_iter_args[0]
                reach = range(-1, 2) if self.pattern == "window" else range(1)
                for dy in reach:
                    row = _around(integers.add(y, dy % self.height), self.height)
                    for dx in reach:
                        column = _around(integers.add(at, dx % self.width), self.width)
                        total = arith.addf(total, read(column, row))
                scf.YieldOp([total])
            target.store((integers.add(integers.scale(y, self.width), x),), loop.results[0])

        return body


def _around(at: ir.Value, extent: int) -> ir.Value:
    return arith.andi(at, integers.constant(extent - 1))
