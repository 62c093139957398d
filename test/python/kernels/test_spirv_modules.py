"""The binaries of generated shaders: valid, within the target's limits, and without divisions where they would cost."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import kernel_programs
import pytest
import row_programs
import texel_programs
from compiled import vulkan_device
from mlir import ir
from program import Program
from texel_programs import VARIANTS, Variant

from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.shaders import module as spirv
from smartmem_mlir.iree.shaders import needs_of
from smartmem_mlir.kernels.spirv.lower_groups import ATTRIBUTE
from smartmem_mlir.kernels.spirv.placements import ImageShape
from smartmem_mlir.kernels.spirv.to_image import to_image
from smartmem_mlir.targets import load_pipeline
from smartmem_mlir.transforms.registry import run_pipeline

_OBJECT = re.compile(r'path = "(\w+)\.spv", data = dense<"0x([0-9A-F]+)">')
_DIVISIONS = {spirv.OP_U_DIV, spirv.OP_U_MOD}


def shaders(programs: list[Program], variant: Variant) -> dict[str, bytes]:
    """The binaries of programs, by name."""
    with make_context(allow_unregistered_dialects=True):
        module = ir.Module.parse("\n".join(program.text() for program in programs))
        module.operation.attributes[ATTRIBUTE] = ir.Attribute.parse(variant.edit(vulkan_device(1024)[ATTRIBUTE]))
        passes = load_pipeline("vulkan").with_option("smartmem-lower-groups-to-vulkan", "storage", variant.storage)
        run_pipeline(module, passes.text().replace("select-layouts,", "select-layouts{layouts=paper},"))
        return {name: bytes.fromhex(data) for name, data in _OBJECT.findall(str(module))}


@pytest.fixture(scope="module")
def in_buffers() -> dict[str, bytes]:
    programs = [kernel_programs.build(name) for name in kernel_programs.PROGRAMS]
    return shaders([*programs, *(row_programs.build(name) for name in row_programs.PROGRAMS)], Variant("buffer"))


@pytest.fixture(scope="module")
def in_images() -> dict[str, bytes]:
    return shaders([texel_programs.build(name) for name in texel_programs.PROGRAMS], VARIANTS["images"])


@pytest.fixture(scope="module")
def beyond_limits() -> dict[str, bytes]:
    """In arrays, in images of which rows are cut, and in texel buffers."""
    return shaders([texel_programs.build(name) for name in texel_programs.PROGRAMS], VARIANTS["arrays"])


def in_loops(module: spirv.SpirvModule) -> Iterator[spirv.Instruction]:
    """The instructions between the head of a loop and its merge block, in the order of the binary."""
    ends: list[int] = []
    for instruction in module.instructions:
        if instruction.opcode == spirv.OP_LABEL and ends and instruction.operands[0] == ends[-1]:
            ends.pop()
        if ends:
            yield instruction
        if instruction.opcode == spirv.OP_LOOP_MERGE:
            ends.append(instruction.operands[0])


@pytest.mark.parametrize("kind", ["in_buffers", "in_images", "beyond_limits"])
def test_each_is_valid_for_vulkan_1_1(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    binaries: dict[str, bytes] = request.getfixturevalue(kind)
    assert len(binaries) > 10
    for name, binary in binaries.items():
        file = tmp_path / f"{name}.spv"
        file.write_bytes(binary)
        command = ["spirv-val", "--target-env", "vulkan1.1", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stderr}"


@pytest.mark.parametrize("kind", ["in_buffers", "in_images", "beyond_limits"])
def test_each_is_within_the_portable_limits(kind: str, request: pytest.FixtureRequest) -> None:
    for binary in request.getfixturevalue(kind).values():
        needs = needs_of(spirv.parse_module(binary))
        x, y, z = needs.workgroup_size
        assert x * y * z <= 128
        assert needs.shared_memory_bytes <= 16384
        texel_buffers = {"ImageBuffer", "SampledBuffer"} if kind == "beyond_limits" else set()
        assert {"Shader"} <= needs.capabilities <= {"Shader", *texel_buffers}
        assert not needs.assumes_subgroup_size


@pytest.mark.parametrize("kind", ["in_images", "beyond_limits"])
def test_loops_over_image_tensors_do_not_divide(kind: str, request: pytest.FixtureRequest) -> None:
    checked = 0
    for name, binary in request.getfixturevalue(kind).items():
        if b"smartmem.image.v1" not in binary or not name.startswith("contraction"):
            continue
        looped = list(in_loops(spirv.parse_module(binary)))
        assert not [i for i in looped if i.opcode in _DIVISIONS], name
        checked += bool(looped)
    assert checked >= 4


def test_the_search_for_divisions_finds_one() -> None:
    """A loop over rows that are gathered from a flat position, as the border's is, does divide."""
    program = Program("bordered")
    program.results.append(row_programs.PROGRAMS["padded_norm"](program))
    (binary,) = shaders([program], Variant("buffer")).values()
    assert any(i.opcode in _DIVISIONS for i in in_loops(spirv.parse_module(binary)))


@pytest.mark.parametrize("half", [True, False])
def test_texels_of_half_are_rounded_before_they_are_written(half: bool) -> None:
    """By arithmetic on bits, whose mask is in the binary; a device may cut instead."""
    with make_context(allow_unregistered_dialects=True), ir.Location.unknown():
        binary, _ = to_image("copy", ImageShape(1, (4, 4)), half, "1.3")
    assert ((0xFFFFE000).to_bytes(4, "little") in binary) == half
