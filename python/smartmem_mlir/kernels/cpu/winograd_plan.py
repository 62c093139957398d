"""A convolution by minimal filtering on a CPU: which are, and how many tiles a workgroup computes.

A tile is 4x4 outputs, computed from 6x6 inputs that are transformed once, in 36 products instead of 144. The products
are matrices of tiles by channels, one for each of the 36 places; what a workgroup computes goes through scratch memory
that stays in its cache. Filters are transformed as they are needed, some channels at a time: stored so, they would take
four times the memory, and as long to read. The
last tiles of a row or column are moved back so that they end with the image: no input beyond it is read, and outputs
that the tile before them has are not written again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.kernels.cpu.blocks import CACHE_BYTES, WORK_PER_BYTE, choose_blocks, price
from smartmem_mlir.kernels.cpu.lanes import cut_width
from smartmem_mlir.kernels.cpu.plan import SET_PERIOD_BYTES, CpuVectors
from smartmem_mlir.kernels.groups import reads_after_sum
from smartmem_mlir.kernels.winograd import MinimalFiltering, minimal_filtering
from smartmem_mlir.transforms.contraction_group import ContractionGroup, Read

OUTPUTS, TAPS = 4, 3
"""Of the filtering: F(2, 3) saves half as much, F(6, 3) loses two digits."""

LEAST_CHANNELS = 16
"""Of inputs and of outputs: with fewer the transforms cost what the products save."""

LEAST_TILES = 12
"""With fewer, filters take longer to read, or to transform, than the direct products."""

TRANSFORM_WORK = 200
"""What transforming a tile's 6x6 inputs, or products, of one channel costs, in multiply-adds."""

FILTER_WORK = 100
"""What transforming the 3x3 weights of one pair of channels costs, in multiply-adds."""

FILTERS_BYTES = 320 << 10
"""Of filters that are transformed at a time: they stay in the second-level cache beside the tiles' products."""

SCRATCH_BYTES = 48 << 20
"""Of all workgroups together."""


SLICE_BYTES = 9 << 20
"""Of one workgroup."""

HELD = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Groups of tiles whose transformed inputs may be held at a time."""


@dataclass(frozen=True)
class Places:
    """The dimensions of a convolution's iteration space by what they are.

    Args:
        images: Dimensions that neither an output's place nor its channel is in, outermost first.
        groups: Dimensions that choose inputs, weights and outputs alike, outermost first.
        y: Rows of the output.
        x: Columns of it.
        channel: Channels of the output.
        tap_y: Rows of the filter.
        tap_x: Columns of it.
        depth: Channels of the input.
    """

    images: tuple[int, ...]
    groups: tuple[int, ...]
    y: int
    x: int
    channel: int
    tap_y: int
    tap_x: int
    depth: int


@dataclass(frozen=True)
class WinogradPlan:
    """A contraction group that is computed by minimal filtering.

    Args:
        group: What to compute.
        places: Its dimensions.
        data: Address of the input over the iteration space.
        lanes: Elements of a vector.
        vectors: Vectors of a panel of output channels; where it is the only one of a group, the last may be narrower.
        tile_rows: Tiles whose products are accumulated in registers at a time.
        held: Such groups of tiles whose transformed inputs are held at a time.
        block_rows: Such groups of tiles that one workgroup computes.
        block_panels: Panels that one workgroup computes.
        depth_block: Channels of the input whose filters a workgroup transforms at a time.
    """

    group: ContractionGroup
    places: Places
    data: Expr
    lanes: int
    vectors: int
    tile_rows: int
    held: int
    block_rows: int
    block_panels: int
    depth_block: int

    @property
    def filtering(self) -> MinimalFiltering:
        """The matrices."""
        return minimal_filtering(OUTPUTS, TAPS)

    @property
    def extents(self) -> tuple[int, ...]:
        """Of the iteration space."""
        return self.group.root.extents

    @property
    def depth(self) -> int:
        """Channels of the input, of a group."""
        return self.extents[self.places.depth]

    @property
    def channels(self) -> int:
        """Channels of the output, of a group."""
        return self.extents[self.places.channel]

    @property
    def tiles(self) -> tuple[int, ...]:
        """Tiles of each image dimension (one each), along y and along x."""
        images = [self.extents[d] for d in self.places.images]
        return (*images, *(-(-self.extents[d] // OUTPUTS) for d in (self.places.y, self.places.x)))

    @property
    def num_tiles(self) -> int:
        """Tiles of all images."""
        return prod(self.tiles)

    @property
    def num_rows(self) -> int:
        """Groups of tiles; the last may have fewer tiles than the others."""
        return -(-self.num_tiles // self.tile_rows)

    @property
    def panel_width(self) -> int:
        """Output channels of a panel."""
        return min(self.vectors * self.lanes, cut_width(self.channels, self.lanes))

    @property
    def groups(self) -> tuple[int, ...]:
        """Extents of the dimensions that count groups."""
        return tuple(self.extents[d] for d in self.places.groups)

    @property
    def panels_per_group(self) -> int:
        """Panels of output channels that read the same inputs."""
        return -(-self.channels // self.panel_width)

    @property
    def num_panels(self) -> int:
        """Panels of output channels, of all groups."""
        return prod(self.groups) * self.panels_per_group

    @property
    def pitch(self) -> int:
        """Elements between the transformed inputs of two tiles: whole vectors, and not the period of a cache's sets."""
        pitch = cut_width(self.depth, self.lanes)
        return pitch if 4 * pitch % (SET_PERIOD_BYTES // 2) else pitch + max(self.lanes, 16)

    @property
    def held_tiles(self) -> int:
        """Tiles whose transformed inputs are held at a time."""
        return self.held * self.tile_rows

    @property
    def inputs_size(self) -> int:
        """Elements of scratch memory for transformed inputs."""
        return self.filtering.size**2 * self.held_tiles * self.pitch

    @property
    def products_size(self) -> int:
        """Elements of scratch memory for the products of a panel."""
        return self.filtering.size**2 * self.held_tiles * self.panel_width

    @property
    def filters_pitch(self) -> int:
        """Elements between the transformed filters of two places."""
        return self.depth_block * self.panel_width

    @property
    def scratch_size(self) -> int:
        """Elements of scratch memory of a workgroup: transformed inputs, then products, then filters."""
        return self.inputs_size + self.products_size + self.filtering.size**2 * self.filters_pitch

    @property
    def depth_blocks(self) -> int:
        """Parts that sums are computed in, between which they are in scratch memory."""
        return -(-self.depth // self.depth_block)

    @property
    def workgroups(self) -> tuple[int, int]:
        """Workgroups along panels and along groups of tiles."""
        return -(-self.num_panels // self.block_panels), -(-self.num_rows // self.block_rows)

    @property
    def work(self) -> int:
        """Multiply-adds of the whole kernel."""
        return self.num_tiles * self.filtering.size**2 * self.depth * self.channels * prod(self.groups)

    @property
    def cost(self) -> float:
        """As a launch of its own, see :func:`smartmem_mlir.kernels.cpu.blocks.price`."""
        return price(prod(self.workgroups), self.work_of(self.block_rows, self.block_panels))

    def work_of(self, rows: int, panels: int) -> float:
        """What a workgroup of so many groups of tiles and panels costs, in multiply-adds: reads included."""
        tiles, width = rows * self.tile_rows, panels * self.panel_width
        products = self.filtering.size**2 * self.depth
        transforms = TRANSFORM_WORK * tiles * (self.depth * -(-panels // self.panels_per_group) + width)
        passes = -(-rows // self.held)
        weights = (4 * self.filtering.taps**2 * WORK_PER_BYTE + FILTER_WORK) * self.depth * width * passes
        # Sums are stored and loaded between blocks.
        transforms += 2 * self.filtering.size**2 * tiles * width * (self.depth_blocks - 1)
        inputs = 0 if 4 * self.scratch_size <= CACHE_BYTES else 4 * products * tiles * panels
        return tiles * products * width + transforms + weights + inputs * WORK_PER_BYTE

    def in_blocks(self, beside: int) -> WinogradPlan:
        """The same plan with the cheapest blocks for a launch of so many kernels."""
        rows, panels = choose_blocks((self.num_rows, self.num_panels), self.work_of, beside)
        slice_bytes = 4 * self.scratch_size
        while -(-self.num_rows // rows) * -(-self.num_panels // panels) * slice_bytes > SCRATCH_BYTES:
            if rows >= self.num_rows:
                break
            rows = min(self.num_rows, 2 * rows)
        return replace(self, block_rows=rows, block_panels=panels)


def plan_winograd(group: ContractionGroup, cpu: CpuVectors) -> WinogradPlan | None:
    """Plans a convolution by minimal filtering.

    Args:
        group: What to compute; its right factor is known at compile time.
        cpu: Registers to fill.

    Returns:
        None when the group is no 3x3 convolution of stride 1 whose channels are adjacent in memory, or too small.
    """
    if group.lhs.view is not None or group.scale is not None:
        return None
    extents, space = group.root.extents, Box.of(group.root.extents)
    (data,) = simplify_exprs([group.lhs.reads[0].address], space)
    places = _places(group, data)
    if places is None or any(extents[d] < OUTPUTS for d in (places.y, places.x)):
        return None
    if min(extents[places.depth], extents[places.channel]) < LEAST_CHANNELS:
        return None
    after = [lane_address(read, places, space) for read in reads_after_sum(group)]
    output = lane_address(group.output, places, space)
    if output is None or output[1] != 1 or any(address is None for address in after):
        return None
    needed = -(-extents[places.channel] // cpu.lanes)
    vectors = min((v for v in (2, 4, 3, 1) if v <= needed), key=lambda v: needed % v != 0)
    plan = WinogradPlan(group, places, data, cpu.lanes, vectors, 1, 1, 1, 1, 1)
    if plan.num_tiles < LEAST_TILES:
        return None
    plan = replace(plan, tile_rows=_tile_rows(plan.num_tiles, vectors, cpu, bool(places.groups)))
    most = max(1, FILTERS_BYTES // (4 * plan.filtering.size**2 * plan.panel_width))
    plan = replace(plan, depth_block=-(-plan.depth // -(-plan.depth // most)))
    candidates = [replace(plan, held=held) for held in HELD if held <= plan.num_rows]
    candidates = [one for one in candidates if 4 * one.scratch_size <= SLICE_BYTES] or candidates[:1]
    plan = min(candidates, key=lambda one: one.work_of(one.num_rows, one.num_panels))
    return plan.in_blocks(1)


def lane_address(read: Read, places: Places, space: Box) -> tuple[Expr, int] | None:
    """An address as a part that no channel is in and the distance between channels, 0 or 1; None when it is no such."""
    (address,) = simplify_exprs([read.address], space)
    lanes = address.coefficient(Dim(places.channel))
    rest = address - Expr(0, ((Dim(places.channel), lanes),)) if lanes else address
    within = {*places.images, *places.groups, places.y, places.x}
    return (rest, lanes) if lanes in (0, 1) and rest.dims <= within else None


def _places(group: ContractionGroup, data: Expr) -> Places | None:
    """What each dimension is, read from the strides of the input; None for other contractions."""
    root = group.root
    if len(data.terms) != len(data.dims) or any(not isinstance(atom, Dim) for atom, _ in data.terms):
        return None
    stride = {d: data.coefficient(Dim(d)) for d in data.dims}
    in_rhs = frozenset().union(*(expr.dims for expr in group.rhs.access), ())
    outputs = [d for d, reduced in enumerate(root.reductions) if not reduced]
    taps = [d for d, reduced in enumerate(root.reductions) if reduced]
    channels = [d for d in outputs if d not in stride and root.extents[d] > 1]
    depths = [d for d in taps if stride.get(d) == 1 and root.extents[d] >= LEAST_CHANNELS]
    windows = [d for d in taps if d not in depths]
    if len(channels) != 1 or len(depths) != 1 or len(windows) != 2 or channels[0] not in in_rhs:
        return None
    if any(root.extents[tap] != TAPS or tap not in stride for tap in windows) or not set(taps) <= in_rhs:
        return None
    sliding = {tap: [d for d in outputs if d in stride and stride[d] == stride[tap]] for tap in windows}
    if any(len(found) != 1 for found in sliding.values()):
        return None
    tap_y, tap_x = sorted(windows, key=lambda tap: -stride[tap])
    (y,), (x,) = sliding[tap_y], sliding[tap_x]
    if x == y or y in in_rhs or x in in_rhs:
        return None
    others = [d for d in outputs if d not in (y, x, channels[0])]
    images, groups = (tuple(d for d in others if (d in in_rhs) == grouped) for grouped in (False, True))
    return Places(images, groups, y, x, channels[0], tap_y, tap_x, depths[0])


def _tile_rows(tiles: int, vectors: int, cpu: CpuVectors, grouped: bool) -> int:
    """Tiles whose sums fit into registers beside a panel's vectors, fewer where the last group would be emptier."""
    spare = vectors + (0 if cpu.registers >= 32 else 1)
    most = max(1, min((cpu.registers - spare) // vectors, 14, tiles))
    if not grouped:
        return min(range(max(1, most * 3 // 4), most + 1), key=lambda rows: (-(-tiles // rows) * rows, -rows))
    # A group of channels has few tiles, often fewer than two times the most; loading the panel costs as much as a tile.
    return min(range(1, most + 1), key=lambda rows: (-(-tiles // rows) * (rows + 1), -rows))
