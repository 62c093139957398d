"""What the SPIR-V kernels inside a module ask of a device.

The kernels are taken from the `.vmfb` itself, not from what the compiler was asked to make, so hand-written kernels
count and no flag can lie. A `.vmfb` holds each SPIR-V module as an array of words behind its length; a candidate is
accepted only if its instructions fill that length exactly.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

SPIRV_MAGIC = 0x07230203

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
# Built-in variables through which a kernel sees the subgroup: SubgroupSize .. SubgroupLocalInvocationId, the masks.
_SUBGROUP_BUILTINS = {36, 37, 38, 39, 40, 41, 4416, 4417, 4418, 4419, 4420}
_OP_EXTENSION, _OP_ENTRY_POINT, _OP_EXECUTION_MODE, _OP_CAPABILITY = 10, 15, 16, 17
_OP_TYPE_INT, _OP_TYPE_FLOAT, _OP_TYPE_VECTOR, _OP_TYPE_ARRAY, _OP_TYPE_STRUCT = 21, 22, 23, 28, 30
_OP_TYPE_POINTER, _OP_CONSTANT, _OP_VARIABLE, _OP_DECORATE = 32, 43, 59, 71
_OP_CONTROL_BARRIER, _OP_MEMORY_BARRIER = 224, 225
_GROUP_NON_UNIFORM = range(333, 367)
_GROUP_KHR = range(4421, 4433)
_COOPERATIVE_MATRIX = range(4456, 4461)
_STORAGE_WORKGROUP, _STORAGE_STORAGE_BUFFER, _STORAGE_PUSH_CONSTANT = 4, 12, 9
_SCOPE_SUBGROUP = 3
_EXECUTION_MODE_LOCAL_SIZE = 17
_DECORATION_BUILTIN = 11


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
        uses_subgroups: Whether results can depend on the subgroup size: a subgroup instruction, built-in or barrier.
    """

    version: tuple[int, int]
    capabilities: set[str] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)
    workgroup_size: tuple[int, int, int] = (1, 1, 1)
    shared_memory_bytes: int = 0
    storage_buffers: int = 0
    uses_subgroups: bool = False


def kernels_in(data: bytes) -> Iterator[KernelNeeds]:
    """The needs of every SPIR-V module inside a `.vmfb`."""
    magic = struct.pack("<I", SPIRV_MAGIC)
    at = data.find(magic)
    while at >= 0:
        end = at + 4
        if at >= 4 and at % 4 == 0:
            words = struct.unpack_from("<I", data, at - 4)[0]
            if words >= 5 and at + 4 * words <= len(data):
                module = struct.unpack_from(f"<{words}I", data, at)
                instructions = _instructions(module)
                if instructions is not None:
                    yield _needs(module, instructions)
                    end = at + 4 * words
        at = data.find(magic, end)


def parse_kernel(data: bytes) -> KernelNeeds:
    """The needs of one SPIR-V module.

    Raises:
        ValueError: The bytes are not a SPIR-V module.
    """
    module = struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
    instructions = _instructions(module) if module[:1] == (SPIRV_MAGIC,) else None
    if instructions is None:
        raise ValueError("not a SPIR-V module")
    return _needs(module, instructions)


Instruction = tuple[int, tuple[int, ...]]


def _instructions(module: tuple[int, ...]) -> list[Instruction] | None:
    """Opcode and operands of each instruction; None if they do not fill the module exactly."""
    if len(module) < 5 or module[4] != 0:
        return None
    instructions, at = [], 5
    while at < len(module):
        length, opcode = module[at] >> 16, module[at] & 0xFFFF
        if length == 0 or at + length > len(module):
            return None
        instructions.append((opcode, module[at + 1 : at + length]))
        at += length
    return instructions


def _needs(module: tuple[int, ...], instructions: list[Instruction]) -> KernelNeeds:
    needs = KernelNeeds(version=(module[1] >> 16 & 0xFF, module[1] >> 8 & 0xFF))
    sizes: dict[int, int] = {}
    constants: dict[int, int] = {}
    pointees: dict[int, int] = {}
    for opcode, operands in instructions:
        if opcode == _OP_CAPABILITY:
            needs.capabilities.add(_CAPABILITIES.get(operands[0], f"Capability{operands[0]}"))
        elif opcode == _OP_EXTENSION:
            needs.extensions.add(_text(operands))
        elif opcode == _OP_EXECUTION_MODE and operands[1] == _EXECUTION_MODE_LOCAL_SIZE:
            size = (operands[2], operands[3], operands[4])
            needs.workgroup_size = max(needs.workgroup_size, size, key=prod)
        elif opcode in (_OP_TYPE_INT, _OP_TYPE_FLOAT):
            sizes[operands[0]] = operands[1] // 8
        elif opcode == _OP_TYPE_VECTOR:
            sizes[operands[0]] = sizes.get(operands[1], 0) * operands[2]
        elif opcode == _OP_TYPE_ARRAY:
            sizes[operands[0]] = sizes.get(operands[1], 0) * constants.get(operands[2], 0)
        elif opcode == _OP_TYPE_STRUCT:
            sizes[operands[0]] = sum(sizes.get(member, 0) for member in operands[1:])
        elif opcode == _OP_TYPE_POINTER:
            pointees[operands[0]] = operands[2]
        elif opcode == _OP_CONSTANT:
            constants[operands[1]] = operands[2]
        elif opcode == _OP_VARIABLE and operands[2] == _STORAGE_WORKGROUP:
            needs.shared_memory_bytes += sizes.get(pointees.get(operands[0], -1), 0)
        elif opcode == _OP_VARIABLE and operands[2] == _STORAGE_STORAGE_BUFFER:
            needs.storage_buffers += 1
        elif _sees_subgroup(opcode, operands, constants):
            needs.uses_subgroups = True
    return needs


def _sees_subgroup(opcode: int, operands: tuple[int, ...], constants: dict[int, int]) -> bool:
    if any(opcode in family for family in (_GROUP_NON_UNIFORM, _GROUP_KHR, _COOPERATIVE_MATRIX)):
        return True
    if opcode == _OP_DECORATE:
        return operands[1] == _DECORATION_BUILTIN and operands[2] in _SUBGROUP_BUILTINS
    if opcode == _OP_CONTROL_BARRIER:
        # A barrier among the lanes of a subgroup orders more or fewer invocations with its size.
        return _SCOPE_SUBGROUP in (constants.get(operands[0]), constants.get(operands[1]))
    return opcode == _OP_MEMORY_BARRIER and constants.get(operands[0]) == _SCOPE_SUBGROUP


def _text(words: tuple[int, ...]) -> str:
    return struct.pack(f"<{len(words)}I", *words).split(b"\0", 1)[0].decode(errors="replace")
