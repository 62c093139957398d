"""The zoo with PyTorch. Runs where the `[zoo]` extra is installed; the committed graphs carry its results elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch", reason="needs the optional extra [zoo]; PyTorch is no dependency of the compiler")

from smartmem_mlir.errors import InvalidModelError, OptionError  # noqa: E402
from smartmem_mlir.zoo.build import build, streamed_recipe  # noqa: E402
from smartmem_mlir.zoo.cards import CARDS  # noqa: E402
from smartmem_mlir.zoo.counting import measure  # noqa: E402
from smartmem_mlir.zoo.export import export  # noqa: E402
from smartmem_mlir.zoo.matching import batch_norms, describe  # noqa: E402
from smartmem_mlir.zoo.randomize import draws, randomize  # noqa: E402
from smartmem_mlir.zoo.recipe import Drawn, Folded, Literal, get_record, materialize, tensors  # noqa: E402
from smartmem_mlir.zoo.registry import create  # noqa: E402
from smartmem_mlir.zoo.sizes import load  # noqa: E402
from smartmem_mlir.zoo.verify import Reference, run_onnx  # noqa: E402


def pytorch_output(name: str, small: bool = True) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Output and inputs of a model with its zoo weights."""
    card = CARDS[name]
    module = create(card, small)
    randomize(module, 0, card.gain)
    inputs = {spec.name: spec.draw(0).values() for spec in card.input_specs(small)}
    with torch.no_grad():
        output = module(*(torch.from_numpy(value) for value in inputs.values()))
    return output.numpy(), inputs


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_build_equals_pytorch(tmp_path: Path, exporter: str) -> None:
    file = build("vit", tmp_path / "vit.onnx", small=True, exporter=exporter)
    output, inputs = pytorch_output("vit")
    np.testing.assert_allclose(run_onnx(file, inputs), output, rtol=1e-4, atol=1e-4)
    assert [path.name for path in tmp_path.iterdir()] == ["vit.onnx"]


def test_a_batch_is_computed_example_by_example(tmp_path: Path) -> None:
    file = build("swin", tmp_path / "swin.onnx", small=True, batch=3)
    one, inputs = pytorch_output("swin")
    assert CARDS["swin"].at_batch(3).small_inputs[0].shape[0] == 3
    images = {name: np.concatenate([value, -value, value]) for name, value in inputs.items()}
    output = run_onnx(file, images)
    assert output.shape == (3, *one.shape[1:])
    np.testing.assert_allclose(output[[0, 2]], np.concatenate([one, one]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("opset", [18, 20, 23])
def test_opset_is_what_was_asked(tmp_path: Path, opset: int) -> None:
    model = onnx.load(build("convnext", tmp_path / "m.onnx", small=True, opset=opset))
    assert model.opset_import[0].version == opset


def test_seed_changes_weights_only(tmp_path: Path) -> None:
    files = [build("vit", tmp_path / f"{i}.onnx", small=True, seed=seed) for i, seed in enumerate((0, 0, 1))]
    contents = [file.read_bytes() for file in files]
    assert contents[0] == contents[1] != contents[2]


def test_large_model_wants_dynamo(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"pythia: .* only the dynamo exporter can stream"):
        build("pythia", tmp_path / "m.onnx", exporter="torchscript")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["pythia", "sd-unet"])
def test_streamed_model_equals_pytorch(tmp_path: Path, name: str) -> None:
    recipe = streamed_recipe(CARDS[name], small=True, opset=18, seed=0)
    # Every weight became a record: none was ever allocated, none is a Transpose that runs at inference.
    assert all(get_record(tensor) is not None or np.prod(tensor.dims) < 20_000 for tensor in tensors(recipe))
    produced = {output for node in recipe.graph.node for output in node.output}
    weights = {tensor.name for tensor in recipe.graph.initializer}
    transposes = [node for node in recipe.graph.node if node.op_type == "Transpose"]
    assert all(node.input[0] in produced and node.input[0] not in weights for node in transposes)
    materialize(recipe, tmp_path / "m.onnx", external=True)
    output, inputs = pytorch_output(name)
    assert Reference.of(output).error(run_onnx(tmp_path / "m.onnx", inputs)) < 1e-4


@pytest.mark.parametrize("name", list(CARDS))
def test_every_weight_is_randomised(name: str) -> None:
    """No parameter or statistic keeps a value that hides errors: all zeros, all ones, or any constant."""
    module = create(CARDS[name], small=True)
    randomize(module, 0, CARDS[name].gain)
    statistics = {key: value for key, value in module.named_buffers() if "running" in key}
    for key, value in {**dict(module.named_parameters()), **statistics}.items():
        if value.numel() > 1:
            assert value.std() > 0, key
            assert not torch.all((value == 0) | (value == 1)), key


UNSEEN = {
    # softmax(q (k + b)) does not depend on b; an instance norm removes the bias before it.
    "crossformer": "position.mlp.9.bias",
    "sd-text-encoder": "k_proj.bias",
    "sd-vae-decoder": "to_k.bias",
    # So does the one behind a residual sum: what a block adds to a whole channel is gone after the next block's.
    "fst": ("conv.bias", "layers.2.norm.bias"),
}
"""Weights that a network's own mathematics cancels."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CARDS if name != "pythia-70m"])
def test_an_error_in_any_weight_shows_in_the_output(name: str) -> None:
    """Replacing a tensor by zeros (ones, for scales) moves the output by more than a tolerance could hide.

    Of each network two dozen tensors, evenly spread over its depth.
    """
    card = CARDS[name]
    module = create(card, small=True)
    randomize(module, 0, card.gain)
    inputs = [torch.from_numpy(spec.draw(0).values()) for spec in card.small_inputs]
    statistics = {key: value for key, value in module.named_buffers() if "running" in key}
    with torch.no_grad():
        expected = module(*inputs)
        weights = [*module.named_parameters(), *statistics.items()]
        seen = [(key, value) for key, value in weights if not (name in UNSEEN and key.endswith(UNSEEN[name]))]
        for key, value in seen[:: max(1, len(seen) // 24)]:
            original = value.clone()
            value.fill_(1.0 if key.endswith("running_var") or ("norm" in key and key.endswith("weight")) else 0.0)
            moved = (module(*inputs) - expected).abs().max() / expected.std()
            value.copy_(original)
            assert moved > 2e-4, key


def test_same_weights_in_full_and_hollow_modules() -> None:
    card = CARDS["pythia"]
    assert draws(create(card, True)) == draws(create(card, True, device="meta"))


class ConvNet(torch.nn.Module):
    """Convolution with BatchNorm, with and without bias, then a Linear: what exporters fold and transpose."""

    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Conv2d(3, 24, 3, bias=False)
        self.a_norm = torch.nn.BatchNorm2d(24)
        self.b = torch.nn.Conv2d(24, 24, 3, groups=2)
        self.b_norm = torch.nn.BatchNorm2d(24, eps=1e-3)
        self.c = torch.nn.Linear(24, 18)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[1, 3, 8, 8] -> [1, 4, 4, 18]."""
        x = self.b_norm(self.b(self.a_norm(self.a(x)).relu())).relu()
        return self.c(x.permute(0, 2, 3, 1))


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_folded_and_transposed_weights_are_recognised(tmp_path: Path, exporter: str) -> None:
    module = ConvNet().eval()
    weights = randomize(module)
    x = torch.rand(1, 3, 8, 8)
    card = replace(CARDS["resnet50"], name="convnet")
    model = export(module, (x,), card, exporter, 18)
    describe(model, weights, batch_norms(module, weights))
    records = [record for tensor in tensors(model) if (record := get_record(tensor)) is not None]
    assert not any(isinstance(record, Literal) for record in records)
    assert sum(isinstance(record, Folded) for record in records) == 4
    assert {record.permutation for record in records if isinstance(record, Drawn)} == {(1, 0), (0,)}
    materialize(model, tmp_path / "m.onnx")
    with torch.no_grad():
        expected = module(x).numpy()
    np.testing.assert_allclose(run_onnx(tmp_path / "m.onnx", {"image": x.numpy()}), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_degenerate_output_is_refused(value: float) -> None:
    with pytest.raises(InvalidModelError, match="degenerate output"):
        Reference.of(np.full((2, 3), value, np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CARDS))
def test_recorded_sizes_are_current(name: str) -> None:
    for small in (False, True):
        assert measure(CARDS[name], small) == load()[name, small]
