"""What a target is: the limits kernels must respect and the way to ask IREE for code within them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from typing_extensions import Self

from smartmem_mlir.targets.documents import Document


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        raise ValueError(f"{value} is not a power of two")
    return value


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Text = Annotated[str, Field(min_length=1, max_length=500)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=80)]
SubgroupSize = Annotated[int, Field(ge=1, le=128), AfterValidator(_power_of_two)]
WorkgroupExtent = Annotated[int, Field(ge=1, le=65536)]
GridExtent = Annotated[int, Field(ge=1, le=(1 << 31) - 1)]
Flag = Annotated[str, Field(pattern=r"^--iree-[a-z0-9-]+(=[^\s]*)?$", max_length=200)]


class CpuTarget(Document):
    """Code for a CPU through LLVM.

    Args:
        triple: LLVM target triple, or "host".
        cpu: LLVM CPU name, or "host" for the features of the machine that compiles.
        features: LLVM features to add or remove, such as "+dotprod".
    """

    triple: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=80)]
    cpu: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=40)]
    features: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[+-][a-z0-9.-]+$", max_length=40)], ...], BeforeValidator(_as_tuple)
    ] = ()

    @model_validator(mode="after")
    def _host_is_whole(self) -> Self:
        if self.triple != "host" and self.cpu == "host":
            raise ValueError("cpu 'host' needs triple 'host': the features of this machine mean nothing on another")
        return self


Rate = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


class LayoutRates(Document):
    """How fast one core moves and computes, as far as the choice of layouts asks; see `layouts.rates.Rates`.

    `benchmarks/layout_rates.py` measures them. What is left out has the default there.

    Args:
        cache_line_bytes: Bytes that one access brings in.
        stream_bytes_per_ns: Contiguous reads and writes.
        strided_element_ns: An element whose neighbour in the loop is not its neighbour in memory.
        kernel_launch_ns: Starting one more kernel.
        kernel_macs_per_ns: Multiply-adds of a generated kernel.
        unpacked_kernel_macs_per_ns: The same where vectors come from a computed tensor.
        vector_product_macs_per_ns: The same where each vector of them loads one.
        fallback_matmul_macs_per_ns: Multiply-adds of IREE's products of matrices.
        fallback_window_macs_per_ns: Multiply-adds of IREE's convolutions.
    """

    cache_line_bytes: Annotated[int, Field(ge=16, le=1024), AfterValidator(_power_of_two)] | None = None
    stream_bytes_per_ns: Rate | None = None
    strided_element_ns: Rate | None = None
    kernel_launch_ns: Rate | None = None
    kernel_macs_per_ns: Rate | None = None
    unpacked_kernel_macs_per_ns: Rate | None = None
    vector_product_macs_per_ns: Rate | None = None
    fallback_matmul_macs_per_ns: Rate | None = None
    fallback_window_macs_per_ns: Rate | None = None


class Roofline(Document):
    """What a GPU can do at most, for predictions of time; see `bench.roofline`.

    Args:
        buffer_bytes_per_ns: Bytes that threads read of buffers and write to them.
        image_bytes_per_ns: Bytes that threads read of images, through the texture cache, and write to them.
        f16_operations_per_ns: Multiply-adds in f16.
        f32_operations_per_ns: Multiply-adds in f32.
        kernel_launch_ns: From the end of one kernel to the start of the next that depends on it.
    """

    buffer_bytes_per_ns: Rate
    image_bytes_per_ns: Rate
    f16_operations_per_ns: Rate
    f32_operations_per_ns: Rate
    kernel_launch_ns: Rate


class VulkanMemoryRates(Document):
    """How fast kernels access a device's memories, for `--storage auto`.

    `benchmarks/device/reads.py` measures them.

    Args:
        buffer: GB/s that kernels read of storage buffers. Writes to every memory are priced like these.
        image: GB/s that they read of images.
        window_image: GB/s that convolutions, but for those of single pixels or channels, read of images of f16; as
            images if left out. The texture path converts what threads would convert.
        texel_buffer: GB/s that they read of texel buffers; as storage buffers if left out.
        dispatch_ns: What one more kernel costs, with the barrier in front of it: the copy of a tensor into an image. By
            default what a chain of small kernels takes on an NVIDIA H200.
    """

    buffer: Rate
    image: Rate
    window_image: Rate | None = None
    texel_buffer: Rate | None = None
    dispatch_ns: Rate = 3000.0


class CooperativeMatrixShape(Document):
    """Matrices of f16 whose product a subgroup adds to one of f32 (`VK_KHR_cooperative_matrix`).

    Args:
        rows: Rows of the left factor (M of Vulkan's properties).
        lanes: Columns of the right factor (N).
        terms: Columns of the left factor (K).
    """

    # Kernels store sums by vectors of four and copy factors by blocks of eight.
    rows: Annotated[int, Field(ge=8, le=64, multiple_of=8)]
    lanes: Annotated[int, Field(ge=8, le=64, multiple_of=8)]
    terms: Annotated[int, Field(ge=8, le=64, multiple_of=8)]


class VulkanTarget(Document):
    """Code for a Vulkan device through SPIR-V: what kernels may use, and the limits they must stay within.

    Args:
        spirv_version: SPIR-V version that kernels may require. 1.3 is what Vulkan 1.1 guarantees.
        capabilities: SPIR-V capabilities beyond those that follow from `compute` and `storage`.
        extensions: SPIR-V extensions that kernels may declare.
        compute: Scalar types of arithmetic.
        storage: Widths of elements in buffers.
        subgroup_operations: Subgroup operations that kernels may use; empty means that kernels must be correct for
            every subgroup size.
        subgroup_sizes: Sizes IREE may assume: exactly one with `subgroup_operations`, because IREE does not record
            which it used; without them they only steer workgroup shapes.
        dot_products: Integer dot-product instructions.
        max_workgroup_size: Largest workgroup along x, y, z.
        max_workgroup_invocations: Largest workgroup as a product.
        max_shared_memory_bytes: Workgroup memory.
        max_workgroup_count: Largest grid along x, y, z.
        max_image_extent: Largest two-dimensional image along each axis, in texels.
        max_image_layers: Layers of an array of images. The default is what Vulkan guarantees.
        max_texel_buffer_elements: Texels of a texel buffer. The default is what Vulkan guarantees.
        memory_rates: How fast its memories are; without them `--storage auto` keeps tensors in buffers.
        lanes: f32 multiply-adds that the device starts in one cycle, on all its cores: how far kernels divide their
            work.
        registers: 32-bit registers of one core. Loops over sums are unrolled as far as they go; by default not at all.
        cooperative_matrices: Small matrices that it multiplies, for contractions of f16; none by default. Needs exactly
            one size in `subgroup_sizes`.
        roofline: What it can do at most, for predictions; kernels do not depend on it.
    """

    spirv_version: Literal["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"]
    capabilities: Annotated[tuple[Identifier, ...], BeforeValidator(_as_tuple)] = ("Shader",)
    extensions: Annotated[tuple[Identifier, ...], BeforeValidator(_as_tuple)] = ()
    compute: Annotated[
        tuple[Literal["fp64", "fp32", "fp16", "int64", "int32", "int16", "int8"], ...],
        BeforeValidator(_as_tuple),
        Field(min_length=1),
    ]
    storage: Annotated[tuple[Literal["b64", "b32", "b16", "b8"], ...], BeforeValidator(_as_tuple), Field(min_length=1)]
    subgroup_operations: Annotated[tuple[Literal["shuffle", "arithmetic"], ...], BeforeValidator(_as_tuple)] = ()
    subgroup_sizes: Annotated[tuple[SubgroupSize, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
    dot_products: Annotated[tuple[Literal["dp4xi8toi32"], ...], BeforeValidator(_as_tuple)] = ()
    max_workgroup_size: Annotated[tuple[WorkgroupExtent, WorkgroupExtent, WorkgroupExtent], BeforeValidator(_as_tuple)]
    max_workgroup_invocations: WorkgroupExtent
    max_shared_memory_bytes: Annotated[int, Field(ge=1024, le=1 << 20)]
    max_workgroup_count: Annotated[tuple[GridExtent, GridExtent, GridExtent], BeforeValidator(_as_tuple)]
    max_image_extent: Annotated[int, Field(ge=4, le=1 << 16)] = 4096
    max_image_layers: Annotated[int, Field(ge=1, le=1 << 16)] = 256
    max_texel_buffer_elements: Annotated[int, Field(ge=1024, le=(1 << 32) - 1)] = 65536
    memory_rates: VulkanMemoryRates | None = None
    lanes: Annotated[int, Field(ge=4, le=1 << 20)] = 1024
    registers: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    cooperative_matrices: CooperativeMatrixShape | None = None
    roofline: Roofline | None = None

    @model_validator(mode="after")
    def _sizes_are_distinct(self) -> Self:
        if len(set(self.subgroup_sizes)) != len(self.subgroup_sizes):
            raise ValueError("subgroup_sizes lists a size twice")
        if self.subgroup_operations and len(self.subgroup_sizes) != 1:
            raise ValueError("subgroup_operations needs exactly one size in subgroup_sizes")
        if self.cooperative_matrices and len(self.subgroup_sizes) != 1:
            raise ValueError("cooperative_matrices needs exactly one size in subgroup_sizes")
        return self


class TargetDescription(Document):
    """A device or a family of devices to compile for.

    Args:
        name: Its name on the command line.
        summary: One sentence for `smartmem doctor` and error messages.
        backend: IREE's executable format.
        opt_level: IREE's global optimisation level.
        pipeline: Name of the pass pipeline that suits it.
        iree_flags: Further flags of iree-compile, each starting with `--iree-`.
        rates: What the choice of layouts reckons with; by default a server's.
        cpu: For backend "llvm-cpu".
        vulkan: For backend "vulkan-spirv".
    """

    name: Name
    summary: Text
    backend: Literal["llvm-cpu", "vulkan-spirv"]
    opt_level: Literal["O0", "O1", "O2", "O3"]
    pipeline: Name = "default"
    iree_flags: Annotated[tuple[Flag, ...], BeforeValidator(_as_tuple)] = ()
    rates: LayoutRates | None = None
    cpu: CpuTarget | None = None
    vulkan: VulkanTarget | None = None

    @model_validator(mode="after")
    def _section_fits_backend(self) -> Self:
        wanted, other = ("cpu", "vulkan") if self.backend == "llvm-cpu" else ("vulkan", "cpu")
        if getattr(self, wanted) is None:
            raise ValueError(f"backend '{self.backend}' needs the section '{wanted}'")
        if getattr(self, other) is not None:
            raise ValueError(f"backend '{self.backend}' does not take the section '{other}'")
        return self
