"""Where each tensor of shaders goes, and the reason that is told for it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import arithmetic as math_
import numpy as np
import pytest
from compiled import vulkan_device
from kernel_programs import weight
from mlir import ir
from program import Program, Tensor
from texel_programs import PROGRAMS, VARIANTS, Variant, build

from smartmem_mlir.index_maps.expr import dims
from smartmem_mlir.index_maps.map import IndexMap, evaluate
from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.lower import vulkan_attr
from smartmem_mlir.kernels.spirv.assign import MemoryRates
from smartmem_mlir.kernels.spirv.lower_groups import ATTRIBUTE, read_device
from smartmem_mlir.kernels.spirv.placements import ImageShape, MemoryLimits, image_shapes, texel_shape
from smartmem_mlir.layouts.memory import EXPLANATIONS, TensorMemory
from smartmem_mlir.targets import load_pipeline, load_target
from smartmem_mlir.transforms.evidence import recording
from smartmem_mlir.transforms.registry import run_pipeline

_PASS = "smartmem-lower-groups-to-vulkan"


def form_groups(programs: list[Program]) -> str:
    """Programs up to the pass that makes shaders."""
    with make_context(allow_unregistered_dialects=True):
        module = ir.Module.parse("\n".join(program.text() for program in programs))
        module.operation.attributes[ATTRIBUTE] = ir.Attribute.parse(vulkan_device(1024)[ATTRIBUTE])
        passes = load_pipeline("vulkan").text().replace("select-layouts,", "select-layouts{layouts=paper},")
        before, found, _ = passes.partition(f",{_PASS}")
        assert found
        run_pipeline(module, f"{before})")
        return str(module)


def decide(groups: str, variant: Variant) -> list[TensorMemory]:
    """Every tensor with its memory."""
    with make_context(allow_unregistered_dialects=True), recording() as evidence:
        module = ir.Module.parse(groups)
        device = variant.edit(vulkan_device(1024)[ATTRIBUTE])
        module.operation.attributes[ATTRIBUTE] = ir.Attribute.parse(device)
        run_pipeline(module, f"builtin.module({_PASS}{{storage={variant.storage}}})")
    return evidence.memories


@pytest.fixture(scope="module")
def all_groups() -> str:
    return form_groups([build(name) for name in PROGRAMS])


@pytest.mark.parametrize(
    ("variant", "memories"),
    [
        ("images", {"image2d": 11, "buffer": 43}),
        ("arrays", {"image2d_array": 3, "texel_buffer": 8, "buffer": 43}),
        ("texel_buffers", {"texel_buffer": 11, "buffer": 43}),
        ("nothing_fits", {"buffer": 54}),
        ("unmeasured", {"buffer": 54}),
        ("fast_images", {"image2d": 15, "buffer": 39}),
        ("fast_texel_buffers", {"texel_buffer": 41, "buffer": 13}),
        ("fast_buffers", {"buffer": 54}),
    ],
)
def test_tensors_are_where_they_should(all_groups: str, variant: str, memories: dict[str, int]) -> None:
    told = decide(all_groups, VARIANTS[variant])
    assert Counter(each.memory for each in told) == memories
    for each in told:
        assert (each.memory == "buffer") == (not each.extents)
        assert each.reason in EXPLANATIONS
        assert (each.reason == "") <= (each.memory == "image2d" and not each.copied)


def test_every_choice_is_the_cheapest(all_groups: str) -> None:
    for name in ("fast_images", "fast_texel_buffers", "fast_buffers"):
        for each in decide(all_groups, VARIANTS[name]):
            assert each.costs_ns[each.memory] == min(each.costs_ns.values())


def test_a_copy_is_paid_for(all_groups: str) -> None:
    rates = "buffer = 1.0, image = 1000.0, texel_buffer = 1.0, dispatch_ns = {}"
    cheap = decide(all_groups, Variant("auto", rates=rates.format("1.0")))
    dear = decide(all_groups, Variant("auto", rates=rates.format("1.0e9")))
    assert any(each.copied for each in cheap)
    assert not any(each.copied for each in dear)
    for each in cheap:
        if each.copied:
            # It is read, and written, once more.
            assert each.costs_ns["image2d"] > 2 * each.bytes


def hidden(p: Program, width: int = 16) -> Tensor:
    return math_.matmul(p, p.argument([12, 8]), weight(p, [8, width]))


def last(p: Program, x: Tensor) -> Tensor:
    return math_.matmul(p, x, weight(p, [x.shape[1], 4]))


def read_by_iree(p: Program) -> list[Tensor]:
    x = hidden(p)
    return [last(p, x), math_.reduce(p, x, [0], "addf")]


def written_by_iree(p: Program) -> list[Tensor]:
    x = p.argument([5, 12, 16])
    return [last(p, math_.reduce(p, x, [0], "addf"))]


def returned(p: Program) -> list[Tensor]:
    x = hidden(p)
    return [last(p, x), x]


def returned_in_another_shape(p: Program) -> list[Tensor]:
    x = hidden(p)
    return [last(p, x), p.reshape(x, [3, 4, 16])]


def bordered(p: Program) -> list[Tensor]:
    """Two elements in front of each row and two behind it."""
    first = math_.layer_norm(p, p.argument([12, 16]), [1])
    return [last(p, p.pad(first, [0, 2], [0, 2]))]


@pytest.mark.parametrize(
    ("build", "variant", "shape", "reason", "detail"),
    [
        (lambda p: [last(p, hidden(p))], "images", (12, 16), "", ""),
        (lambda p: [last(p, hidden(p))], "images", (12, 8), "program-input", ""),
        (lambda p: [last(p, hidden(p, 20))], "images", (12, 8), "program-input", ""),
        (returned, "images", (12, 16), "program-output", ""),
        (returned_in_another_shape, "images", (12, 16), "program-output", ""),
        (read_by_iree, "images", (12, 16), "read-by-iree", "linalg.generic"),
        (written_by_iree, "images", (12, 16), "written-by-iree", "linalg.generic"),
        (lambda p: [last(p, hidden(p, 17))], "images", (12, 17), "by-elements", "contraction_12x17x8"),
        (bordered, "images", (12, 20), "by-elements", "rows_12x16"),
        (lambda p: [last(p, hidden(p))], "images", (16, 4), "constant", ""),
        (lambda p: [last(p, hidden(p))], "nothing_fits", (12, 16), "extent", ""),
        (lambda p: [last(p, hidden(p))], "arrays", (12, 16), "extent", ""),
        (lambda p: [last(p, hidden(p))], "fast_buffers", (12, 16), "cost", ""),
        (lambda p: [last(p, hidden(p))], "unmeasured", (12, 16), "unmeasured", ""),
    ],
)
def test_reasons(
    build: Callable[[Program], list[Tensor]], variant: str, shape: tuple[int, ...], reason: str, detail: str
) -> None:
    program = Program("main")
    program.results += build(program)
    told = decide(form_groups([program]), VARIANTS[variant])
    assert [(each.reason, each.detail) for each in told if each.shape == shape] == [(reason, detail)]


@pytest.mark.parametrize("shape", [(7, 5, 8), (1, 1, 80), (640,), (4, 96), (30, 4), (2, 3, 4, 20), (3, 12, 12)])
@pytest.mark.parametrize("limits", [MemoryLimits(64, 8), MemoryLimits(5, 16), MemoryLimits(3, 4), MemoryLimits(2, 1)])
def test_each_element_has_a_place_of_its_own(shape: tuple[int, ...], limits: MemoryLimits) -> None:
    """In memory order, as what copies a buffer into an image assumes."""
    for image in image_shapes(shape, limits):
        width, height, *layers = image.extents
        assert max(width, height) <= limits.extent
        assert layers == [] or 1 < layers[0] <= limits.layers
        exprs = image.coordinates(dims(len(shape)), shape)
        x, y, *z = (np.broadcast_to(values, shape).ravel() for values in evaluate(IndexMap.of(shape, exprs)))
        places = ((z[0] if z else 0) * height + y) * width * 4 + x
        np.testing.assert_array_equal(places, np.arange(np.prod(shape)))


def test_the_first_image_is_the_simplest() -> None:
    assert next(image_shapes((6, 5, 8), MemoryLimits(64, 8))) == ImageShape(2, (2, 30))
    assert next(image_shapes((6, 5, 8), MemoryLimits(10, 8))) == ImageShape(1, (10, 6))
    assert next(image_shapes((6, 5, 8), MemoryLimits(5, 8))) == ImageShape(2, (2, 5, 6))
    assert next(image_shapes((1, 80), MemoryLimits(8, 8))) == ImageShape(1, (5, 4), 4)
    assert next(image_shapes((6, 5, 7), MemoryLimits(64, 8)), None) is None


def test_a_texel_buffer_is_of_whole_texels_within_the_limit() -> None:
    shape = texel_shape((6, 6), MemoryLimits(texels=9))
    assert shape is not None
    assert shape.extents == (9,)
    assert texel_shape((6, 6), MemoryLimits(texels=8)) is None
    assert texel_shape((5, 5), MemoryLimits()) is None


def test_the_rates_of_a_target_reach_the_pass() -> None:
    """A texel buffer that nobody has measured is as fast as a buffer."""
    target = load_target("adreno")
    assert target.vulkan is not None
    with make_context(allow_unregistered_dialects=True):
        module = ir.Module.parse("")
        module.operation.attributes[ATTRIBUTE] = vulkan_attr(target, target.vulkan)
        device = read_device(module.operation)
    assert device.rates == MemoryRates(55.0, 511.0, 55.0, 3000.0)
    assert device.memory == MemoryLimits(16384, 256, 65536)
