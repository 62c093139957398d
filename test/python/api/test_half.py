"""Models in f16 on Vulkan: shaders store f16, compute in f32, and are right in buffers and in images."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import smartmem_mlir
from smartmem_mlir.errors import OptionError
from smartmem_mlir.iree.shaders import find_modules
from smartmem_mlir.targets import load_target
from smartmem_mlir.zoo import materialize

RECIPES = Path(__file__).parents[2] / "cases" / "zoo"
TOLERANCE = 5e-3


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("storage", "extent", "memories"),
    [
        ("buffer", 4096, set()),
        ("image", 4096, {"buffer", "image2d"}),
        ("image", 16, {"buffer", "image2d_array", "texel_buffer"}),
    ],
)
def test_a_convolutional_network_is_right(tmp_path: Path, storage: str, extent: int, memories: set[str]) -> None:
    model, folder, target = tmp_path / "resnet50.onnx", tmp_path / "module", tmp_path / "target.yaml"
    materialize(RECIPES / "resnet50.onnx", model)
    description = load_target("vulkan-f16").model_dump(mode="json", exclude_none=True)
    description["vulkan"]["max_image_extent"] = extent
    target.write_text(yaml.safe_dump(description))
    compiled = smartmem_mlir.compile(
        model,
        folder,
        target=str(target),
        dtype="f16",
        storage=storage,  # type: ignore[arg-type]
    )
    names = [module.name for module in find_modules((folder / "model.vmfb").read_bytes())]
    assert sum(name.startswith("contraction") for name in names) > 15
    assert (b"fmt=rgba16f" in (folder / "model.vmfb").read_bytes()) == (storage == "image")
    assert compiled.report.flow.kernels < 30
    assert {each.memory for each in compiled.report.memories} == memories
    assert {each.element for each in compiled.report.memories if each.memory != "buffer"} <= {"f16"}
    loaded = f"smartmem_mlir.load({str(folder)!r})"
    code = f"import smartmem_mlir; assert {loaded}.verify(device='vulkan', seeds=[0], tolerance={TOLERANCE}).matches"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_target_without_f16_in_buffers_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "resnet50.onnx"
    materialize(RECIPES / "resnet50.onnx", model)
    with pytest.raises(OptionError, match="f16, which the target 'vulkan' does not hold in buffers") as error:
        smartmem_mlir.compile(model, tmp_path / "module", target="vulkan", dtype="f16")
    assert "vulkan-f16" in (error.value.hint or "")
    assert list(tmp_path.iterdir()) == [model]
