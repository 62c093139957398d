"""Counting what kernels do, and the time that a roofline gives them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_mlir import api
from smartmem_mlir.bench import phone
from smartmem_mlir.bench.agreement import median_ratio, median_relative_error, spearman
from smartmem_mlir.bench.phone import roofline_of
from smartmem_mlir.bench.roofline import kernel_limit, predict
from smartmem_mlir.errors import CompilerError, OptionError
from smartmem_mlir.iree.flow.work import KernelWork, ModelWork, read_work
from smartmem_mlir.iree.shaders.module import parse_module
from smartmem_mlir.iree.shaders.work import count_work
from smartmem_mlir.targets.description import Roofline

ROWS, DEPTH, WIDTH, SECOND = 256, 128, 256, 256
DEVICE = Roofline(
    buffer_bytes_per_ns=10.0,
    image_bytes_per_ns=100.0,
    f16_operations_per_ns=2000.0,
    f32_operations_per_ns=1000.0,
    kernel_launch_ns=500.0,
)
SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "adreno740.py"


def save_products(path: Path) -> None:
    """Two products of matrices with an addition between them; all extents are whole tiles."""
    generator = np.random.default_rng(0)
    weights = {
        "w": generator.standard_normal((DEPTH, WIDTH)),
        "b": generator.standard_normal(WIDTH),
        "v": generator.standard_normal((WIDTH, SECOND)),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("MatMul", ["s", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "products",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (ROWS, DEPTH))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (ROWS, SECOND))],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelWork]:
    """The work of the products by storage, and of plain IREE."""
    folder = tmp_path_factory.mktemp("products")
    save_products(folder / "products.onnx")
    found = {}
    for name, options in {
        "image": {"storage": "image"},
        "buffer": {"storage": "buffer"},
        "iree": {"baseline": True},
    }.items():
        flow = folder / f"{name}.mlir"
        flow.write_text(api.emit(folder / "products.onnx", "flow", target="adreno740", **options))
        found[name] = read_work(flow)
    return found


MULTIPLY_ADDS = ROWS * WIDTH * (DEPTH + SECOND)


@pytest.mark.parametrize("variant", ["image", "buffer", "iree"])
def test_arithmetic_is_that_of_the_model(products: dict[str, ModelWork], variant: str) -> None:
    counted = sum(kernel.calls * kernel.operations[32] for kernel in products[variant].kernels)
    # Beside the multiply-adds: the addition, and adding up what threads that share a sum have.
    assert MULTIPLY_ADDS + ROWS * WIDTH <= counted <= 1.1 * MULTIPLY_ADDS


def test_least_bytes_are_each_tensor_once(products: dict[str, ModelWork]) -> None:
    given = 4 * (ROWS * DEPTH + DEPTH * WIDTH + WIDTH + WIDTH * SECOND + ROWS * SECOND)
    between = 2 * 4 * ROWS * WIDTH
    for work in products.values():
        assert sum(kernel.calls * kernel.least_bytes for kernel in work.kernels) == given + between


def test_threads_ask_for_the_same_from_either_memory(products: dict[str, ModelWork]) -> None:
    """So that the prediction for buffers needs no second compilation."""

    def asked(variant: str) -> list[int]:
        return [(kernel.issued_buffer_bytes or 0) + kernel.issued_image_bytes for kernel in products[variant].kernels]

    assert asked("image") == asked("buffer")
    assert all(kernel.issued_image_bytes == 0 for kernel in products["buffer"].kernels)
    assert all(kernel.issued_image_bytes > kernel.least_bytes for kernel in products["image"].kernels)
    assert all(kernel.issued_buffer_bytes is None for kernel in products["iree"].kernels)


def test_a_vector_of_a_factor_serves_the_rows_of_a_thread(products: dict[str, ModelWork]) -> None:
    """What a product asks for lies between sharing every load among 8 rows and sharing none."""
    for kernel in products["buffer"].kernels:
        macs = kernel.operations[32]
        assert kernel.issued_buffer_bytes is not None
        assert 4 * macs / 8 < kernel.issued_buffer_bytes < 4 * 2 * macs


def test_a_loop_without_constant_trips_is_refused() -> None:
    source = """
      OpCapability Shader
      OpMemoryModel Logical GLSL450
      OpEntryPoint GLCompute %main "endless" %id
      OpExecutionMode %main LocalSize 4 1 1
      OpDecorate %id BuiltIn LocalInvocationIndex
      %void = OpTypeVoid
      %fn = OpTypeFunction %void
      %int = OpTypeInt 32 0
      %ptr = OpTypePointer Input %int
      %id = OpVariable %ptr Input
      %bool = OpTypeBool
      %zero = OpConstant %int 0
      %one = OpConstant %int 1
      %main = OpFunction %void None %fn
      %entry = OpLabel
      %bound = OpLoad %int %id
      OpBranch %head
      %head = OpLabel
      %i = OpPhi %int %zero %entry %next %body
      %more = OpSLessThan %bool %i BOUND
      OpLoopMerge %end %body None
      OpBranchConditional %more %body %end
      %body = OpLabel
      %next = OpIAdd %int %i %one
      OpBranch %head
      %end = OpLabel
      OpReturn
      OpFunctionEnd
    """
    with pytest.raises(CompilerError, match="'endless' has a loop whose trips are not constant"):
        count_work(parse_module(assembled(source.replace("BOUND", "%bound"))), (1, 1, 1))
    assert count_work(parse_module(assembled(source.replace("BOUND", "%one"))), (1, 1, 1)).buffer_bytes == 0


def assembled(source: str) -> bytes:
    done = subprocess.run(["spirv-as", "-", "-o", "-"], input=source.encode(), capture_output=True, check=True)
    return done.stdout


def kernel(
    *, operations: int = 0, least: int = 0, buffers: int | None = 0, images: int = 0, calls: int = 1
) -> KernelWork:
    return KernelWork("k", calls, {32: operations}, least, buffers, images)


def test_a_kernel_takes_as_long_as_its_slowest_part() -> None:
    assert kernel_limit(kernel(operations=5000, least=10), DEVICE) == ("arithmetic", 5.0)
    assert kernel_limit(kernel(operations=5000, least=100), DEVICE) == ("global memory", 10.0)
    assert kernel_limit(kernel(least=100, buffers=50, images=2000), DEVICE) == ("images", 25.0)
    assert kernel_limit(kernel(least=100, buffers=300, images=2000), DEVICE) == ("buffers", 50.0)
    assert kernel_limit(kernel(least=100, buffers=50, images=2000), DEVICE, "once") == ("global memory", 10.0)
    assert kernel_limit(kernel(least=100, buffers=None), DEVICE) == ("global memory", 10.0)


def test_f16_counts_at_its_own_rate() -> None:
    half = KernelWork("k", 1, {16: 4000, 32: 1000}, 0)
    assert kernel_limit(half, DEVICE, "once") == ("arithmetic", 3.0)


def test_a_model_is_the_sum_of_its_kernels_launches_and_copies() -> None:
    work = ModelWork((kernel(least=100, calls=3), kernel(operations=7000)), copies=2, copy_bytes=1000)
    found = predict(work, DEVICE)
    assert found.ms == pytest.approx((3 * 10 + 7 + 100 + 6 * 500) / 1e6)
    assert found.share == pytest.approx({"global memory": 130 / 3137, "arithmetic": 7 / 3137, "launch": 3000 / 3137})


def test_agreement_on_known_values() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 40, 30]) == pytest.approx(0.8)
    assert spearman([1, 1, 2], [5, 5, 9]) == pytest.approx(1.0)
    assert spearman([3, 2, 1], [1, 2, 3]) == pytest.approx(-1.0)
    assert spearman([1], [1]) is None
    assert spearman([1, 1], [1, 2]) is None
    assert median_relative_error([1, 2, 6], [2, 2, 2]) == pytest.approx(0.5)
    assert median_ratio([1, 2, 4], [2, 6, 4]) == pytest.approx(2.0)
    assert median_ratio([], []) is None
    with pytest.raises(ValueError, match="2 values and 1"):
        spearman([1, 2], [1])


def test_a_target_without_rates_is_refused() -> None:
    assert roofline_of("adreno740").image_bytes_per_ns == 511
    for name in ("cpu", "adreno"):
        with pytest.raises(OptionError, match=f"'{name}' has no roofline"):
            roofline_of(name)


class Products:
    """In place of `PhoneModel`: the fixture's work."""

    def __init__(self, products: dict[str, ModelWork]) -> None:
        self.products = products
        self.asked: list[tuple[str, str]] = []

    def __call__(self, model: Path, target: str) -> Products:
        self.asked.append((model.stem, target))
        return self

    def work(self, variant: str) -> ModelWork:
        return self.products[{"images": "image", "buffers": "buffer", "iree": "iree"}[variant]]


def test_the_command_predicts_and_continues(
    products: dict[str, ModelWork], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "predicted.json"
    script = load_script()
    compiled = Products(products)
    monkeypatch.setattr(script, "PhoneModel", compiled)
    monkeypatch.setattr(sys, "argv", ["adreno740.py", "folder/swin.onnx", "other.onnx", "-o", str(output)])
    assert script.main() == 0
    first = json.loads(output.read_text())
    row = first["models"].pop("swin")
    assert not first["models"]
    assert row["paper_ms"] == 30.6
    assert row["images"]["once_ms"] <= row["images"]["ms"] < row["buffers"]["ms"]
    assert row["iree"]["ms"] == row["iree"]["once_ms"]
    assert "| swin | 30.6 |" in output.with_suffix(".md").read_text()
    assert script.main() == 0
    assert compiled.asked == [("swin", "adreno740")], "what is there is not computed again"


def test_what_does_not_compile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused:
        def work(self, variant: str) -> ModelWork:
            raise CompilerError("no such kernel")

    row: phone.Row = {
        variant: phone.predict_variant(Refused(), variant, DEVICE)  # type: ignore[arg-type]
        for variant in phone.VARIANTS
    }
    assert row["images"].error == "no such kernel"
    text = phone.markdown({"swin": row}, {"swin": 30.6}, phone.agreement({"swin": row}, {"swin": 30.6}))
    assert "- swin, images: no such kernel" in text


@pytest.mark.slow
def test_shared_passes_make_what_a_compilation_makes(products: dict[str, ModelWork], tmp_path: Path) -> None:
    """The variants of a model share the passes before memory is chosen; `compile` runs all at once."""
    save_products(tmp_path / "products.onnx")
    model = phone.PhoneModel(tmp_path / "products.onnx", "adreno740")
    for variant, options in {"images": {"storage": "auto"}, "buffers": {"storage": "buffer"}}.items():
        flow = tmp_path / "flow.mlir"
        flow.write_text(api.emit(tmp_path / "products.onnx", "flow", target="adreno740", dtype="f16", **options))
        assert model.work(variant) == read_work(flow)  # type: ignore[arg-type]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("adreno740", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
