"""A layout evaluated over a tensor: for every physical place the logical index that is there, or padding.

The text is that of the dialect (docs/dialect.md), with or without `#smartmem.layout<...>` around it. What the dialect
verifies is checked here, too, by evaluating the map on every element, so that no MLIR is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Final, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import OptionError
from smartmem_mlir.index_maps import Box, IndexMap, IndexMapError, evaluate, parse_map
from smartmem_mlir.index_maps.expr import Expr, Mod

Storage = Literal["buffer", "texel_buffer", "image2d", "image2d_array", "image3d"]
TEXEL_LANES: Final = 4
PADDING: Final = -1
MAX_PLACES: Final = 1 << 22
"""More physical places are no picture any more."""
_LEAST_RANK: Final[dict[str, int]] = {"buffer": 1, "texel_buffer": 2, "image2d": 3, "image2d_array": 4, "image3d": 4}
_LAYOUT = re.compile(r"(?P<map>.*\))\s*,\s*(?P<storage>\w+)\s*(?:,\s*pad\s*=\s*(?P<pad>[^,\s]+)\s*)?", re.DOTALL)


@dataclass(frozen=True)
class LayoutPicture:
    """The places of one tensor.

    Args:
        text: The layout, without `#smartmem.layout<...>`.
        storage: Where it lives.
        shape: Logical extents.
        physical_shape: Physical extents, the lane last for texels.
        pad: Value of padding.
        places: Linear logical index of each place, -1 for padding; axes are layer (or z), y, x, lane. A buffer has
            one layer and one lane, x is its last physical dimension and y all others, row-major.
    """

    text: str
    storage: Storage
    shape: tuple[int, ...]
    physical_shape: tuple[int, ...]
    pad: float
    places: npt.NDArray[np.int64]

    @property
    def padding(self) -> int:
        """Number of places that hold no element."""
        return int(np.count_nonzero(self.places == PADDING))

    def index(self, place: int) -> tuple[int, ...]:
        """The logical index whose linear index is `place`."""
        return tuple(int(i) for i in np.unravel_index(place, self.shape)) if self.shape else ()

    def place_of(self, index: tuple[int, ...]) -> tuple[int, int, int, int]:
        """Layer, y, x and lane of a logical index."""
        linear = int(np.ravel_multi_index(index, self.shape)) if self.shape else 0
        layer, y, x, lane = (int(axis[0]) for axis in np.nonzero(self.places == linear))
        return layer, y, x, lane


def parse_shape(text: str) -> tuple[int, ...]:
    """Extents written as `1x13x4x4`.

    Raises:
        OptionError: It is not a shape, or an extent is zero.
    """
    if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", text) or 0 in (shape := tuple(map(int, text.split("x")))):
        raise OptionError(f"'{text}' is not a shape", hint="write the extents as 1x13x4x4")
    return shape


def picture_of(layout: str, shape: tuple[int, ...]) -> LayoutPicture:
    """Evaluates a layout.

    Args:
        layout: Its text.
        shape: The tensor's extents.

    Raises:
        OptionError: The text is no layout, does not fit the shape, is not injective, or has too many places.
    """
    text = layout.strip()
    inner = re.fullmatch(r"#smartmem\.layout<(.*)>", text, re.DOTALL)
    text = " ".join((inner[1] if inner else text).split())
    match = _LAYOUT.fullmatch(text)
    if match is None:
        raise OptionError(f"not a layout: {text}", hint="write '(d0, d1) -> (d1, d0), buffer' or '..., pad = -inf'")
    storage = _parse_storage(match["storage"])
    try:
        index_map = parse_map(match["map"], Box.of(shape))
        coordinates = evaluate(index_map) if prod(shape) <= MAX_PLACES else None
    except IndexMapError as error:
        raise OptionError(f"the layout does not fit the shape: {error}") from error
    if coordinates is None:
        raise OptionError(f"a tensor of {prod(shape)} elements is too large for a picture", hint="draw a smaller one")
    physical = _physical_shape(index_map, coordinates)
    _check_rank(storage, physical)
    return LayoutPicture(
        text, storage, shape, physical, _parse_pad(match["pad"]), _places(storage, physical, coordinates, shape)
    )


def _parse_storage(text: str) -> Storage:
    for storage in get_args(Storage):
        if text == storage:
            return cast(Storage, storage)
    raise OptionError(f"unknown storage '{text}'", hint=f"one of {', '.join(get_args(Storage))}")


def _parse_pad(text: str | None) -> float:
    try:
        value = float(text or 0)
    except ValueError:
        value = float("nan")
    if value != value:
        raise OptionError(f"'{text}' is no padding value", hint="write a number, inf or -inf")
    return value


def _physical_shape(index_map: IndexMap, coordinates: list[npt.NDArray[np.int64]]) -> tuple[int, ...]:
    """The extent of a dimension written `e mod c` is c; of any other its largest coordinate plus one."""
    extents = []
    for position, (expr, values) in enumerate(zip(index_map.exprs, coordinates, strict=True)):
        if values.min() < 0:
            raise OptionError(f"physical coordinate {position} can be {values.min()}, which is negative")
        extents.append(_modulus(expr) or int(values.max()) + 1)
    if prod(extents) > MAX_PLACES:
        raise OptionError(f"{prod(extents)} places are too many for a picture", hint="draw a smaller tensor")
    return tuple(extents)


def _modulus(expr: Expr) -> int | None:
    atom = expr.single_atom
    return atom.value if isinstance(atom, Mod) else None


def _check_rank(storage: str, physical: tuple[int, ...]) -> None:
    if len(physical) < _LEAST_RANK[storage]:
        raise OptionError(
            f"storage {storage} needs at least {_LEAST_RANK[storage]} physical dimensions, got {len(physical)}"
        )
    if storage != "buffer" and physical[-1] != TEXEL_LANES:
        raise OptionError(f"storage {storage} needs a last physical dimension of extent 4, got {physical[-1]}")


def _places(
    storage: str, physical: tuple[int, ...], coordinates: list[npt.NDArray[np.int64]], shape: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    places = np.full(physical, PADDING, np.int64)
    flat = [np.broadcast_to(values, shape).ravel() for values in coordinates]
    order = np.arange(prod(shape), dtype=np.int64)
    places[tuple(flat)] = order
    clashes = np.nonzero(places[tuple(flat)] != order)[0]
    if len(clashes):
        first = int(clashes[0])
        second = int(places[tuple(axis[first] for axis in flat)])
        one, other = (tuple(int(i) for i in np.unravel_index(k, shape)) for k in (first, second))
        raise OptionError(f"the layout is not injective: elements {one} and {other} share a place")
    texels = physical if storage != "buffer" else (*physical, 1)
    depth = 1 if storage in ("image2d", "buffer", "texel_buffer") else prod(texels[:-3])
    width, lanes = texels[-2:]
    return places.reshape(depth, -1, width, lanes)
