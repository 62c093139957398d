"""What `compile`, `explain` and the report say about the memory of each tensor."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from tiny_onnx import Builder

import smartmem_mlir as sm
from conftest import Smartmem
from smartmem_mlir.targets import load_target


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three products; nine elements between the last two are no whole texels."""
    b = Builder(np.random.default_rng(0))
    first = b.op("Relu", b.op("MatMul", "x", b.weight(8, 32)))
    second = b.op("MatMul", first, b.weight(32, 9))
    b.op("MatMul", second, b.weight(9, 8), name="y")
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [12, 8]) for name in "xy"]
    return b.save(tmp_path_factory.mktemp("memories") / "products.onnx", values[:1], values[1:])


def target(folder: Path, **fields: object) -> Path:
    """The portable target with fields of its Vulkan section replaced."""
    description = load_target("vulkan").model_dump(mode="json", exclude_none=True)
    description["name"] = "edited"
    description["vulkan"] |= fields
    file = folder / "edited.yaml"
    file.write_text(yaml.safe_dump(description))
    return file


def test_every_memory_and_reason_is_told(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    rates = {"buffer": 10.0, "image": 100.0, "texel_buffer": 5.0}
    edited = target(tmp_path, max_image_extent=12, memory_rates=rates)
    done = smartmem("compile", model, "-o", folder, "--target", edited, "--storage", "image", "--layouts", "paper")
    assert done.code == 0, done.err
    # The second weight has 32 terms of the sum, too many rows for an image of 12, and folding them would divide.
    assert "tensors of shaders: image2d 3 (2.85 kB); texel_buffer 1 (1.54 kB); buffer 3 (1.2 kB)" in done.out
    assert "in buffers because: " in done.out
    assert "by-elements 1 (432 B)" in done.out

    content = json.loads(smartmem("explain", folder, "--json").out)["memories"]
    assert content["by_memory"]["image2d"] == {"tensors": 3, "bytes": 2848}
    assert content["in_buffers"]["program-output"] == {"tensors": 1, "bytes": 384}
    assert sum(row["tensors"] for row in content["in_buffers"].values()) == content["by_memory"]["buffer"]["tensors"]
    by_shape = {tuple(each["shape"]): each for each in content["tensors"]}
    assert sum(each["bytes"] for each in content["tensors"]) == sum(
        row["bytes"] for row in content["by_memory"].values()
    )
    weight = by_shape[32, 12]
    assert (weight["role"], weight["memory"], weight["extents"]) == ("weight", "texel_buffer", [96])
    assert (weight["reason"], weight["tensor"]) == ("extent", "const_1")
    hidden = by_shape[12, 32]
    assert (hidden["role"], hidden["memory"], hidden["extents"]) == ("activation", "image2d", [8, 12])
    assert hidden["tensor"] == "Relu_1"
    assert hidden["costs_ns"]["image2d"] < hidden["costs_ns"]["buffer"] < hidden["costs_ns"]["texel_buffer"]
    assert by_shape[12, 9]["reason"] == "by-elements"

    text = smartmem("explain", folder).out
    assert "extent: no two-dimensional image within the target's limits" in text
    assert "modelled: buffer " in text
    assert sm.load(folder).report.memories[0].element == "f32"


def test_buffers_that_were_asked_for_have_no_reasons(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    done = smartmem("compile", model, "-o", tmp_path / "out", "--target", "vulkan", "--storage", "buffer")
    assert done.code == 0, done.err
    assert "tensors of shaders" not in done.out
    content = json.loads(smartmem("explain", tmp_path / "out", "--json").out)["memories"]
    assert content == {"by_memory": {}, "in_buffers": {}, "tensors": []}
