"""lower-groups-to-vulkan: groups become shaders of ours inside IREE's executables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from mlir import ir

from smartmem_mlir.kernels.executable import dispatch
from smartmem_mlir.kernels.fates import tell_views
from smartmem_mlir.kernels.groups import (
    CONSTANTS,
    GROUP,
    dissolve,
    is_f16,
    read_attention,
    without_operands,
)
from smartmem_mlir.kernels.spirv.assign import Images, ImageShape, assign_images
from smartmem_mlir.kernels.spirv.executable import DEFAULT_TARGET, add_shader
from smartmem_mlir.kernels.spirv.kernel import Kernel, contraction_kernel, pack, row_kernel
from smartmem_mlir.kernels.spirv.plan import GpuLimits, ShaderPlan
from smartmem_mlir.kernels.spirv.shader import Interface, assemble
from smartmem_mlir.kernels.spirv.storage import Binding, Elements, Image, Vectors
from smartmem_mlir.kernels.spirv.to_image import to_image
from smartmem_mlir.transforms.convert_to_iree import ONCE
from smartmem_mlir.transforms.form_groups import form_contraction_groups, form_row_groups
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.symbols import symbols, unique
from smartmem_mlir.transforms.view_ops import shape_of

ATTRIBUTE = "smartmem.vulkan_device"
"""Module attribute, a dictionary: `invocations`, `shared_bytes`, `workgroups` (x, y), `lanes`, `spirv_version`,
`executable_target` (IREE's attribute as text), `image_extent`, `prefers_images` and `half` (buffers may hold f16)."""


@dataclass(frozen=True)
class Device:
    """What shaders are made for.

    Args:
        limits: Of the device.
        spirv_version: That shaders may be in.
        executable_target: IREE's attribute as text.
        image_extent: Texels that an image may have along an axis.
        prefers_images: Whether its images are read faster than its buffers.
    """

    limits: GpuLimits
    spirv_version: str
    executable_target: str
    image_extent: int = 4096
    prefers_images: bool = False


DEFAULT_DEVICE = Device(GpuLimits(128, 16384, (65535, 65535), 1024), "1.3", DEFAULT_TARGET)
"""The Android baseline profile of 2022, on a GPU of middle size."""


def lower_groups(root: ir.Operation, device: Device, storage: str = "auto") -> int:
    """Turns every group that a generator takes into an executable and a dispatch; the others are dissolved.

    Args:
        root: The module.
        device: What shaders are made for.
        storage: Whether tensors that can be images become images; "auto" as the device prefers.

    Returns:
        How many groups became kernels.
    """
    _dissolve_attention(root)
    kernels: list[Kernel] = []
    for op in [op for op in block_operations(root) if op.name == GROUP]:
        kernel = contraction_kernel(op, device.limits) or row_kernel(op, device.limits)
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
        storage: Whether tensors become images.
        names: Names of the shaders so far, by what they compute.
    """

    root: ir.Operation
    device: Device
    kernels: list[Kernel]
    storage: str
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
        images = Images({}, {})
        if self.storage == "image" or (self.storage == "auto" and self.device.prefers_images):
            shapes = [
                shape_of(value) if value is not None and _is_stored(kernel) else None
                for kernel, value in zip(self.kernels, packed, strict=True)
            ]
            images = assign_images(self.kernels, shapes, self.device.image_extent)
        image_of = {self.kernels[number].op.results[0]: image for number, image in images.results.items()}
        for number, kernel in enumerate(self.kernels):
            tell_views(kernel.op)
            with ir.InsertionPoint(kernel.op), kernel.op.location:
                self._lower(kernel, packed[number], images.weights.get(number), image_of)
        return len(self.kernels)

    def _lower(
        self,
        kernel: Kernel,
        packed: ir.Value | None,
        weight_image: ImageShape | None,
        image_of: dict[ir.Value, ImageShape],
    ) -> None:
        op, result = kernel.op, kernel.op.results[0]
        operands, shapes = [], []
        for argument in kernel.arguments:
            operand = kernel.operand(argument)
            image = image_of.get(operand)
            if packed is not None and argument == kernel.packed:
                operand, image = packed, weight_image
                if weight_image is not None:
                    operand = self._weight_image(packed, weight_image)
            operands.append(operand)
            shapes.append(image)
        shapes.append(image_of.get(result))
        key = f"{_constants(op)} {shapes} {without_operands(op)}"
        if key not in self.names:
            self.names[key] = unique(kernel.stem, self._taken)
            self._add(self.names[key], kernel, shapes)
        made = dispatch(self.names[key], operands, result.type)
        if result in image_of:
            image_of[made] = image_of[result]
        result.replace_all_uses_with(made)
        op.erase()

    def _add(self, name: str, kernel: Kernel, shapes: list[ImageShape | None]) -> None:
        plan = kernel.plan
        bindings: dict[ir.Value, Binding] = {}
        for number, value in enumerate([*kernel.arguments, kernel.output]):
            image, writable = shapes[number], value == kernel.output
            symbol = f"tensor_{number}"
            half = is_f16(value.type)
            if image is not None:
                bindings[value] = Image(symbol, writable, image.split, image.extents, half)
            else:
                kind = Vectors if kernel.is_whole(value) else Elements
                bindings[value] = kind(symbol, writable, half)
        interface = Interface(
            name, tuple(bindings.values()), plan.invocations, plan.shared_vectors, self.device.spirv_version
        )
        binary = assemble(interface, kernel.emit(bindings))
        self._add_shader(name, binary, len(kernel.arguments), plan.workgroups)

    def _weight_image(self, packed: ir.Value, image: ImageShape) -> ir.Value:
        """A weight in an image, copied when the module is loaded."""
        width, height = image.extents
        half = is_f16(packed.type)
        key = f"to_image_{width}x{height}{'_f16' if half else ''}"
        if key not in self.names:
            self.names[key] = unique(key, self._taken)
            binary, workgroups = to_image(self.names[key], image.extents, half, self.device.spirv_version)
            self._add_shader(self.names[key], binary, 1, workgroups)
        made = dispatch(self.names[key], [packed], packed.type)
        made.owner.attributes[ONCE] = ir.UnitAttr.get()
        return made

    def _add_shader(self, name: str, binary: bytes, reads: int, workgroups: tuple[int, int]) -> None:
        add_shader(self._module, name, binary, reads, workgroups, self.device.executable_target)


def _is_stored(kernel: Kernel) -> bool:
    """Whether a kernel's weight is in the parameter archive.

    A constant in the module's text is not put into an image: IREE would evaluate the copy when it compiles, on the CPU.
    """
    weight = kernel.packed
    return weight is not None and kernel.operand(weight).owner.operation.name == "smartmem.parameter"


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
        "auto", "memory of tensors that only shaders touch; auto: as the device prefers"
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
        name: ir.IntegerAttr(attribute[name]).value for name in ("invocations", "shared_bytes", "lanes")
    }
    x, y = ir.DenseI64ArrayAttr(attribute["workgroups"])
    return Device(
        GpuLimits(
            numbers["invocations"],
            numbers["shared_bytes"],
            (x, y),
            numbers["lanes"],
            ir.BoolAttr(attribute["half"]).value,
        ),
        ir.StringAttr(attribute["spirv_version"]).value,
        ir.StringAttr(attribute["executable_target"]).value,
        ir.IntegerAttr(attribute["image_extent"]).value,
        ir.BoolAttr(attribute["prefers_images"]).value,
    )
