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
_HEADER_WORDS = 5

OP_EXTENSION, OP_ENTRY_POINT, OP_EXECUTION_MODE, OP_CAPABILITY = 10, 15, 16, 17
OP_EXT_INST = 12
OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_TYPE_ARRAY, OP_TYPE_STRUCT = 21, 22, 23, 28, 30
OP_TYPE_POINTER, OP_CONSTANT, OP_VARIABLE, OP_LOAD, OP_DECORATE = 32, 43, 59, 61, 71
OP_ACCESS_CHAIN, OP_IN_BOUNDS_ACCESS_CHAIN = 65, 66
OP_VECTOR_SHUFFLE, OP_COMPOSITE_EXTRACT, OP_COMPOSITE_INSERT = 79, 81, 82
OP_CONTROL_BARRIER, OP_MEMORY_BARRIER = 224, 225
ATOMICS = frozenset({*range(227, 243), 5614, 5615, 6035})
SUBGROUP_OPERATIONS = frozenset({*range(333, 367), *range(4421, 4433), *range(4456, 4461)})

STORAGE_WORKGROUP, STORAGE_PUSH_CONSTANT, STORAGE_STORAGE_BUFFER = 4, 9, 12
SCOPE_SUBGROUP = 3
EXECUTION_MODE_LOCAL_SIZE = 17
DECORATION_BUILTIN = 11
BUILTIN_WORKGROUP_SIZE, BUILTIN_LOCAL_INVOCATION_ID = 25, 27
BUILTIN_GLOBAL_INVOCATION_ID, BUILTIN_LOCAL_INVOCATION_INDEX = 28, 29
# SubgroupSize .. SubgroupLocalInvocationId, then the masks.
SUBGROUP_BUILTINS = frozenset({36, 37, 38, 39, 40, 41, 4416, 4417, 4418, 4419, 4420})


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


def find_modules(data: bytes | bytearray) -> Iterator[SpirvModule]:
    """Every SPIR-V module inside a `.vmfb`."""
    magic = struct.pack("<I", MAGIC)
    at = data.find(magic)
    while at >= 0:
        end = at + 4
        if at >= 4 and at % 4 == 0:
            count = struct.unpack_from("<I", data, at - 4)[0]
            if count >= _HEADER_WORDS and at + 4 * count <= len(data):
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
    if len(words) < _HEADER_WORDS or words[4] != 0:
        return None
    instructions, at = [], _HEADER_WORDS
    while at < len(words):
        length = words[at] >> 16
        if length == 0 or at + length > len(words):
            return None
        instructions.append(Instruction(words[at] & 0xFFFF, words[at + 1 : at + length], at + 1))
        at += length
    version = (words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF)
    return SpirvModule(offset, version, tuple(instructions)) if instructions else None
