"""Models in f16 on Vulkan: shaders store f16, compute in f32, and are right in buffers and in images."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import smartmem_mlir
from smartmem_mlir.iree.shaders import find_modules
from smartmem_mlir.targets import load_target
from smartmem_mlir.zoo import materialize

RECIPES = Path(__file__).parents[2] / "cases" / "zoo"
TOLERANCE = 5e-3


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The portable target with f16 in buffers, which its profile does not ask for."""
    description = load_target("vulkan").model_dump(mode="json", exclude_none=True)
    description["name"] = "half"
    description["vulkan"] |= {
        "capabilities": ["Shader", "Float16", "StorageBuffer16BitAccess"],
        "compute": ["fp32", "fp16", "int32"],
        "storage": ["b32", "b16"],
    }
    file = tmp_path_factory.mktemp("target") / "half.yaml"
    file.write_text(yaml.safe_dump(description))
    return file


@pytest.mark.vulkan
@pytest.mark.parametrize("storage", ["buffer", "image"])
def test_a_convolutional_network_is_right(target: Path, tmp_path: Path, storage: str) -> None:
    model, folder = tmp_path / "resnet50.onnx", tmp_path / "module"
    materialize(RECIPES / "resnet50.onnx", model)
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
    loaded = f"smartmem_mlir.load({str(folder)!r})"
    code = f"import smartmem_mlir; assert {loaded}.verify(device='vulkan', seeds=[0], tolerance={TOLERANCE}).matches"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
