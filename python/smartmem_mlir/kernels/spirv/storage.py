"""How a kernel reads and writes a tensor: by elements or by vectors of four, in a buffer or in an image.

A kernel computes coordinates and never asks which memory they lead to: a place has one coordinate in a buffer, counted
in elements or in vectors, and two in an image (x in texels, y).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from mlir import ir
from mlir.dialects import vector

from smartmem_mlir.kernels.spirv import integers

Place = tuple[ir.Value, ...]
"""Coordinates of an element or a vector."""
WIDTH = 4
"""Elements of a vector: a texel."""


class Binding(ABC):
    """A tensor in memory.

    Args:
        name: Symbol of its variable.
        writable: Whether the kernel writes it; it then does not read it.
    """

    def __init__(self, name: str, writable: bool = False) -> None:
        self.name = name
        self.writable = writable
        self._variable: ir.Value | None = None

    @property
    @abstractmethod
    def pointer_type(self) -> str:
        """Type of the variable."""

    def bind(self) -> None:
        """Takes the variable's address, at the insertion point."""
        symbol = ir.FlatSymbolRefAttr.get(self.name)
        type_ = ir.Type.parse(self.pointer_type)
        made = ir.Operation.create("spirv.mlir.addressof", results=[type_], attributes={"variable": symbol})
        self._variable = made.results[0]

    @property
    def variable(self) -> ir.Value:
        """Its address; bound."""
        assert self._variable is not None, "bind comes first"
        return self._variable


class _Buffer(Binding):
    element: str
    bytes_per_element: int

    @property
    def pointer_type(self) -> str:
        access = "" if self.writable else ", NonWritable"
        array = f"!spirv.rtarray<{self.element}, stride={self.bytes_per_element}>"
        return f"!spirv.ptr<!spirv.struct<({array} [0{access}])>, StorageBuffer>"

    def _pointer(self, at: ir.Value) -> ir.Value:
        zero = ir.Operation.create(
            "spirv.Constant", [integers.i32()], attributes={"value": ir.IntegerAttr.get(integers.i32(), 0)}
        ).results[0]
        type_ = ir.Type.parse(f"!spirv.ptr<{self.element}, StorageBuffer>")
        return ir.Operation.create("spirv.AccessChain", [type_], [self.variable, zero, at]).results[0]

    def _load(self, at: ir.Value) -> ir.Value:
        return ir.Operation.create("spirv.Load", [ir.Type.parse(self.element)], [self._pointer(at)]).results[0]

    def _store(self, at: ir.Value, value: ir.Value) -> None:
        ir.Operation.create("spirv.Store", operands=[self._pointer(at), value])


class Elements(_Buffer):
    """A buffer of f32, accessed element by element."""

    element = "f32"
    bytes_per_element = 4

    def load(self, at: ir.Value) -> ir.Value:
        """One element."""
        return self._load(at)

    def gather(self, places: Sequence[ir.Value]) -> ir.Value:
        """A vector of the elements at four places."""
        return vector.from_elements(ir.VectorType.get([WIDTH], ir.F32Type.get()), [self._load(at) for at in places])

    def store(self, at: ir.Value, value: ir.Value) -> None:
        """Writes one element."""
        self._store(at, value)


class Vectors(_Buffer):
    """A buffer of vectors of four f32."""

    element = "vector<4xf32>"
    bytes_per_element = 16

    def load(self, place: Place) -> ir.Value:
        """A vector."""
        return self._load(place[0])

    def store(self, place: Place, value: ir.Value) -> None:
        """Writes a vector."""
        self._store(place[0], value)
