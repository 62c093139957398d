"""The control flow of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from smartmem_mlir.iree.shaders import module as spv
from smartmem_mlir.iree.shaders.module import SpirvModule


@dataclass(frozen=True)
class Block:
    """A basic block.

    Args:
        start: Position of its label among the module's instructions.
        end: Where a barrier at its end would stand: in front of its merge instruction or its branch.
        last: Position of its last instruction.
        successors: Labels of the blocks that may follow.
        condition: Id of what decides which one follows, if there is a choice.
        merge: Label of the block where the ways that part here meet again, if it is declared.
    """

    start: int
    end: int
    last: int
    successors: tuple[int, ...]
    condition: int | None
    merge: int | None


@dataclass(frozen=True)
class Flow:
    """A kernel's only function.

    Args:
        module: The kernel.
        blocks: By label, in the module's order; the first is the entry.
    """

    module: SpirvModule
    blocks: dict[int, Block]

    @cached_property
    def predecessors(self) -> dict[int, list[int]]:
        """Label -> labels of the blocks that it may follow."""
        before: dict[int, list[int]] = {label: [] for label in self.blocks}
        for label, block in self.blocks.items():
            for successor in block.successors:
                before[successor].append(label)
        return before

    @cached_property
    def dominators(self) -> dict[int, set[int]]:
        """Label -> labels of the blocks that every way to it passes, itself included."""
        labels = list(self.blocks)
        dominators = {label: set(labels) for label in labels}
        dominators[labels[0]] = {labels[0]}
        changed = True
        while changed:
            changed = False
            for label in labels[1:]:
                ways = [dominators[other] for other in self.predecessors[label]]
                new = {label} | (set.intersection(*ways) if ways else set())
                changed |= new != dominators[label]
                dominators[label] = new
        return dominators

    @cached_property
    def depths(self) -> dict[int, int]:
        """Label -> the number of loops around the block."""
        depths = dict.fromkeys(self.blocks, 0)
        for header in self.blocks:
            latches = [label for label in self.predecessors[header] if header in self.dominators[label]]
            body, pending = {header}, list(latches)
            while pending:
                label = pending.pop()
                if label not in body:
                    body.add(label)
                    pending += self.predecessors[label]
            for label in body if latches else ():
                depths[label] += 1
        return depths

    def home(self, position: int) -> int:
        """Label of the block that an instruction is in."""
        return next(label for label, block in self.blocks.items() if block.start <= position <= block.last)

    def guards(self, label: int) -> list[tuple[int, bool]]:
        """Conditions, and what they were when control came to a block; that a loop has ended is none."""
        guards: list[tuple[int, bool]] = []
        for dominator in self.dominators[label]:
            block = self.blocks[dominator]
            if block.condition is not None and block.successors[0] != block.successors[1]:
                ends = block.merge if self.module.instructions[block.end].opcode == spv.OP_LOOP_MERGE else None
                guards += [
                    (block.condition, successor == block.successors[0])
                    for successor in block.successors
                    if successor in self.dominators[label]
                    and successor != ends
                    and self.predecessors[successor] == [dominator]
                ]
        return guards

    @cached_property
    def divergent(self) -> frozenset[int]:
        """Labels of the blocks that not all threads of a workgroup may pass together: no barrier may stand there."""
        divergent: frozenset[int] = frozenset()
        while (grown := self._parted_by(divergent)) != divergent:
            divergent = grown
        return divergent

    def _parted_by(self, divergent: frozenset[int]) -> frozenset[int]:
        """The divergent blocks, if values that come from these blocks differ between threads."""
        parted = set(divergent)
        for label, block in self.blocks.items():
            if block.condition is None or self._is_uniform(block.condition, divergent):
                continue
            if block.merge is None:
                return frozenset(self.blocks)
            loops = self.module.instructions[block.end].opcode == spv.OP_LOOP_MERGE
            parted |= {
                other
                for other, dominators in self.dominators.items()
                if label in dominators and block.merge not in dominators and (loops or other != label)
            }
        if any(not self.blocks[label].successors for label in parted):
            return frozenset(self.blocks)  # some threads end early
        return frozenset(parted)

    def _is_uniform(self, condition: int, divergent: frozenset[int]) -> bool:
        """Whether a value is made of constants, workgroup ids and push constants alone."""
        module = self.module
        pending, seen = [condition], set[int]()
        shared_by_all = {module.builtins.get(builtin) for builtin in spv.WORKGROUP_BUILTINS}
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            definition = module.definitions.get(value)
            if definition is None or value in module.thread_components:
                return False
            opcode, operands, _ = definition
            if opcode == spv.OP_VARIABLE:
                if operands[2] != spv.STORAGE_PUSH_CONSTANT and value not in shared_by_all:
                    return False
            elif opcode == spv.OP_PHI:
                # Which of its values it has depends on where each thread comes from.
                if divergent.intersection(operands[3::2]):
                    return False
                pending += operands[2::2]
            elif not spv.OP_CONSTANT_TRUE <= opcode <= spv.OP_CONSTANT_NULL:
                pending += spv.id_operands(definition)
        return True


def flow_of(module: SpirvModule) -> Flow | None:
    """The control flow of a kernel; None if it has several functions or branches that are not followed."""
    blocks: dict[int, Block] = {}
    label = start = 0
    merge: int | None = None
    for position, (opcode, operands, _) in enumerate(module.instructions):
        if opcode == spv.OP_LABEL:
            label, start, merge = operands[0], position, None
        elif opcode in spv.MERGES:
            merge = position
        elif opcode in spv.TERMINATORS:
            end = position if merge is None else merge
            join = None if merge is None else module.instructions[merge].operands[0]
            if opcode == spv.OP_BRANCH:
                blocks[label] = Block(start, end, position, operands[:1], None, join)
            elif opcode == spv.OP_BRANCH_CONDITIONAL:
                blocks[label] = Block(start, end, position, operands[1:3], operands[0], join)
            elif opcode in (spv.OP_RETURN, spv.OP_UNREACHABLE):
                blocks[label] = Block(start, end, position, (), None, None)
            else:
                return None
    functions = sum(entry.opcode == spv.OP_FUNCTION for entry in module.instructions)
    return Flow(module, blocks) if functions == 1 and blocks else None
