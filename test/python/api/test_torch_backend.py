"""`torch.compile(backend="smartmem")` and `compile(module, example_inputs)` against eager PyTorch.

torch is no dependency: these tests run where it is installed, as the zoo's do.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is optional: pip install torch onnxscript")
pytest.importorskip("onnxscript", reason="torch's ONNX exporter needs it: pip install onnxscript")

import smartmem_mlir as sm  # noqa: E402
from smartmem_mlir.api.torch_backend import smartmem  # noqa: E402
from smartmem_mlir.errors import OptionError, UnsupportedModelError  # noqa: E402
from smartmem_mlir.zoo.cards import CARDS  # noqa: E402
from smartmem_mlir.zoo.randomize import randomize  # noqa: E402
from smartmem_mlir.zoo.registry import create  # noqa: E402


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 4)
    return torch.nn.Sequential(*layers).eval()


def zoo_model(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    card = CARDS[name]
    module = create(card, small=True)
    randomize(module, 0, card.gain)
    (spec,) = card.input_specs(True)
    return module.eval(), torch.from_numpy(spec.draw(0).values())


@pytest.fixture(autouse=True)
def inference():
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert isinstance(found, torch.Tensor)
    assert found.dtype == expected.dtype
    assert torch.linalg.norm(found - expected) <= 1e-5 * torch.linalg.norm(expected)


@pytest.mark.parametrize("name", ["resnet50", "swin"])
def test_zoo_models_match_eager(name: str) -> None:
    module, image = zoo_model(name)
    compiled = torch.compile(module, backend=smartmem, fullgraph=True)
    assert_close(compiled(image), module(image))


def test_torch_finds_the_backend_by_name() -> None:
    assert "smartmem" in torch._dynamo.list_backends()


def test_shapes_and_numbers() -> None:
    """A second batch size makes Dynamo pass the size as a number; each size has a model of its own."""

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 2) * x.shape[0]

    compiled = torch.compile(scaled, backend=smartmem)
    for batch in (2, 3, 4, 3):
        x = torch.randn(batch, 6)
        assert_close(compiled(x), scaled(x))


def test_weights_that_change_are_seen() -> None:
    module, x = network(), torch.randn(2, 8)
    compiled = torch.compile(module, backend=smartmem)
    assert_close(compiled(x), module(x))
    module[0].weight.mul_(3.0)
    module[2].running_mean.add_(1.0)
    assert_close(compiled(x), module(x))
    module[3].weight = torch.nn.Parameter(torch.ones(4, 32))
    assert_close(compiled(x), module(x))


def test_outputs_of_all_kinds() -> None:
    def several(x: torch.Tensor, y: torch.Tensor) -> tuple[object, ...]:
        return x + y, {"none": None, "input": y, "number": 7}, (x * y).sum(dim=1), x > y

    x, y = torch.randn(2, 6), torch.randn(2, 6)
    found = torch.compile(several, backend=smartmem)(x, y)
    expected = several(x, y)
    assert_close(found[0], expected[0])
    assert found[1]["none"] is None
    assert found[1]["number"] == 7
    assert torch.equal(found[1]["input"], y)
    assert_close(found[2], expected[2])
    assert torch.equal(found[3], expected[3])


def test_gradients_are_refused() -> None:
    with torch.enable_grad(), pytest.raises(Exception, match=r"computes no gradients; .*no_grad"):
        torch.compile(network(), backend=smartmem)(torch.randn(2, 8))


def test_options_reach_the_compiler() -> None:
    compiled = torch.compile(network(), backend=smartmem, options={"target": "no-such-target"})
    with pytest.raises(Exception, match="no-such-target"):
        compiled(torch.randn(2, 8))


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(Exception, match="mode 'max-autotune' is not one"):
        torch.compile(network(), backend=smartmem, mode="max-autotune")(torch.randn(2, 8))


def test_writing_to_an_input_is_refused() -> None:
    with pytest.raises(Exception, match="the program writes to"):
        torch.compile(lambda x: x.add_(1.0), backend=smartmem)(torch.randn(2, 8))


class Counter(torch.nn.Module):
    """Counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1.0)
        return x + self.calls


def test_modules_with_state_are_refused() -> None:
    x = torch.randn(2, 8)
    with pytest.raises(UnsupportedModelError, match="writes to 'calls'"):
        sm.compile(Counter(), (x,))
    with pytest.raises(UnsupportedModelError, match="writes to 'calls'"):
        sm.compile(torch.export.export(Counter(), (x,)))


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(OptionError, match="cannot compile a function"):
        sm.compile(lambda x: x, (torch.randn(2, 8),))
    with pytest.raises(OptionError, match="cannot import a int"):
        sm.compile(3)


def test_compile_returns_a_callable() -> None:
    module, x = network(), torch.randn(2, 8)
    compiled = sm.compile(module, (x,), target="cpu")
    assert_close(compiled(x), module(x))
    as_array = compiled(x.numpy())
    assert isinstance(as_array, np.ndarray)
    np.testing.assert_allclose(as_array, module(x).numpy(), rtol=1e-5, atol=1e-6)
    folder = compiled.path
    assert folder.is_dir()
    del compiled
    assert not folder.exists()


def test_example_inputs_may_be_arrays_and_the_directory_may_stay(tmp_path: Path) -> None:
    module, x = network(), np.ones((2, 8), np.float32)
    compiled = sm.compile(module, tmp_path / "out", example_inputs=x)
    np.testing.assert_allclose(sm.load(tmp_path / "out")(x), compiled(x))
    assert compiled.report.source.kind == "torch"


def test_bf16_is_named_in_the_error() -> None:
    compiled = sm.compile(network(), (torch.randn(2, 8),))
    with pytest.raises(OptionError, match=r"not an array: .*BFloat16"):
        compiled(torch.randn(2, 8).bfloat16())
