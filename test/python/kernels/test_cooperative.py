"""Contractions by cooperative matrices compute what NumPy computes, and their shaders are as the extension wants them.

No driver of the CPU has such matrices. What threads do in place of them is all that differs in what runs here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import arithmetic as math_
import numpy as np
import pytest
from compiled import CompiledPrograms, function_text, lower, vulkan_device
from cooperative_programs import (
    PROGRAMS,
    WITH_MATRICES,
    WITH_NARROW_MATRICES,
    Build,
    build,
    half,
    linear,
    product,
)
from mlir import ir
from program import Program

from smartmem_mlir.errors import DeviceError
from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.assumptions import VulkanAssumptions, refuse_other_device
from smartmem_mlir.iree.lower import vulkan_attr
from smartmem_mlir.iree.shaders import module as spirv
from smartmem_mlir.iree.shaders import needs_of
from smartmem_mlir.iree.vulkan import vulkan_devices
from smartmem_mlir.kernels.spirv import choice, cooperative, cooperative_plan, integers
from smartmem_mlir.kernels.spirv.block_copy import BlockCopy
from smartmem_mlir.kernels.spirv.cooperative_plan import MatrixPlan, MatrixRead
from smartmem_mlir.kernels.spirv.limits import CooperativeMatrices, GpuLimits
from smartmem_mlir.kernels.spirv.lower_groups import ATTRIBUTE as VULKAN_DEVICE
from smartmem_mlir.kernels.spirv.lower_groups import read_device
from smartmem_mlir.kernels.spirv.plan import ShaderPlan
from smartmem_mlir.signature import NUMPY_DTYPES
from smartmem_mlir.targets import load_target

# NVIDIA's GPUs have both. Of the second the extents differ, and threads in its place are compiled sooner.
SQUARE, NARROW = (16, 16, 16), (16, 8, 8)
USED = {SQUARE: set(WITH_MATRICES), NARROW: {*WITH_MATRICES, *WITH_NARROW_MATRICES}}
_OBJECT = re.compile(r'path = "(\w+)\.spv", data = dense<"0x([0-9A-F]+)">')
_DISPATCH = re.compile(r'"flow\.dispatch".*?@(\w+)::@\1\b')
_MEMORY_MODEL, _VULKAN, _FUNCTION = 14, 3, 7
_NON_PRIVATE = 0x20
_RELEASED_AND_SEEN = 0x2000 | 0x4000


def device(matrices: tuple[int, int, int], emulated: bool) -> dict[str, str]:
    """Of many cores, with as much workgroup memory as drivers of the CPU give."""
    given = CooperativeMatrices(*matrices, subgroup=32, emulated=emulated)
    return vulkan_device(16896, True, 65536, invocations=512, shared_bytes=32768, matrices=given)


def is_light(plan: MatrixPlan) -> bool:
    """Whether little code stands in place of matrices: a driver of the CPU takes long to compile it."""
    return prod(plan.tile) * plan.unroll <= (4 if plan.right.by_columns else 2)


def prefer(patch: pytest.MonkeyPatch, wanted: Callable[[MatrixPlan], bool] = lambda _: True) -> None:
    """Matrices are chosen wherever they can be, although threads may be faster for so little work."""
    candidates = cooperative_plan.cooperative_plans

    def preferred(plan: ShaderPlan, limits: GpuLimits) -> Iterator[tuple[float, MatrixPlan]]:
        return ((time * 1e-9, made) for time, made in candidates(plan, limits) if wanted(made))

    patch.setattr(choice, "cooperative_plans", preferred)


def compile_programs(
    programs: list[Program], folder: Path, matrices: tuple[int, int, int] = NARROW
) -> CompiledPrograms:
    return CompiledPrograms(programs, folder, device(matrices, True), "paper", "vulkan-f16", "vulkan", "vulkan")


def check(compiled: CompiledPrograms, program: Program) -> None:
    """Results are right to the last digit of f16 of the largest, or nearly."""
    for found, expected in zip(compiled.run(program), program.results, strict=True):
        assert found.dtype == NUMPY_DTYPES[expected.element]
        largest = max(1.0, np.abs(expected.array).max())
        np.testing.assert_allclose(found, expected.array, 2**-10, 2**-10 * largest, err_msg=program.name)


@cache
def shaders_of(text: str) -> dict[str, spirv.SpirvModule]:
    """The shaders of a module, by name."""
    return {name: spirv.parse_module(bytes.fromhex(data)) for name, data in _OBJECT.findall(text)}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch, is_light)
        return compile_programs([build(name) for name in PROGRAMS], tmp_path_factory.mktemp("cooperative"))


@cache
def lowered(matrices: tuple[int, int, int]) -> str:
    """The programs for a device that has such matrices."""
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch, is_light)
        return lower([build(name) for name in PROGRAMS], device(matrices, False), "paper", "vulkan")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_numpys(compiled: CompiledPrograms, name: str) -> None:
    check(compiled, build(name))


def test_rows_of_two_blocks_are_right(tmp_path: Path) -> None:
    """The terms of a narrow matrix are one block."""
    programs = [build(name) for name in ("linear_77x96x48", "heads_keys", "conv_3x3_width_9")]
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch, is_light)
        compiled = compile_programs(programs, tmp_path, SQUARE)
    for program in programs:
        check(compiled, program)


def test_threads_stand_in_for_matrices_and_for_nothing_else(compiled: CompiledPrograms) -> None:
    """The kernels are those of a device with matrices, in workgroups of the same size."""
    for name in PROGRAMS:
        assert compiled.function(name) == function_text(lowered(NARROW), name)
    ours, theirs = shaders_of(compiled.lowered), shaders_of(lowered(NARROW))
    for name, shader in ours.items():
        assert needs_of(shader).workgroup_size == needs_of(theirs[name]).workgroup_size
        assert not needs_of(shader).assumes_subgroup_size


@pytest.mark.parametrize("matrices", [SQUARE, NARROW])
@pytest.mark.parametrize("name", PROGRAMS)
def test_matrices_are_used_where_they_can(matrices: tuple[int, int, int], name: str) -> None:
    text = lowered(matrices)
    shaders = shaders_of(text)
    kernels = [kernel for kernel in _DISPATCH.findall(function_text(text, name)) if kernel.startswith("contraction")]
    assert kernels
    for kernel in kernels:
        assert needs_of(shaders[kernel]).matrices == ({matrices} if name in USED[matrices] else set()), kernel


def test_matrices_are_chosen_where_they_pay() -> None:
    """By the model alone: for a layer of a transformer they are, for one matrix they are not."""
    programs = [Program("layer"), Program("one_matrix")]
    for program, make in zip(programs, (linear(197, 384, 384), linear(16, 16, 16)), strict=True):
        program.results.append(make(program))
    shaders = shaders_of(lower(programs, device(SQUARE, False), "paper", "vulkan"))
    assert {name: needs_of(shader).matrices for name, shader in shaders.items()} == {
        "contraction_197x384x384": {SQUARE},
        "contraction_16x16x16": set(),
    }


# Every way to divide the work


Shape = tuple[tuple[int, int], tuple[int, int], int, int]
"""Tile, subgroups, splits and unrolling of a plan."""
_FIRST_ROWS, _TERMS, _LANES = 193, 192, 192
_KINDS: tuple[Callable[[int], Build], ...] = (
    lambda rows: linear(rows, _TERMS, _LANES),
    lambda rows: product("mk,nk->mn", (rows, _TERMS), (_LANES, _TERMS)),
)
"""By what the right factor is: a weight, or an argument."""


def shape_of(plan: MatrixPlan) -> Shape:
    return plan.tile, plan.subgroups, plan.splits, plan.unroll


def shaped(number: int) -> Program:
    """A product that has rows of its own: no other shares its kernel."""
    program = Program(f"shaped_{number}")
    program.results.append(_KINDS[number % len(_KINDS)](_FIRST_ROWS + number)(program))
    return program


def shapes() -> list[Shape]:
    """So many that each extent of a tile occurs, each unrolling, each choice of subgroups, each number of parts."""
    found: set[Shape] = set()

    def see(plan: MatrixPlan) -> bool:
        found.add(shape_of(plan))
        return True

    with pytest.MonkeyPatch.context() as patch:
        prefer(patch, see)
        lower([shaped(0)], device(NARROW, True), "paper", "vulkan")

    def traits(shape: Shape) -> set[tuple[str, object]]:
        (down, across), subgroups, splits, unroll = shape
        several = subgroups != (1, 1)
        alone = {("down", down), ("across", across), ("subgroups", subgroups), ("splits", splits), ("unroll", unroll)}
        return {*alone, ("tile", (min(down, across) > 1, several)), ("parts", (splits > 1, several))}

    missing = set[tuple[str, object]]().union(*map(traits, found))
    chosen = []
    while missing:
        # What is written out takes long to compile.
        best = max(sorted(found), key=lambda s: len(traits(s) & missing) / (4 + prod(s[0]) * s[3]))
        chosen.append(best)
        missing -= traits(best)
    return chosen


def test_every_division_of_the_work_is_right(tmp_path: Path) -> None:
    wanted = shapes()
    assert len(wanted) > 10

    def is_wanted(plan: MatrixPlan) -> bool:
        number = plan.tiling.num_rows - _FIRST_ROWS
        return 0 <= number < len(wanted) and shape_of(plan) == wanted[number]

    programs = [shaped(number) for number in range(len(wanted))]
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch, is_wanted)
        compiled = compile_programs(programs, tmp_path)
    shaders = shaders_of(compiled.lowered)
    for program, (_, subgroups, splits, _) in zip(programs, wanted, strict=True):
        (kernel,) = _DISPATCH.findall(compiled.function(program.name))
        assert needs_of(shaders[kernel]).workgroup_size == (prod(subgroups) * splits * 32, 1, 1)
        check(compiled, program)


# Mistakes that the comparison must find


def clamp_too_early(patch: pytest.MonkeyPatch) -> None:
    """The last tile of rows begins one row before it should."""
    at_most = integers.at_most
    patch.setattr(integers, "at_most", lambda value, most: at_most(value, most - 1))


def forget_a_part(patch: pytest.MonkeyPatch) -> None:
    """The last of the subgroups that divide a sum counts for nothing."""
    whole = cooperative.CooperativeShader._total

    def total(shader: cooperative.CooperativeShader, *arguments: ir.Value) -> ir.Value:
        plan = shader._matrix_plan
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(shader, "_matrix_plan", replace(plan, splits=plan.splits - 1))
            return whole(shader, *arguments)

    patch.setattr(cooperative.CooperativeShader, "_total", total)


def read_between_rows(patch: pytest.MonkeyPatch) -> None:
    """Rows of the right factor are taken to be closer to each other than they are."""
    read = cooperative_plan.MatrixRead
    patch.setattr(cooperative_plan, "MatrixRead", lambda *parts, **named: _closer(read(*parts, **named)))


def _closer(read: MatrixRead) -> MatrixRead:
    return replace(read, pitch=max(read.pitch - 1, 0))


def copy_the_first_trip(patch: pytest.MonkeyPatch) -> None:
    """Each trip multiplies the left factor that the first one should."""
    load = BlockCopy.load
    patch.setattr(BlockCopy, "load", lambda copy, trips: load(copy, [integers.constant(0)] * len(trips)))


def load_by_rows(patch: pytest.MonkeyPatch) -> None:
    """A weight's matrices are loaded as if what is adjacent were their rows' elements."""
    packed = cooperative_plan._packed
    patch.setattr(cooperative_plan, "_packed", lambda *given: replace(packed(*given), by_columns=False))


MISTAKES = {
    each.__name__: each
    for each in (clamp_too_early, forget_a_part, read_between_rows, copy_the_first_trip, load_by_rows)
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_comparison_finds_mistakes(mistake: str, tmp_path: Path) -> None:
    program = Program("wrong")
    program.results.append(linear(33, 64, 16)(program))
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch, lambda plan: shape_of(plan) == ((1, 1), (1, 1), 2, 2))
        MISTAKES[mistake](patch)
        compiled = compile_programs([program], tmp_path)
    with pytest.raises(AssertionError, match="Mismatched elements"):
        check(compiled, program)


# Shaders of a device that has matrices


def cooperative_shaders(matrices: tuple[int, int, int]) -> dict[str, spirv.SpirvModule]:
    found = {name: shader for name, shader in shaders_of(lowered(matrices)).items() if needs_of(shader).matrices}
    assert len(found) > 20
    return found


@pytest.mark.parametrize("matrices", [SQUARE, NARROW])
def test_what_shaders_need_is_told(matrices: tuple[int, int, int]) -> None:
    for shader in cooperative_shaders(matrices).values():
        needs = needs_of(shader)
        assert needs.version == (1, 6)
        assert needs.matrices == {matrices}
        assert needs.assumes_subgroup_size
        assert needs.capabilities == {
            *("CooperativeMatrixKHR", "Float16", "GroupNonUniform", "Shader", "VulkanMemoryModel"),
            *({"StorageBuffer16BitAccess"} & needs.capabilities),
        }
        assert needs.extensions == {"SPV_KHR_cooperative_matrix"}
        assert needs.workgroup_size[0] % 32 == 0
        assert 0 < needs.shared_memory_bytes <= 32768


def test_other_shaders_need_no_more_than_before() -> None:
    for shader in shaders_of(lowered(SQUARE)).values():
        needs = needs_of(shader)
        if not needs.matrices:
            assert needs.version == (1, 3)
            assert needs.capabilities <= {"Shader", "StorageBuffer16BitAccess"}
            assert not needs.extensions


def test_the_memory_model_is_vulkans() -> None:
    """Entry points list all global variables; each access of what threads share says so, and so does each barrier."""
    for name, shader in cooperative_shaders(SQUARE).items():
        ops = shader.instructions
        assert [op.operands for op in ops if op.opcode == _MEMORY_MODEL] == [(0, _VULKAN)]
        (entry,) = (op for op in ops if op.opcode == spirv.OP_ENTRY_POINT)
        variables = {op.operands[1] for op in ops if op.opcode == spirv.OP_VARIABLE and op.operands[2] != _FUNCTION}
        assert set(entry.operands[2 + len(name) // 4 + 1 :]) == variables
        shared = [mask for op in ops if (mask := mask_of_shared_access(shader, op)) is not None]
        assert len(shared) > 3
        assert all(mask & _NON_PRIVATE for mask in shared), name
        barriers = [op.operands[2] for op in ops if op.opcode == spirv.OP_CONTROL_BARRIER]
        assert barriers
        semantics = [shader.definitions[barrier].operands[2] for barrier in barriers]
        assert all(mask & _RELEASED_AND_SEEN == _RELEASED_AND_SEEN for mask in semantics), name


def mask_of_shared_access(shader: spirv.SpirvModule, op: spirv.Instruction) -> int | None:
    """The memory operands of an access of workgroup memory, None for what is none."""
    # Of each access: where its pointer stands among the operands, and where memory operands may follow.
    places = {
        spirv.OP_LOAD: (2, 3),
        spirv.OP_STORE: (0, 2),
        spirv.OP_COOPERATIVE_MATRIX_LOAD: (2, 5),
        spirv.OP_COOPERATIVE_MATRIX_STORE: (0, 4),
    }
    if op.opcode not in places:
        return None
    pointer, masks = places[op.opcode]
    type_ = shader.definitions[shader.definitions[op.operands[pointer]].operands[0]]
    if type_.operands[1] != spirv.STORAGE_WORKGROUP:
        return None
    return op.operands[masks] if len(op.operands) > masks else 0


@pytest.mark.parametrize("matrices", [SQUARE, NARROW])
def test_matrices_are_aligned_in_memory(matrices: tuple[int, int, int]) -> None:
    """To 16 bytes: pointers are to vectors of so many, and strides count these."""
    for shader in cooperative_shaders(matrices).values():
        accesses = matrix_accesses(shader)
        assert len(accesses) >= 3
        for pointer, stride in accesses:
            pointee = shader.definitions[shader.definitions[shader.definitions[pointer].operands[0]].operands[2]]
            assert (pointee.opcode, pointee.operands[2]) == (spirv.OP_TYPE_VECTOR, 4)
            assert 0 < stride < 1 << 31


def matrix_accesses(shader: spirv.SpirvModule) -> list[tuple[int, int]]:
    """Pointer and stride of each load and store of a matrix."""
    places = {spirv.OP_COOPERATIVE_MATRIX_LOAD: (2, 4), spirv.OP_COOPERATIVE_MATRIX_STORE: (0, 3)}
    return [
        (op.operands[pointer], shader.definitions[op.operands[stride]].operands[2])
        for op in shader.instructions
        if op.opcode in places
        for pointer, stride in [places[op.opcode]]
    ]


@pytest.mark.parametrize(("equation", "shape"), [("mk,kn->mn", (32, 48)), ("mk,nk->mn", (48, 32))])
def test_no_matrix_is_read_backwards(equation: str, shape: tuple[int, int]) -> None:
    """A right factor whose rows stand in reverse order."""
    program = Program("backwards")
    y = program.flip(program.argument(shape, "f16"), 0)
    program.results.append(half(program, math_.contract(program, program.argument([77, 32], "f16"), y, equation)))
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch)
        text = lower([program], device(SQUARE, False), "paper", "vulkan")
    for shader in shaders_of(text).values():
        assert all(0 < stride < 1 << 31 for _, stride in matrix_accesses(shader))


def test_no_matrices_where_images_are_asked_for() -> None:
    text = lower([build("perceptron")], device(SQUARE, False), "paper", "vulkan", "image")
    assert not any(needs_of(shader).matrices for shader in shaders_of(text).values())


# A module's device


def test_the_matrices_of_a_target_reach_the_pass() -> None:
    for name, expected in (("nvidia", CooperativeMatrices(*SQUARE, subgroup=32)), ("adreno", None)):
        target = load_target(name)
        assert target.vulkan is not None
        with make_context(allow_unregistered_dialects=True):
            module = ir.Module.parse("")
            module.operation.attributes[VULKAN_DEVICE] = vulkan_attr(target, target.vulkan)
            assert read_device(module.operation).limits.matrices == expected


@pytest.mark.vulkan
def test_a_module_is_refused_by_a_device_without_its_matrices(tmp_path: Path) -> None:
    """From the target's description to the check: what kernels multiply is read back from the module."""
    target = load_target("nvidia")
    assert target.vulkan is not None
    with make_context():
        attributes = {VULKAN_DEVICE: str(vulkan_attr(target, target.vulkan))}
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch)
        program = build("one_matrix")
        assumed = CompiledPrograms([program], tmp_path, attributes, "paper", "nvidia", "vulkan", "vulkan").assumptions
    assert isinstance(assumed, VulkanAssumptions)
    assert assumed.matrices == (SQUARE,)
    assert (assumed.subgroup_size, assumed.spirv_version) == (32, (1, 6))
    lavapipe = next(each for each in vulkan_devices() if "llvmpipe" in each.name)
    with pytest.raises(DeviceError, match=r"cooperative matrices of 16x16x16, the device has none"):
        refuse_other_device(assumed, lavapipe)
