"""What one launch of a shader does: arithmetic, and bytes that its threads ask memory for.

Counted on the SPIR-V itself, along its control flow: a block runs as often as the loops around it say, in every thread
of every workgroup. Where ways part both are counted, and a loop that begins at a thread's number is taken to begin at
0 and to run a whole number of steps, so that all figures are upper bounds; for shaders of ours they are exact but for
threads beyond the last row or column, and for both ways at a border.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.iree.shaders import module as spv
from smartmem_mlir.iree.shaders.flow import Flow, flow_of
from smartmem_mlir.iree.shaders.module import Instruction, SpirvModule

_MODULE_PROCESSED = 330
_FMA = 50
"""Of the extended instructions in GLSL.std.450."""
_F_ADD, _F_SUB, _F_MUL, _F_DIV = 129, 131, 133, 136
_IMAGE_READS = frozenset({95, 98})
_IMAGE_WRITE = 99
_LESS_THAN = frozenset({spv.OP_S_LESS_THAN, spv.OP_U_LESS_THAN})
_DECORATION_BINDING = 33
_IMAGE = re.compile(r"^smartmem\.image\.v1 set=0 binding=(\d+) .*fmt=rgba(16|32)")


@dataclass(frozen=True)
class ShaderWork:
    """Of one launch, all threads together.

    Args:
        operations: Multiply-adds, additions, multiplications and divisions of single lanes, by their width in bits.
        buffer_bytes: What loads and stores in buffers move, caches or not.
        image_bytes: What fetches and writes of texels move.
    """

    operations: dict[int, int]
    buffer_bytes: int
    image_bytes: int


def count_work(module: SpirvModule, workgroups: Sequence[int]) -> ShaderWork:
    """The work of one launch.

    Args:
        module: The shader.
        workgroups: How many are launched along each axis.

    Raises:
        CompilerError: It has branches or loops whose trips are not visible.
    """
    flow = flow_of(module)
    if flow is None:
        raise CompilerError(f"the shader '{module.name}' has control flow that is not followed")
    threads = prod(module.workgroup_sizes[0].operands[2:5]) * prod(workgroups)
    return _Counting(flow).run(threads)


class _Counting:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._module = flow.module
        self._bindings = {
            entry.operands[0]: entry.operands[2]
            for entry in self._module.instructions
            if entry.opcode == spv.OP_DECORATE and entry.operands[1] == _DECORATION_BINDING
        }
        self._texel_bytes = dict(self._images())

    def _images(self) -> Iterator[tuple[int, int]]:
        """Binding and bytes of a texel of each image."""
        for entry in self._module.instructions:
            if entry.opcode == _MODULE_PROCESSED and (found := _IMAGE.match(spv.text(entry.operands))):
                yield int(found[1]), 4 * int(found[2]) // 8

    def run(self, threads: int) -> ShaderWork:
        operations: Counter[int] = Counter()
        buffer_bytes = image_bytes = 0
        runs = self._runs()
        for label, block in self._flow.blocks.items():
            for entry in self._module.instructions[block.start : block.last]:
                times = runs[label] * threads
                if self._is_arithmetic(entry):
                    lanes, width = self._lanes(entry.operands[0])
                    operations[width] += lanes * times
                else:
                    buffer_bytes += self._buffer_bytes(entry) * times
                    image_bytes += self._image_bytes(entry) * times
        return ShaderWork(dict(operations), buffer_bytes, image_bytes)

    def _is_arithmetic(self, entry: Instruction) -> bool:
        if entry.opcode == spv.OP_EXT_INST:
            return entry.operands[3] == _FMA
        return entry.opcode in (_F_ADD, _F_SUB, _F_MUL, _F_DIV)

    def _buffer_bytes(self, entry: Instruction) -> int:
        if entry.opcode == spv.OP_LOAD:
            pointer, type_ = entry.operands[2], entry.operands[0]
        elif entry.opcode == spv.OP_STORE:
            pointer = entry.operands[0]
            type_ = self._module.definitions[entry.operands[1]].operands[0]
        else:
            return 0
        chain = self._module.definitions[pointer]
        if chain.opcode not in (spv.OP_ACCESS_CHAIN, spv.OP_IN_BOUNDS_ACCESS_CHAIN):
            return 0
        variable = self._module.definitions[chain.operands[2]]
        if variable.opcode != spv.OP_VARIABLE or variable.operands[2] != spv.STORAGE_STORAGE_BUFFER:
            return 0
        lanes, width = self._lanes(type_)
        return lanes * width // 8

    def _image_bytes(self, entry: Instruction) -> int:
        if entry.opcode in _IMAGE_READS:
            image = entry.operands[2]
        elif entry.opcode == _IMAGE_WRITE:
            image = entry.operands[0]
        else:
            return 0
        variable = self._module.definitions[image].operands[2]
        return self._texel_bytes[self._bindings[variable]]

    def _lanes(self, type_: int) -> tuple[int, int]:
        """Elements of a scalar or vector type, and bits of each."""
        definition = self._module.definitions[type_]
        if definition.opcode == spv.OP_TYPE_VECTOR:
            return definition.operands[2], self._module.definitions[definition.operands[1]].operands[1]
        return 1, definition.operands[1]

    def _runs(self) -> dict[int, int]:
        """Label -> how often one thread runs the block."""
        runs = dict.fromkeys(self._flow.blocks, 1)
        for header in self._flow.blocks:
            latches = [label for label in self._flow.predecessors[header] if header in self._flow.dominators[label]]
            body, pending = {header}, list(latches)
            while pending:
                label = pending.pop()
                if label not in body:
                    body.add(label)
                    pending += self._flow.predecessors[label]
            for label in body - {header} if latches else ():
                runs[label] *= self._trips(header)
        return runs

    def _trips(self, header: int) -> int:
        """Trips of the loop that a header begins: those of a counter from a constant or a thread's number."""
        condition = self._flow.blocks[header].condition
        compare = self._module.definitions.get(condition) if condition is not None else None
        if compare is not None and compare.opcode in _LESS_THAN:
            counter, stop = self._module.definitions[compare.operands[2]], self._constant(compare.operands[3])
            if counter.opcode == spv.OP_PHI and stop is not None:
                starts, steps = [], []
                for value in counter.operands[2::2]:
                    made = self._module.definitions[value]
                    if made.opcode == spv.OP_I_ADD and made.operands[2] == counter.operands[1]:
                        steps.append(self._constant(made.operands[3]))
                    else:
                        starts.append(self._constant(value) or 0)
                if len(starts) == len(steps) == 1 and steps[0]:
                    return max(0, -(-(stop - starts[0]) // steps[0]))
        raise CompilerError(f"the shader '{self._module.name}' has a loop whose trips are not constant")

    def _constant(self, value: int) -> int | None:
        """An integer constant of 32 bits, None for anything else."""
        definition = self._module.definitions[value]
        if definition.opcode == spv.OP_CONSTANT_NULL:
            return 0
        if definition.opcode != spv.OP_CONSTANT:
            return None
        return int(struct.unpack("<i", struct.pack("<I", definition.operands[2]))[0])
