"""How a kernel reads and writes a tensor: by elements or by vectors of four, in a buffer or in an image.

A kernel computes places and never asks which memory they lead to: a place has one coordinate in a buffer, counted in
elements or in vectors, and two in an image (x in texels, y), which its addresses give without dividing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from mlir import ir
from mlir.dialects import vector

from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.vectors import WIDTH, vector_type

Place = tuple[ir.Value, ...]
"""Coordinates of an element or a vector."""
_VECTOR = "vector<4xf32>"


class Binding(ABC):
    """A tensor in memory.

    Args:
        name: Symbol of its variable.
        writable: Whether the kernel writes it; it then does not read it.
        half: Whether its elements are f16; the kernel computes with f32 all the same.
    """

    def __init__(self, name: str, writable: bool = False, half: bool = False) -> None:
        self.name = name
        self.writable = writable
        self.half = half
        self._variable: ir.Value | None = None

    @property
    @abstractmethod
    def pointer_type(self) -> str:
        """Type of the variable."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """SPIR-V capabilities that a kernel with it needs."""
        return ()

    def metadata(self, number: int) -> str | None:
        """What the image layer must know of the binding of this number, None if nothing."""
        return None

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
    width: int
    """Elements that one access reads or writes."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        return ("StorageBuffer16BitAccess",) if self.half else ()

    @property
    def _stored(self) -> str:
        element = "f16" if self.half else "f32"
        return element if self.width == 1 else f"vector<{self.width}x{element}>"

    @property
    def pointer_type(self) -> str:
        access = "" if self.writable else ", NonWritable"
        array = f"!spirv.rtarray<{self._stored}, stride={self.width * (2 if self.half else 4)}>"
        return f"!spirv.ptr<!spirv.struct<({array} [0{access}])>, StorageBuffer>"

    def _pointer(self, at: ir.Value) -> ir.Value:
        zero = ir.Operation.create(
            "spirv.Constant", [integers.i32()], attributes={"value": ir.IntegerAttr.get(integers.i32(), 0)}
        ).results[0]
        type_ = ir.Type.parse(f"!spirv.ptr<{self._stored}, StorageBuffer>")
        return ir.Operation.create("spirv.AccessChain", [type_], [self.variable, zero, at]).results[0]

    def _load(self, at: ir.Value) -> ir.Value:
        loaded = ir.Operation.create("spirv.Load", [ir.Type.parse(self._stored)], [self._pointer(at)]).results[0]
        return self._convert(loaded, "f32" if self.width == 1 else _VECTOR) if self.half else loaded

    def _store(self, at: ir.Value, value: ir.Value) -> None:
        stored = self._convert(value, self._stored) if self.half else value
        ir.Operation.create("spirv.Store", operands=[self._pointer(at), stored])

    @staticmethod
    def _convert(value: ir.Value, type_: str) -> ir.Value:
        return ir.Operation.create("spirv.FConvert", [ir.Type.parse(type_)], [value]).results[0]


class Elements(_Buffer):
    """A buffer, accessed element by element."""

    width = 1

    def load(self, at: ir.Value) -> ir.Value:
        """One element."""
        return self._load(at)

    def gather(self, places: Sequence[ir.Value]) -> ir.Value:
        """A vector of the elements at four places."""
        return vector.from_elements(vector_type(), [self._load(at) for at in places])

    def store(self, at: ir.Value, value: ir.Value) -> None:
        """Writes one element."""
        self._store(at, value)


class VectorMemory(Binding):
    """Memory that is accessed by whole vectors of four f32."""

    @abstractmethod
    def load(self, place: Place) -> ir.Value:
        """A vector."""

    @abstractmethod
    def store(self, place: Place, value: ir.Value) -> None:
        """Writes a vector."""

    @abstractmethod
    def place(self, number: ir.Value) -> Place:
        """Where the vector of this number, in row-major order, is."""


class Vectors(_Buffer, VectorMemory):
    """A buffer of vectors."""

    width = WIDTH

    def load(self, place: Place) -> ir.Value:
        """A vector."""
        return self._load(place[0])

    def store(self, place: Place, value: ir.Value) -> None:
        """Writes a vector."""
        self._store(place[0], value)

    def place(self, number: ir.Value) -> Place:
        """The number."""
        return (number,)


class Image(VectorMemory):
    """A two-dimensional image of four f32 a texel: read through the texture path, or written.

    Args:
        name: Symbol of its variable.
        writable: Whether the kernel writes it; it then does not read it.
        split: The first of the tensor's dimensions that run along x; those before it run along y.
        extents: Texels along x and y.
        half: Whether texels are of f16; the texture path gives f32.
    """

    def __init__(self, name: str, writable: bool, split: int, extents: tuple[int, int], half: bool = False) -> None:
        super().__init__(name, writable, half)
        self.split = split
        self.extents = extents

    @property
    def _type(self) -> str:
        use = f"NoSampler, Rgba{16 if self.half else 32}f" if self.writable else "NeedSampler, Unknown"
        return f"!spirv.image<f32, Dim2D, NoDepth, NonArrayed, SingleSampled, {use}>"

    @property
    def pointer_type(self) -> str:
        """Type of the variable."""
        return f"!spirv.ptr<{self._type}, UniformConstant>"

    def metadata(self, number: int) -> str:
        """Its extents and format, in the image layer's words."""
        width, height = self.extents
        return f"smartmem.image.v1 set=0 binding={number} w={width} h={height} fmt=rgba{16 if self.half else 32}f"

    def load(self, place: Place) -> ir.Value:
        """A texel."""
        at = self._coordinates(place)
        return ir.Operation.create("spirv.ImageFetch", [ir.Type.parse(_VECTOR)], [self._image(), at]).results[0]

    def store(self, place: Place, value: ir.Value) -> None:
        """Writes a texel."""
        ir.Operation.create("spirv.ImageWrite", operands=[self._image(), self._coordinates(place), value])

    def place(self, number: ir.Value) -> Place:
        """Its row and what is left."""
        return integers.remainder(number, self.extents[0]), integers.divide(number, self.extents[0])

    def _image(self) -> ir.Value:
        return ir.Operation.create("spirv.Load", [ir.Type.parse(self._type)], [self.variable]).results[0]

    @staticmethod
    def _coordinates(place: Place) -> ir.Value:
        pair = ir.VectorType.get([2], integers.i32())
        return ir.Operation.create("spirv.CompositeConstruct", [pair], list(place)).results[0]
