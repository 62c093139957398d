"""SPIR-V modules as words: found in a `.vmfb`, split into instructions.

The kernels are taken from the `.vmfb` itself, not from what the compiler was asked to make, so hand-written kernels
count and no flag can lie. A `.vmfb` holds each SPIR-V module as an array of words behind its length; a candidate is
accepted only if its instructions fill that length exactly.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

MAGIC = 0x07230203
HEADER_WORDS = 5
HEADER_BYTES = 4 * HEADER_WORDS

OP_NOP, OP_NAME, OP_MEMBER_NAME = 0, 5, 6
OP_EXTENSION, OP_EXT_INST_IMPORT, OP_ENTRY_POINT, OP_EXECUTION_MODE, OP_CAPABILITY = 10, 11, 15, 16, 17
OP_EXT_INST = 12
OP_TYPE_VOID, OP_TYPE_FORWARD_POINTER = 19, 39
OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR = 21, 22, 23
OP_TYPE_ARRAY, OP_TYPE_RUNTIME_ARRAY, OP_TYPE_STRUCT = 28, 29, 30
OP_TYPE_POINTER, OP_VARIABLE, OP_LOAD, OP_STORE, OP_DECORATE, OP_MEMBER_DECORATE = 32, 59, 61, 62, 71, 72
OP_CONSTANT_TRUE, OP_CONSTANT, OP_CONSTANT_NULL = 41, 43, 46
OP_FUNCTION = 54
OP_ACCESS_CHAIN, OP_IN_BOUNDS_ACCESS_CHAIN = 65, 66
OP_VECTOR_SHUFFLE, OP_COMPOSITE_EXTRACT, OP_COMPOSITE_INSERT = 79, 81, 82
OP_I_ADD, OP_I_SUB, OP_I_MUL, OP_U_DIV, OP_U_MOD = 128, 130, 132, 134, 137
OP_LOGICAL_OR, OP_LOGICAL_AND, OP_I_EQUAL, OP_I_NOT_EQUAL = 166, 167, 170, 171
OP_U_GREATER_THAN, OP_U_GREATER_THAN_EQUAL, OP_U_LESS_THAN, OP_U_LESS_THAN_EQUAL = 172, 174, 176, 178
OP_S_GREATER_THAN, OP_S_GREATER_THAN_EQUAL, OP_S_LESS_THAN, OP_S_LESS_THAN_EQUAL = 173, 175, 177, 179
OP_CONTROL_BARRIER, OP_MEMORY_BARRIER = 224, 225
OP_PHI, OP_LOOP_MERGE, OP_SELECTION_MERGE, OP_LABEL = 245, 246, 247, 248
OP_TYPE_COOPERATIVE_MATRIX, OP_COOPERATIVE_MATRIX_LOAD, OP_COOPERATIVE_MATRIX_STORE = 4456, 4457, 4458
OP_COOPERATIVE_MATRIX_MUL_ADD = 4459
OP_BRANCH, OP_BRANCH_CONDITIONAL, OP_RETURN, OP_UNREACHABLE = 249, 250, 253, 255
MERGES = frozenset({OP_LOOP_MERGE, OP_SELECTION_MERGE})
TERMINATORS = frozenset(range(249, 256))
ATOMICS = frozenset({*range(227, 243), 5614, 5615, 6035})
SUBGROUP_OPERATIONS = frozenset({*range(333, 367), *range(4421, 4433), *range(4456, 4461)})

STORAGE_WORKGROUP, STORAGE_PUSH_CONSTANT, STORAGE_STORAGE_BUFFER = 4, 9, 12
SCOPE_SUBGROUP = 3
EXECUTION_MODE_LOCAL_SIZE = 17
DECORATION_BUILTIN = 11
DECORATION_COHERENT = 23
BUILTIN_WORKGROUP_SIZE, BUILTIN_WORKGROUP_ID, BUILTIN_LOCAL_INVOCATION_ID = 25, 26, 27
BUILTIN_GLOBAL_INVOCATION_ID, BUILTIN_LOCAL_INVOCATION_INDEX = 28, 29
# NumWorkgroups, WorkgroupSize, WorkgroupId: the same for all threads of a workgroup.
WORKGROUP_BUILTINS = frozenset({24, BUILTIN_WORKGROUP_SIZE, BUILTIN_WORKGROUP_ID})
# SubgroupSize .. SubgroupLocalInvocationId, then the masks.
SUBGROUP_BUILTINS = frozenset({36, 37, 38, 39, 40, 41, 4416, 4417, 4418, 4419, 4420})

# Instructions without a result that have an id as first operand: stores, branches, names, decorations and so on.
_WITHOUT_RESULT = frozenset(
    {5, 6, 10, 11, 14, 15, 16, 17, 62, 63, 71, 72, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 224, 225, 228}
) | {OP_COOPERATIVE_MATRIX_STORE}
# Instructions whose operands are not all ids: how many ids there are, after result type and result where there is one,
# before literals follow. The rest of the instructions that matter here have ids only.
_LEADING_IDS = {
    OP_LOAD: 1,
    OP_STORE: 2,
    OP_COMPOSITE_EXTRACT: 1,
    OP_COMPOSITE_INSERT: 2,
    OP_VECTOR_SHUFFLE: 2,
    OP_FUNCTION: 0,
    OP_LOOP_MERGE: 2,
    OP_SELECTION_MERGE: 1,
    OP_BRANCH_CONDITIONAL: 3,
    OP_COOPERATIVE_MATRIX_LOAD: 3,
    OP_COOPERATIVE_MATRIX_STORE: 4,
    OP_COOPERATIVE_MATRIX_MUL_ADD: 3,
}


class Instruction(NamedTuple):
    """One instruction: its opcode, its operands, and the position of its first operand in the module's words."""

    opcode: int
    operands: tuple[int, ...]
    word: int


@dataclass(frozen=True)
class SpirvModule:
    """A SPIR-V module.

    Args:
        offset: Its first byte in the file it was found in.
        version: SPIR-V version as (major, minor).
        instructions: In order.
    """

    offset: int
    version: tuple[int, int]
    instructions: tuple[Instruction, ...]

    @cached_property
    def name(self) -> str:
        """Name of the first entry point."""
        operands = next(entry.operands for entry in self.instructions if entry.opcode == OP_ENTRY_POINT)
        return text(operands[2:])

    @cached_property
    def builtins(self) -> dict[int, int]:
        """Built-in -> the id that is decorated with it."""
        return {
            entry.operands[2]: entry.operands[0]
            for entry in self.instructions
            if entry.opcode == OP_DECORATE and entry.operands[1] == DECORATION_BUILTIN
        }

    @cached_property
    def workgroup_sizes(self) -> tuple[Instruction, ...]:
        """The `LocalSize` of each entry point; operands 2 to 4 are the extents."""
        return tuple(
            entry
            for entry in self.instructions
            if entry.opcode == OP_EXECUTION_MODE and entry.operands[1] == EXECUTION_MODE_LOCAL_SIZE
        )

    @cached_property
    def definitions(self) -> dict[int, Instruction]:
        """Id of a type, constant, variable or value -> the instruction that defines it."""
        return {
            entry.operands[position]: entry
            for entry in self.instructions
            for position in [0 if _is_type(entry.opcode) else 1]
            if entry.opcode not in _WITHOUT_RESULT and len(entry.operands) > position
        }

    @cached_property
    def thread_components(self) -> dict[int, int]:
        """Id -> component of `LocalInvocationId` that it holds."""
        loads = self.thread_vectors
        return {
            entry.operands[1]: entry.operands[3]
            for entry in self.instructions
            if entry.opcode == OP_COMPOSITE_EXTRACT and entry.operands[2] in loads
        }

    @cached_property
    def thread_vectors(self) -> frozenset[int]:
        """Ids that hold `LocalInvocationId` as a whole."""
        variable = self.builtins.get(BUILTIN_LOCAL_INVOCATION_ID)
        return frozenset(
            entry.operands[1]
            for entry in self.instructions
            if entry.opcode == OP_LOAD and entry.operands[2] == variable
        )


def id_operands(entry: Instruction) -> tuple[int, ...]:
    """The ids that an instruction computes its result from, or acts on."""
    if entry.opcode in (OP_CONSTANT, OP_VARIABLE, OP_DECORATE, OP_MEMBER_DECORATE):
        return ()
    if entry.opcode < 43 or _is_type(entry.opcode):
        # Types, names and modes: literals and types only, apart from OpExtInst.
        return entry.operands[4:] if entry.opcode == OP_EXT_INST else ()
    operands = entry.operands if entry.opcode in _WITHOUT_RESULT else entry.operands[2:]
    return operands[: _LEADING_IDS.get(entry.opcode, len(operands))]


def _is_type(opcode: int) -> bool:
    return OP_TYPE_VOID <= opcode < OP_TYPE_FORWARD_POINTER or opcode == OP_TYPE_COOPERATIVE_MATRIX


def find_modules(data: bytes | bytearray) -> Iterator[SpirvModule]:
    """Every SPIR-V module inside a `.vmfb`."""
    magic = struct.pack("<I", MAGIC)
    at = data.find(magic)
    while at >= 0:
        end = at + 4
        if at >= 4 and at % 4 == 0:
            count = struct.unpack_from("<I", data, at - 4)[0]
            if count >= HEADER_WORDS and at + 4 * count <= len(data):
                module = _parse(struct.unpack_from(f"<{count}I", data, at), at)
                if module is not None:
                    yield module
                    end = at + 4 * count
        at = data.find(magic, end)


def parse_module(data: bytes) -> SpirvModule:
    """A SPIR-V binary.

    Raises:
        ValueError: The bytes are not a SPIR-V module.
    """
    words = struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
    module = _parse(words, 0) if words[:1] == (MAGIC,) and len(data) % 4 == 0 else None
    if module is None:
        raise ValueError("not a SPIR-V module")
    return module


def text(words: tuple[int, ...]) -> str:
    """A string literal: NUL-terminated bytes, four to a word."""
    return struct.pack(f"<{len(words)}I", *words).split(b"\0", 1)[0].decode(errors="replace")


def _parse(words: tuple[int, ...], offset: int) -> SpirvModule | None:
    """The module, or None if its instructions do not fill the words exactly."""
    if len(words) < HEADER_WORDS or words[4] != 0:
        return None
    instructions, at = [], HEADER_WORDS
    while at < len(words):
        length = words[at] >> 16
        if length == 0 or at + length > len(words):
            return None
        instructions.append(Instruction(words[at] & 0xFFFF, words[at + 1 : at + length], at + 1))
        at += length
    version = (words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF)
    return SpirvModule(offset, version, tuple(instructions)) if instructions else None
