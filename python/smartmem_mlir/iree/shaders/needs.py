"""What a SPIR-V kernel asks of a device."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from smartmem_mlir.iree.shaders import module as spv
from smartmem_mlir.iree.shaders.barriers import races
from smartmem_mlir.iree.shaders.module import SpirvModule

_CAPABILITIES = {
    0: "Matrix", 1: "Shader", 4: "Addresses", 9: "Float16", 10: "Float64", 11: "Int64", 12: "Int64Atomics",
    22: "Int16", 39: "Int8", 43: "Image1D", 44: "Sampled1D", 46: "SampledBuffer", 47: "ImageBuffer",
    49: "StorageImageExtendedFormats", 55: "StorageImageReadWithoutFormat", 56: "StorageImageWriteWithoutFormat",
    61: "GroupNonUniform", 62: "GroupNonUniformVote", 63: "GroupNonUniformArithmetic", 64: "GroupNonUniformBallot",
    65: "GroupNonUniformShuffle", 66: "GroupNonUniformShuffleRelative", 67: "GroupNonUniformClustered",
    68: "GroupNonUniformQuad", 4433: "StorageBuffer16BitAccess", 4434: "UniformAndStorageBuffer16BitAccess",
    4435: "StoragePushConstant16", 4448: "StorageBuffer8BitAccess", 4449: "UniformAndStorageBuffer8BitAccess",
    4450: "StoragePushConstant8", 4441: "VariablePointersStorageBuffer", 4442: "VariablePointers",
    5345: "VulkanMemoryModel", 5346: "VulkanMemoryModelDeviceScope", 5347: "PhysicalStorageBufferAddresses",
    5116: "BFloat16TypeKHR", 6016: "DotProductInputAll", 6017: "DotProductInput4x8Bit",
    6018: "DotProductInput4x8BitPacked", 6019: "DotProduct", 6022: "CooperativeMatrixKHR",
    6033: "AtomicFloat32AddEXT",
}  # fmt: skip

_FACTORS = (0, 1)
"""Uses of a cooperative matrix: the left and the right factor. The other is the sum."""


@dataclass
class KernelNeeds:
    """What one SPIR-V module needs.

    Attributes:
        version: SPIR-V version as (major, minor).
        capabilities: Declared capabilities by name; unknown ones as `Capability<number>`.
        extensions: Declared extensions.
        workgroup_size: Largest workgroup of its entry points.
        shared_memory_bytes: Workgroup memory, all variables together.
        storage_buffers: Number of storage buffer variables.
        assumes_subgroup_size: Whether results can depend on the subgroup size: by a subgroup instruction, built-in or
            barrier, or because threads share memory without a barrier and so rely on running in lockstep.
        matrices: Cooperative matrices that it multiplies, as rows, columns and terms (M, N, K) of each product.
    """

    version: tuple[int, int]
    capabilities: set[str] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)
    workgroup_size: tuple[int, int, int] = (1, 1, 1)
    shared_memory_bytes: int = 0
    storage_buffers: int = 0
    assumes_subgroup_size: bool = False
    matrices: set[tuple[int, int, int]] = field(default_factory=set)


def needs_of(module: SpirvModule) -> KernelNeeds:
    """Read the needs of a kernel from its instructions."""
    needs = KernelNeeds(version=module.version)
    sizes: dict[int, int] = {}
    constants: dict[int, int] = {}
    pointees: dict[int, int] = {}
    factors: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for opcode, operands, _ in module.instructions:
        if opcode == spv.OP_CAPABILITY:
            needs.capabilities.add(_CAPABILITIES.get(operands[0], f"Capability{operands[0]}"))
        elif opcode == spv.OP_EXTENSION:
            needs.extensions.add(spv.text(operands))
        elif opcode in (spv.OP_TYPE_INT, spv.OP_TYPE_FLOAT):
            sizes[operands[0]] = operands[1] // 8
        elif opcode == spv.OP_TYPE_VECTOR:
            sizes[operands[0]] = sizes.get(operands[1], 0) * operands[2]
        elif opcode == spv.OP_TYPE_ARRAY:
            sizes[operands[0]] = sizes.get(operands[1], 0) * constants.get(operands[2], 0)
        elif opcode == spv.OP_TYPE_STRUCT:
            sizes[operands[0]] = sum(sizes.get(member, 0) for member in operands[1:])
        elif opcode == spv.OP_TYPE_POINTER:
            pointees[operands[0]] = operands[2]
        elif opcode == spv.OP_TYPE_COOPERATIVE_MATRIX:
            _, _, _, rows, columns, use = operands
            if constants[use] in _FACTORS:
                factors[constants[use]].append((constants[rows], constants[columns]))
        elif opcode == spv.OP_CONSTANT:
            constants[operands[1]] = operands[2]
        elif opcode == spv.OP_VARIABLE and operands[2] == spv.STORAGE_WORKGROUP:
            needs.shared_memory_bytes += sizes.get(pointees.get(operands[0], -1), 0)
        elif opcode == spv.OP_VARIABLE and operands[2] == spv.STORAGE_STORAGE_BUFFER:
            needs.storage_buffers += 1
        elif _sees_subgroup(opcode, operands, constants):
            needs.assumes_subgroup_size = True
    needs.matrices = {
        (rows, columns, terms) for rows, terms in factors[0] for other, columns in factors[1] if other == terms
    }
    for mode in module.workgroup_sizes:
        x, y, z = mode.operands[2:5]
        needs.workgroup_size = max(needs.workgroup_size, (x, y, z), key=prod)
        needs.assumes_subgroup_size |= races(module, (x, y, z))
    return needs


def _sees_subgroup(opcode: int, operands: tuple[int, ...], constants: dict[int, int]) -> bool:
    if opcode in spv.SUBGROUP_OPERATIONS:
        return True
    if opcode == spv.OP_DECORATE:
        return operands[1] == spv.DECORATION_BUILTIN and operands[2] in spv.SUBGROUP_BUILTINS
    if opcode == spv.OP_CONTROL_BARRIER:
        # A barrier among the lanes of a subgroup orders more or fewer invocations with its size.
        return spv.SCOPE_SUBGROUP in (constants.get(operands[0]), constants.get(operands[1]))
    return opcode == spv.OP_MEMORY_BARRIER and constants.get(operands[0]) == spv.SCOPE_SUBGROUP
