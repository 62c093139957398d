"""The tensors that generated shaders access: who writes and who reads each, and what keeps it out of images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from mlir import ir

from smartmem_mlir.kernels.groups import is_f16
from smartmem_mlir.kernels.spirv.kernel import Kernel
from smartmem_mlir.kernels.spirv.placements import (
    ImageShape,
    MemoryLimits,
    TexelShape,
    image_shapes,
    texel_shape,
)
from smartmem_mlir.kernels.spirv.traffic import element_bytes
from smartmem_mlir.layouts.memory import Reason
from smartmem_mlir.transforms.convert_to_iree import PARAMETER_OP
from smartmem_mlir.transforms.ir_walk import CONSTANTS, users
from smartmem_mlir.transforms.locations import node_names
from smartmem_mlir.transforms.view_ops import is_view, shape_of


@dataclass
class Tensor:
    """A tensor.

    Args:
        value: Outside the groups; of a packed weight, as packed.
        writer: The shader that writes it, with what it calls it; None where something else does.
        readers: Shaders that read it, with what they call it.
        others: Operations that read it and are no shaders.
        packed: Whether it is a weight in its reader's own order.
    """

    value: ir.Value
    writer: tuple[Kernel, ir.Value] | None = None
    readers: list[tuple[Kernel, ir.Value]] = field(default_factory=list)
    others: list[ir.Operation] = field(default_factory=list)
    packed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return shape_of(self.value)

    @property
    def bytes(self) -> int:
        """Its size."""
        return prod(self.shape) * element_bytes(self.value)

    @property
    def is_half(self) -> bool:
        """Whether its elements are f16."""
        return is_f16(self.value.type)

    @property
    def is_constant(self) -> bool:
        """Whether it is known when the model is compiled."""
        source = _source(self.value)
        return source is not None and source.name in CONSTANTS

    @property
    def is_stored(self) -> bool:
        """Whether it is in the parameter archive.

        A constant in the module's text is not put into an image: IREE would evaluate the copy when it compiles, on the
        CPU.
        """
        source = _source(self.value)
        return source is not None and source.name == PARAMETER_OP

    @property
    def accesses(self) -> list[tuple[Kernel, ir.Value]]:
        """Of all shaders."""
        return [*([] if self.writer is None else [self.writer]), *self.readers]

    @property
    def bytes_read(self) -> int:
        """What shaders fetch of it."""
        return sum(kernel.bytes(value) for kernel, value in self.readers)

    @property
    def bytes_read_by_windows(self) -> int:
        """What convolutions fetch of it."""
        return sum(kernel.bytes(value) for kernel, value in self.readers if kernel.sums_windows)

    @property
    def bytes_written(self) -> int:
        """What a shader writes of it."""
        return 0 if self.writer is None else self.writer[0].bytes(self.writer[1])

    def image(self, limits: MemoryLimits, copied: bool = False) -> ImageShape | None:
        """The first image within the limits that fits every access; those of a copy are its readers'."""
        accesses = self.readers if copied else self.accesses
        if not accesses:
            return None
        fitting = (i for i in image_shapes(self.shape, limits) if all(kernel.fits(v, i) for kernel, v in accesses))
        return next(fitting, None)

    def texels(self, limits: MemoryLimits) -> TexelShape | None:
        """It as a texel buffer, None where the limits or an access do not allow that."""
        whole = all(kernel.is_whole(value) for kernel, value in self.accesses)
        return texel_shape(self.shape, limits) if whole else None

    def obstacle(self, limits: MemoryLimits) -> tuple[Reason, str]:
        """Why it is no two-dimensional image that shaders hand to each other, and who is meant; empty if it can be."""
        return next((found for found in self._obstacles(limits) if found is not None), ("", ""))

    def _obstacles(self, limits: MemoryLimits) -> Iterator[tuple[Reason, str] | None]:
        """Each test in turn, the one that no choice of limits or shaders would change first."""
        yield self._written_elsewhere()
        yield self._read_elsewhere()
        for kernel, value in self.accesses:
            if not kernel.is_whole(value):
                yield "by-elements", kernel.stem
        found = self.image(limits)
        if found is None or found.is_folded:
            yield "extent", ""

    def _written_elsewhere(self) -> tuple[Reason, str] | None:
        if self.writer is not None or (self.packed and self.is_stored):
            return None
        source = _source(self.value)
        if source is None:
            return "program-input", ""
        return ("constant", "") if self.is_constant else ("written-by-iree", source.name)

    def _read_elsewhere(self) -> tuple[Reason, str] | None:
        if any(map(_returns, self.others)):
            return "program-output", ""
        return ("read-by-iree", self.others[0].name) if self.others else None

    @property
    def name(self) -> str:
        """Of what computes it, in the source model; of an argument or a weight, its own."""
        source = _source(self.value)
        if source is None:
            return f"argument {ir.BlockArgument(self.value).arg_number}"
        if source.name == PARAMETER_OP:
            return str(ir.StringAttr(source.attributes["key"]).value)
        return ", ".join(node_names(source.location)) or source.name


def find_tensors(kernels: Sequence[Kernel], packed: Sequence[ir.Value | None]) -> list[Tensor]:
    """Every tensor that shaders access, in program order.

    Args:
        kernels: All shaders of a module, in program order.
        packed: Each one's packed weight, None where it has none.
    """
    found: dict[ir.Value, Tensor] = {}
    weights: list[Tensor] = []

    def tensor(value: ir.Value) -> Tensor:
        return found.setdefault(value, Tensor(value))

    for kernel, weight in zip(kernels, packed, strict=True):
        for argument in kernel.arguments:
            if weight is not None and argument == kernel.packed:
                weights.append(Tensor(weight, None, [(kernel, argument)], packed=True))
            else:
                tensor(kernel.operand(argument)).readers.append((kernel, argument))
        tensor(kernel.op.results[0]).writer = (kernel, kernel.output)
    shaders = {kernel.op.results[0] for kernel in kernels}
    for each in found.values():
        each.others = [user for user in users(each.value) if not (len(user.results) and user.results[0] in shaders)]
    return [*found.values(), *weights]


def _returns(op: ir.Operation) -> bool:
    """Whether an operation gives what it reads to the caller, perhaps through views."""
    return op.name == "func.return" or (is_view(op) and any(map(_returns, users(op.results[0]))))


def _source(value: ir.Value) -> ir.Operation | None:
    """The operation that a value comes from, behind the packing of a weight; None for an argument of a block."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    op: ir.Operation = owner.operation
    if is_view(op) and len(op.operands) == 1:
        weight = _source(op.operands[0])
        return weight if weight is not None and weight.name in CONSTANTS else op
    return op
