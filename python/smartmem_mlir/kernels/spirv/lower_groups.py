"""lower-groups-to-vulkan: groups become shaders of ours inside IREE's executables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from mlir import ir

from smartmem_mlir.kernels.executable import dispatch
from smartmem_mlir.kernels.fates import tell_views
from smartmem_mlir.kernels.groups import (
    GROUP,
    dissolve,
    is_f16,
    read_attention,
    without_operands,
)
from smartmem_mlir.kernels.spirv.assign import Choice, MemoryRates, Storage, assign_memories
from smartmem_mlir.kernels.spirv.cooperative_plan import MatrixPlan
from smartmem_mlir.kernels.spirv.executable import DEFAULT_TARGET, add_shader
from smartmem_mlir.kernels.spirv.kernel import Kernel, contraction_kernel, row_kernel
from smartmem_mlir.kernels.spirv.limits import CooperativeMatrices, GpuLimits
from smartmem_mlir.kernels.spirv.metadata import COPY_STEM
from smartmem_mlir.kernels.spirv.packing import pack
from smartmem_mlir.kernels.spirv.placements import ImageShape, MemoryLimits, Placement
from smartmem_mlir.kernels.spirv.plan import ShaderPlan
from smartmem_mlir.kernels.spirv.shader import Interface, assemble
from smartmem_mlir.kernels.spirv.storage import Binding, Blocks, Elements, Vectors, place_in
from smartmem_mlir.kernels.spirv.sums import sum_kernel
from smartmem_mlir.kernels.spirv.to_image import to_image
from smartmem_mlir.transforms.convert_to_iree import ONCE
from smartmem_mlir.transforms.evidence import current_evidence
from smartmem_mlir.transforms.form_groups import form_contraction_groups, form_row_groups
from smartmem_mlir.transforms.ir_walk import CONSTANTS, block_operations
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.symbols import symbols, unique

ATTRIBUTE = "smartmem.vulkan_device"
"""Module attribute, a dictionary: `invocations`, `shared_bytes`, `workgroups` (x, y), `lanes`, `registers`,
`spirv_version`, `executable_target` (IREE's attribute as text), `half` (buffers may hold f16), `image_extent`,
`image_layers`, `texel_elements`, where it has some `matrices` (`rows`, `lanes`, `terms`, `subgroup`, and `emulated`
where threads compute their products), and where they are known `memory_rates` (buffer, image, texel_buffer in GB/s,
dispatch_ns, and perhaps window_image)."""


@dataclass(frozen=True)
class Device:
    """What shaders are made for.

    Args:
        limits: Of the device.
        spirv_version: That shaders may be in.
        executable_target: IREE's attribute as text.
        memory: What its images can hold.
        rates: How fast its memories are; None where nobody has measured.
    """

    limits: GpuLimits
    spirv_version: str
    executable_target: str
    memory: MemoryLimits = field(default_factory=MemoryLimits)
    rates: MemoryRates | None = None


DEFAULT_DEVICE = Device(GpuLimits(128, 16384, (65535, 65535), 1024), "1.3", DEFAULT_TARGET)
"""The Android baseline profile of 2022, on a GPU of middle size."""


_MAKERS = (contraction_kernel, row_kernel, sum_kernel)
"""What makes a kernel of a group, or None."""


def lower_groups(root: ir.Operation, device: Device, storage: Storage = "auto") -> int:
    """Turns every group that a generator takes into an executable and a dispatch; the others are dissolved.

    Args:
        root: The module.
        device: What shaders are made for.
        storage: Which memory tensors get; "auto" for what costs least.

    Returns:
        How many groups became kernels.
    """
    _dissolve_attention(root)
    # Matrices are loaded from buffers.
    limits = replace(device.limits, matrices=None) if storage == "image" else device.limits
    kernels: list[Kernel] = []
    for op in [op for op in block_operations(root) if op.name == GROUP]:
        kernel = next(filter(None, (make(op, limits) for make in _MAKERS)), None)
        if kernel is None:
            dissolve(op)
        else:
            kernels.append(kernel)
    return _Lowering(root, device, kernels, storage).run()


def _dissolve_attention(root: ir.Operation) -> None:
    """Its contractions and its softmax get groups of their own."""
    found = [op for op in block_operations(root) if op.name == GROUP and read_attention(op) is not None]
    for op in found:
        dissolve(op)
    if found:
        form_contraction_groups(root)
        form_row_groups(root, borders=True)


@dataclass
class _Lowering:
    """Groups while they become dispatches.

    Args:
        root: The module.
        device: What shaders are made for.
        kernels: Its groups as shaders, in program order.
        storage: Which memory tensors get.
        names: Names of the shaders so far, by what they compute.
    """

    root: ir.Operation
    device: Device
    kernels: list[Kernel]
    storage: Storage
    names: dict[str, str] = field(default_factory=dict)

    def run(self) -> int:
        """Lowers all; returns how many there are."""
        self._module = self.root.regions[0].blocks[0]
        self._taken = symbols(self._module)
        packed: list[ir.Value | None] = []
        for kernel in self.kernels:
            with ir.InsertionPoint(kernel.op), kernel.op.location:
                weight = kernel.packed
                is_packed = weight is not None and isinstance(kernel.plan, ShaderPlan)
                packed.append(pack(kernel.plan, kernel.operand(weight)) if is_packed else None)  # type: ignore[arg-type]
        memories = assign_memories(self.kernels, packed, self.device.memory, self.device.rates, self.storage)
        evidence = current_evidence()
        if evidence is not None:
            evidence.memories += memories.told
        self._memories = memories
        self._copies: dict[tuple[ir.Value, ir.Block], ir.Value] = {}
        # Erased together: a new result must not get the address by which an erased one is known.
        self._replaced: list[ir.Operation] = []
        for number, kernel in enumerate(self.kernels):
            tell_views(kernel.op)
            with ir.InsertionPoint(kernel.op), kernel.op.location:
                self._lower(kernel, packed[number])
        for op in reversed(self._replaced):
            op.erase()
        return len(self.kernels)

    def _lower(self, kernel: Kernel, packed: ir.Value | None) -> None:
        op, result = kernel.op, kernel.op.results[0]
        operands, places = [], []
        for argument in kernel.arguments:
            operand, place = self._given(kernel, argument, packed)
            operands.append(operand)
            places.append(place)
        places.append(self._placement(self._memories.tensors.get(result)))
        key = f"{_constants(op)} {places} {without_operands(op)}"
        if key not in self.names:
            self.names[key] = unique(kernel.stem, self._taken)
            self._add(self.names[key], kernel, places)
        made = dispatch(self.names[key], operands, result.type)
        if result in self._memories.tensors:
            self._memories.tensors[made] = self._memories.tensors[result]
        result.replace_all_uses_with(made)
        self._replaced.append(op)

    def _given(self, kernel: Kernel, argument: ir.Value, packed: ir.Value | None) -> tuple[ir.Value, Placement | None]:
        """What a kernel reads as one of its arguments, and where that is."""
        operand = kernel.operand(argument)
        if packed is not None and argument == kernel.packed:
            place = self._placement(self._memories.weights.get(kernel.op.results[0]))
            return self._copy(packed, place, once=True) if isinstance(place, ImageShape) else packed, place
        choice = self._memories.tensors.get(operand)
        if choice is None or not choice.copied:
            return operand, self._placement(choice)
        assert isinstance(choice.placement, ImageShape), "the other memories need no copy"
        key = operand, kernel.op.block
        if key not in self._copies:
            self._copies[key] = self._copy(operand, choice.placement)
        return self._copies[key], choice.placement

    @staticmethod
    def _placement(choice: Choice | None) -> Placement | None:
        """Where the tensor itself is."""
        return None if choice is None or choice.copied else choice.placement

    def _add(self, name: str, kernel: Kernel, places: list[Placement | None]) -> None:
        plan = kernel.plan
        bindings: dict[ir.Value, Binding] = {}
        for number, value in enumerate([*kernel.arguments, kernel.output]):
            place, writable = places[number], value == kernel.output
            symbol = f"tensor_{number}"
            if place is not None:
                bindings[value] = place_in(place, symbol, writable, is_f16(value.type))
            else:
                bindings[value] = _buffer(kernel, value, symbol, writable)
        interface = Interface(
            name,
            tuple(bindings.values()),
            plan.invocations,
            plan.shared_vectors,
            self.device.spirv_version,
            isinstance(plan, MatrixPlan) and not plan.matrices.emulated,
        )
        binary = assemble(interface, kernel.emit(bindings))
        self._add_shader(name, binary, len(kernel.arguments), plan.workgroups)

    def _copy(self, value: ir.Value, image: ImageShape, once: bool = False) -> ir.Value:
        """A tensor in an image, copied at the insertion point, or when the module is loaded."""
        half = is_f16(value.type)
        key = f"{COPY_STEM}{'x'.join(map(str, image.extents))}{'_f16' if half else ''}"
        if key not in self.names:
            self.names[key] = unique(key, self._taken)
            binary, workgroups = to_image(self.names[key], image, half, self.device.spirv_version)
            self._add_shader(self.names[key], binary, 1, workgroups)
        made = dispatch(self.names[key], [value], value.type)
        if once:
            made.owner.attributes[ONCE] = ir.UnitAttr.get()
        return made

    def _add_shader(self, name: str, binary: bytes, reads: int, workgroups: tuple[int, int]) -> None:
        add_shader(self._module, name, binary, reads, workgroups, self.device.executable_target)


def _buffer(kernel: Kernel, value: ir.Value, symbol: str, writable: bool) -> Binding:
    if kernel.is_copied(value):
        return Blocks(symbol)
    kind = Vectors if kernel.is_whole(value) else Elements
    return kind(symbol, writable, is_f16(value.type))


def _constants(op: ir.Operation) -> str:
    """Which operands are known at compile time: kernels may want those in an order of their own."""
    owners = [operand.owner for operand in op.operands]
    known = [not isinstance(owner, ir.Block) and owner.operation.name in CONSTANTS for owner in owners]
    return "".join("c" if is_known else "v" for is_known in known)


@dataclass(frozen=True)
class LowerGroupsToVulkan(Pass):
    """Generate a shader for each group: a contraction and what follows it, or a computation over rows.

    Threads accumulate rows by vectors of four lanes in registers, and divide long sums of small results among them.
    Parameters are stored in whole vectors, as a view that is computed when the model is compiled. Groups that no
    generator takes are dissolved, and IREE makes their kernels.
    """

    argument: ClassVar[str] = "smartmem-lower-groups-to-vulkan"
    dependent_dialects: ClassVar[tuple[str, ...]] = (
        *("smartmem", "affine", "arith", "func", "math", "scf", "spirv", "vector"),
    )
    example: ClassVar[str] = "matmul.mlir"

    storage: Literal["buffer", "image", "auto"] = option(
        "auto", "memory of tensors; image: images wherever there can be some; auto: what costs least"
    )

    def run(self, op: ir.Operation) -> None:
        """Transforms the module."""
        lower_groups(op, read_device(op), self.storage)


def read_device(op: ir.Operation) -> Device:
    """The device that a module is compiled for, from its attribute."""
    if ATTRIBUTE not in op.attributes:
        return DEFAULT_DEVICE
    attribute = ir.DictAttr(op.attributes[ATTRIBUTE])
    numbers: Mapping[str, int] = {
        name: ir.IntegerAttr(attribute[name]).value for name in ("invocations", "shared_bytes", "lanes", "registers")
    }
    x, y = ir.DenseI64ArrayAttr(attribute["workgroups"])
    return Device(
        GpuLimits(
            numbers["invocations"],
            numbers["shared_bytes"],
            (x, y),
            numbers["lanes"],
            ir.BoolAttr(attribute["half"]).value,
            numbers["registers"],
            _read_matrices(attribute),
        ),
        ir.StringAttr(attribute["spirv_version"]).value,
        ir.StringAttr(attribute["executable_target"]).value,
        MemoryLimits(
            ir.IntegerAttr(attribute["image_extent"]).value,
            ir.IntegerAttr(attribute["image_layers"]).value,
            ir.IntegerAttr(attribute["texel_elements"]).value,
        ),
        _read_rates(attribute),
    )


def _read_matrices(attribute: ir.DictAttr) -> CooperativeMatrices | None:
    if "matrices" not in attribute:
        return None
    matrices = ir.DictAttr(attribute["matrices"])
    extents = {name: ir.IntegerAttr(matrices[name]).value for name in ("rows", "lanes", "terms", "subgroup")}
    return CooperativeMatrices(**extents, emulated=ir.BoolAttr(matrices["emulated"]).value)


def _read_rates(attribute: ir.DictAttr) -> MemoryRates | None:
    if "memory_rates" not in attribute:
        return None
    rates = ir.DictAttr(attribute["memory_rates"])
    return MemoryRates(**{named.name: ir.FloatAttr(named.attr).value for named in rates})
