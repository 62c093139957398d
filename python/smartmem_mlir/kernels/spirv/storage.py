"""How a kernel reads and writes a tensor: by elements or by vectors of four, in a buffer, a texel buffer or an image.

A kernel computes places and never asks which memory they lead to: a place has one coordinate in a buffer, counted in
elements or in vectors, two in an image (x in texels, y) and three in an array of images.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from mlir import ir
from mlir.dialects import vector

from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.placements import ImageShape, Placement
from smartmem_mlir.kernels.spirv.vectors import WIDTH, nearest_half, vector_type

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

    def pointer(self, at: ir.Value) -> ir.Value:
        """To what one access reads or writes, counted in such."""
        zero = ir.Operation.create(
            "spirv.Constant", [integers.i32()], attributes={"value": ir.IntegerAttr.get(integers.i32(), 0)}
        ).results[0]
        type_ = ir.Type.parse(f"!spirv.ptr<{self._stored}, StorageBuffer>")
        return ir.Operation.create("spirv.AccessChain", [type_], [self.variable, zero, at]).results[0]

    def _load(self, at: ir.Value) -> ir.Value:
        loaded = ir.Operation.create("spirv.Load", [ir.Type.parse(self._stored)], [self.pointer(at)]).results[0]
        return self._convert(loaded, "f32" if self.width == 1 else _VECTOR) if self.half else loaded

    def _store(self, at: ir.Value, value: ir.Value) -> None:
        stored = self._convert(value, self._stored) if self.half else value
        ir.Operation.create("spirv.Store", operands=[self.pointer(at), stored])

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


class Blocks(_Buffer):
    """A buffer of f16 that is read by blocks of eight, as they are: four words of 32 bits, called f32."""

    width = 4

    def __init__(self, name: str) -> None:
        super().__init__(name, writable=False, half=False)

    def load(self, at: ir.Value) -> ir.Value:
        """A block, by its number."""
        return self._load(at)


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
    """An image of four f32 a texel, or an array of images: read through the texture path, or written.

    Args:
        name: Symbol of its variable.
        writable: Whether the kernel writes it; it then does not read it.
        shape: Which coordinates an element has, and the texels along each.
        half: Whether texels are of f16; the texture path gives f32.
    """

    def __init__(self, name: str, writable: bool, shape: ImageShape, half: bool = False) -> None:
        super().__init__(name, writable, half)
        self.shape = shape

    @property
    def pointer_type(self) -> str:
        """Type of the variable."""
        return f"!spirv.ptr<{self._type}, UniformConstant>"

    @property
    def _type(self) -> str:
        arrayed = "Arrayed" if len(self.shape.extents) > 2 else "NonArrayed"
        return _texture("Dim2D", arrayed, self.writable, self.half)

    def metadata(self, number: int) -> str:
        """Its extents and format, in the image layer's words."""
        extents = " ".join(f"{axis}={extent}" for axis, extent in zip("whd", self.shape.extents, strict=False))
        return f"smartmem.image.v1 set=0 binding={number} {extents} fmt={_format(self.half)}"

    def load(self, place: Place) -> ir.Value:
        """A texel."""
        return _fetch(self._image(), self._coordinates(place))

    def store(self, place: Place, value: ir.Value) -> None:
        """Writes a texel."""
        value = nearest_half(value) if self.half else value
        ir.Operation.create("spirv.ImageWrite", operands=[self._image(), self._coordinates(place), value])

    def place(self, number: ir.Value) -> Place:
        """Its texel, row and layer."""
        *inner, _ = self.shape.extents
        coordinates = []
        for extent in inner:
            coordinates.append(integers.remainder(number, extent))
            number = integers.divide(number, extent)
        return *coordinates, number

    def _image(self) -> ir.Value:
        return ir.Operation.create("spirv.Load", [ir.Type.parse(self._type)], [self.variable]).results[0]

    @staticmethod
    def _coordinates(place: Place) -> ir.Value:
        type_ = ir.VectorType.get([len(place)], integers.i32())
        return ir.Operation.create("spirv.CompositeConstruct", [type_], list(place)).results[0]


class TexelBuffer(VectorMemory):
    """A buffer of vectors, read through the texture path, or written."""

    @property
    def pointer_type(self) -> str:
        """Type of the variable."""
        return f"!spirv.ptr<{self._type}, UniformConstant>"

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Those of its kind."""
        return ("ImageBuffer",) if self.writable else ("SampledBuffer",)

    @property
    def _type(self) -> str:
        return _texture("Buffer", "NonArrayed", self.writable, self.half)

    def metadata(self, number: int) -> str:
        """Its format, in the image layer's words."""
        return f"smartmem.image.v1 set=0 binding={number} fmt={_format(self.half)}"

    def load(self, place: Place) -> ir.Value:
        """A vector."""
        return _fetch(self._image(), place[0])

    def store(self, place: Place, value: ir.Value) -> None:
        """Writes a vector."""
        value = nearest_half(value) if self.half else value
        ir.Operation.create("spirv.ImageWrite", operands=[self._image(), place[0], value])

    def place(self, number: ir.Value) -> Place:
        """The number."""
        return (number,)

    def _image(self) -> ir.Value:
        return ir.Operation.create("spirv.Load", [ir.Type.parse(self._type)], [self.variable]).results[0]


def place_in(placement: Placement, name: str, writable: bool, half: bool) -> VectorMemory:
    """The binding of a tensor that is not in a buffer."""
    if isinstance(placement, ImageShape):
        return Image(name, writable, placement, half)
    return TexelBuffer(name, writable, half)


def _texture(dimensions: str, arrayed: str, writable: bool, half: bool) -> str:
    use = f"NoSampler, Rgba{16 if half else 32}f" if writable else "NeedSampler, Unknown"
    return f"!spirv.image<f32, {dimensions}, NoDepth, {arrayed}, SingleSampled, {use}>"


def _format(half: bool) -> str:
    return "rgba16f" if half else "rgba32f"


def _fetch(image: ir.Value, at: ir.Value) -> ir.Value:
    return ir.Operation.create("spirv.ImageFetch", [ir.Type.parse(_VECTOR)], [image, at]).results[0]
