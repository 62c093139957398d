"""Modelled times of kernels beside measured ones."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from smartmem_mlir import api
from smartmem_mlir.bench import cost_error
from smartmem_mlir.bench.cost_error import Sample, Timed
from smartmem_mlir.iree.flow.work import KernelWork, ModelWork
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.report.graph.model import Node
from smartmem_mlir.targets.description import Roofline
from smartmem_mlir.zoo import materialize

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "benchmarks" / "cost_model.py"
ZOO = ROOT / "test" / "cases" / "zoo"
TRUE = Roofline(
    buffer_bytes_per_ns=300.0,
    image_bytes_per_ns=900.0,
    f16_operations_per_ns=4000.0,
    f32_operations_per_ns=2000.0,
    kernel_launch_ns=2500.0,
)
START = Roofline(
    buffer_bytes_per_ns=1000.0,
    image_bytes_per_ns=1000.0,
    f16_operations_per_ns=1000.0,
    f32_operations_per_ns=500.0,
    kernel_launch_ns=1000.0,
)


@pytest.mark.parametrize(
    ("name", "family", "macs"),
    [
        ("contraction_196x384x1536_1", "contraction", 196 * 384 * 1536),
        ("contraction_3136x64x3x3x64", "contraction", 3136 * 64 * 9 * 64),
        ("attention_192x49x49x32x16", "attention", 192 * 49 * 49 * (32 + 16)),
        ("linear_attention_32x49x50x32x33_1", "attention", 32 * (49 + 50) * 32 * 33),
        ("rows_3136x96_2", "rows", 0),
        ("main_dispatch_4_reduction_2352x49_f32", "IREE's", 0),
        ("main_dispatch_0_contraction_2x2", "IREE's", 0),
    ],
)
def test_names_of_kernels_say_what_they_do(name: str, family: str, macs: int) -> None:
    assert cost_error.family_of(name) == family
    assert cost_error.multiply_adds(name) == macs


def test_a_kernel_of_the_cpu_is_priced_by_the_rates_of_layouts() -> None:
    rates = Rates(kernel_macs_per_ns=10.0, stream_bytes_per_ns=5.0)
    nodes = [
        *[
            Node(
                name="contraction_4x5x6",
                kind="kernel",
                label="",
                read_bytes=70,
                written_bytes=50,
                weight_bytes=20,
                time_ns=9,
            )
        ]
        * 2,
        Node(name="rows_4x5", kind="kernel", label="", read_bytes=80, written_bytes=20, time_ns=None),
        Node(name="rows_4x6", kind="kernel", label="", read_bytes=None, written_bytes=20, time_ns=7),
        Node(name="x", kind="input", label=""),
    ]
    (found,) = cost_error.cpu_samples("m", nodes, rates)
    assert found == Sample("m", "contraction_4x5x6", "contraction", 2, 120 / 10 + 100 / 5, 9)


def timed(models: int = 3, device: Roofline = TRUE) -> list[Timed]:
    """Kernels of several kinds whose times follow a roofline."""
    works = [
        KernelWork("rows_1x1", 1, {32: 10}, 1000, 2000, 0),
        KernelWork("contraction_1x1", 2, {32: 40_000_000}, 1000, 2000, 0),
        KernelWork("contraction_2x1", 1, {32: 10}, 1000, 9_000_000, 0),
        KernelWork("contraction_3x1", 1, {32: 10}, 1000, 0, 30_000_000),
    ]
    return [Timed(f"m{number}", work, cost_error.gpu_ns(work, device)) for number in range(models) for work in works]


def test_the_fit_finds_the_rates_behind_the_times() -> None:
    fitted = cost_error.fit_roofline(timed(), START)
    for field in ("buffer_bytes_per_ns", "image_bytes_per_ns", "f32_operations_per_ns", "kernel_launch_ns"):
        assert getattr(fitted, field) == pytest.approx(getattr(TRUE, field), rel=0.03), field
    assert fitted.f16_operations_per_ns == pytest.approx(2 * fitted.f32_operations_per_ns)


def test_a_fit_is_tried_on_models_that_it_has_not_seen() -> None:
    samples = timed(2)
    twice = [Timed("slow", each.work, 2 * each.measured_ns) for each in timed(1)]
    found = cost_error.errors(cost_error.cross_validated([*samples, *twice], START))
    # The others do not know that this model is twice as slow.
    assert found["modelled_over_measured_by_model"]["slow"] == pytest.approx(0.5, rel=0.05)
    assert cost_error.cross_validated(timed(1), START) == []


def test_errors_count_kernels_once_and_models_by_calls() -> None:
    samples = [
        Sample("a", "rows_1x1", "rows", 9, 10.0, 20.0),
        Sample("a", "contraction_1x1", "contraction", 1, 30.0, 30.0),
    ]
    found = cost_error.errors(samples)
    assert found["kernels"] == 2
    assert found["median_relative_error"] == pytest.approx(0.25)
    assert found["median_measured_over_modelled"] == pytest.approx(1.5)
    assert found["modelled_over_measured_by_model"] == {"a": round(120 / 210, 4)}
    assert cost_error.by_family(samples)["rows"]["median_relative_error"] == pytest.approx(0.5)


def test_a_factor_of_a_family_comes_from_the_other_models() -> None:
    samples = [
        Sample("a", "rows_1x1", "rows", 1, 10.0, 30.0),
        Sample("b", "rows_1x1", "rows", 1, 10.0, 20.0),
        Sample("b", "contraction_1x1", "contraction", 1, 10.0, 10.0),
    ]
    found = cost_error.scaled_by_family(samples)
    assert [(each.model, each.modelled_ns) for each in found] == [("a", 20.0), ("b", 30.0)]


def test_the_command_compares_with_a_table_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_script()
    works = [each.work for each in timed(1)]
    table = {
        name: {
            work.name: {
                "buffer_us": cost_error.gpu_ns(work, TRUE) / 1e3,
                "image_us": cost_error.gpu_ns(work, TRUE) / 1e3,
            }
            for work in works[:3]
        }
        for name in ("swin", "vit")
    }
    times, output = tmp_path / "times.json", tmp_path / "cost.json"
    times.write_text(json.dumps({"kernels_us": table}))
    monkeypatch.setattr(script.api, "emit", lambda *arguments, **options: "")
    monkeypatch.setattr(script, "read_work", lambda path: ModelWork(tuple(works), 0, 0))
    monkeypatch.setattr(script, "roofline_of", lambda target: TRUE)
    command = ["cost_model.py", "nvidia", "swin.onnx", "vit.onnx", "--measured", str(times), "-o", str(output), "--fit"]
    monkeypatch.setattr(sys, "argv", command)
    assert script.main() == 0
    part = json.loads(output.read_text())["targets"]["nvidia"]
    assert part["errors"]["kernels"] == 12, "three of four kernels have times, in two storages and two models"
    assert part["errors"]["median_relative_error"] == 0
    assert part["recalibrated"]["kernels"] == 12
    assert "| nvidia | shipped | 12 | 1.00 | 0% |" in output.with_suffix(".md").read_text()
    assert "buffer_bytes_per_ns: 300.0" in capsys.readouterr().out
    monkeypatch.setattr(
        sys, "argv", ["cost_model.py", "nvidia", "bert.onnx", "--measured", str(times), "-o", str(output)]
    )
    assert script.main() != 0
    assert "no kernels of 'bert' were timed" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_measures_a_compiled_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    materialize(ZOO / "resnet50.onnx", tmp_path / "small.onnx")
    api.compile(tmp_path / "small.onnx", tmp_path / "small-cpu")
    output = tmp_path / "cost.json"
    script = load_script()
    command = ["cost_model.py", "cpu", str(tmp_path / "small-cpu"), "--runs", "2", "-o", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    assert script.main() == 0
    part = json.loads(output.read_text())["targets"]["cpu"]
    assert part["errors"]["kernels"] > 10
    assert all(kernel["modelled_ns"] > 0 and kernel["measured_ns"] > 0 for kernel in part["kernels"])
    assert "contraction" in part["by_family"]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cost_model", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
