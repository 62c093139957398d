"""The committed graphs: with their weights put back they compute what PyTorch computed. Needs no torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from smartmem_mlir.errors import InvalidModelError, OptionError
from smartmem_mlir.zoo import materialize
from smartmem_mlir.zoo.cards import CARDS
from smartmem_mlir.zoo.draw import Draw
from smartmem_mlir.zoo.recipe import Drawn, Folded, Literal, get_record, load_recipe, metadata, set_record, values_of
from smartmem_mlir.zoo.verify import reference, reference_inputs, run_onnx

FOLDER = Path(__file__).parents[2] / "cases" / "zoo"
RECIPES = sorted(FOLDER.glob("*.onnx"))
LARGEST_FILE = 300_000
TOLERANCE = 1e-4  # of the output's standard deviation; measured: at most 6e-6


def recipe_of(name: str) -> Path:
    """The committed graph of a model."""
    return FOLDER / f"{name.replace('-', '_')}.onnx"


def drawn_model(tmp_path: Path, shape: tuple[int, ...] = (4, 3), permutation: tuple[int, ...] = (1, 0)) -> Path:
    """A one-node recipe: y = x + w with a transposed random w."""
    draw = Draw("w", shape, -1.0, 1.0, seed=7)
    weight = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[shape[axis] for axis in permutation])
    set_record(weight, Drawn(draw, permutation))
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, list(weight.dims))
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, list(weight.dims))
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    file = tmp_path / "recipe.onnx"
    file.write_bytes(model.SerializeToString())
    return file


def test_every_model_has_a_small_graph() -> None:
    assert {recipe_of(name) for name in CARDS if name != "pythia-70m"} <= set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda file: file.stem)
def test_output_equals_pytorch(recipe: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    materialize(recipe, model)
    assert reference(recipe).error(run_onnx(model, reference_inputs(recipe))) < TOLERANCE


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda file: file.stem)
def test_graph_is_small_static_and_clean(recipe: Path) -> None:
    assert recipe.stat().st_size < LARGEST_FILE
    model = load_recipe(recipe)
    # TorchScript does not see that the output of Swin has a static shape; the importer must.
    outputs = [] if "torchscript" in recipe.stem else model.graph.output
    for value in [*model.graph.input, *outputs]:
        assert all(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim), value.name
    assert not any(node.metadata_props or node.doc_string for node in model.graph.node)
    assert {opset.domain for opset in model.opset_import} == {""}


@pytest.mark.parametrize("recipe", [file for file in RECIPES if "torchscript" not in file.stem], ids=lambda f: f.stem)
def test_inputs_and_parameters_match_the_card(recipe: Path) -> None:
    model = load_recipe(recipe)
    card = CARDS[metadata(model)["model"]]
    found = {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim) for value in model.graph.input
    }
    assert found == {spec.name: spec.shape for spec in card.small_inputs}
    assert [value.name for value in model.graph.output] == [card.output]
    weights = sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer)
    assert 0.9e6 < weights < 3e6


def test_routing_is_decided_at_run_time() -> None:
    operators = {node.op_type for node in load_recipe(recipe_of("biformer")).graph.node}
    assert {"TopK", "GatherElements"} <= operators or {"TopK", "GatherND"} <= operators


def test_external_weights_equal_inline_ones(tmp_path: Path) -> None:
    recipe = recipe_of("vit")
    materialize(recipe, tmp_path / "inline.onnx")
    materialize(recipe, tmp_path / "external.onnx", external=True)
    file, data = tmp_path / "external.onnx", tmp_path / "external.onnx.data"
    assert file.stat().st_size < 50_000
    assert data.stat().st_size > 4 * 1.4e6
    inputs = reference_inputs(recipe)
    np.testing.assert_array_equal(
        run_onnx(tmp_path / "inline.onnx", inputs), run_onnx(tmp_path / "external.onnx", inputs)
    )


def test_transposed_draw(tmp_path: Path) -> None:
    materialize(drawn_model(tmp_path), tmp_path / "model.onnx")
    x = np.zeros((3, 4), np.float32)
    expected = Draw("w", (4, 3), -1.0, 1.0, seed=7).values().T
    np.testing.assert_array_equal(run_onnx(tmp_path / "model.onnx", {"x": x}), expected)


def test_folded_batch_norm() -> None:
    weight, bias = Draw("w", (5, 2, 3, 3), -1, 1), Draw("b", (5,), -1, 1)
    scale, shift, mean, variance = (Draw(key, (5,), 0.5, 1.5) for key in ("scale", "shift", "mean", "variance"))
    rest = (weight, bias, scale, shift, mean, variance, 1e-3)
    x = np.random.default_rng(0).normal(size=(2, 3, 3))
    by_hand = np.einsum("oikl,ikl->o", weight.values(), x) + bias.values() - mean.values()
    by_hand = by_hand / np.sqrt(variance.values() + 1e-3) * scale.values() + shift.values()
    folded = np.einsum("oikl,ikl->o", Folded("weight", *rest).values(), x) + Folded("bias", *rest).values()
    np.testing.assert_allclose(folded, by_hand, rtol=1e-5)


@pytest.mark.parametrize("values", [np.arange(7), np.eye(3, dtype=np.float32), np.array([True, False])])
def test_literal_round_trip(values: np.ndarray) -> None:
    tensor = onnx.TensorProto(name="t", data_type=onnx.helper.np_dtype_to_tensor_dtype(values.dtype), dims=values.shape)
    set_record(tensor, Literal.of(values))
    np.testing.assert_array_equal(values_of(tensor), values)
    assert isinstance(get_record(tensor), Literal)


def test_record_of_wrong_size_is_refused(tmp_path: Path) -> None:
    file = drawn_model(tmp_path)
    model = load_recipe(file)
    model.graph.initializer[0].dims[0] = 5
    file.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidModelError, match=r"recipe\.onnx: w: the record makes .*\[3, 4\], the graph wants"):
        materialize(file, tmp_path / "model.onnx")


@pytest.mark.parametrize("external", [False, True])
def test_failure_leaves_the_old_file_and_no_other(tmp_path: Path, external: bool) -> None:
    file = drawn_model(tmp_path, (64, 64))
    model = load_recipe(file)
    broken = model.graph.initializer.add()
    broken.CopyFrom(model.graph.initializer[0])
    broken.dims[0] = 5
    file.write_bytes(model.SerializeToString())
    (tmp_path / "model.onnx").write_text("old")
    with pytest.raises(InvalidModelError):
        materialize(file, tmp_path / "model.onnx", external=external)
    assert (tmp_path / "model.onnx").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "recipe.onnx"]


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    recipe = drawn_model(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OptionError, match="folder: is a directory"):
        materialize(recipe, tmp_path / "folder")
    with pytest.raises(OptionError, match=r"recipe\.onnx/m\.onnx: cannot be written: (Not a directory|File exists)"):
        materialize(recipe, recipe / "m.onnx")


def test_unreadable_recipe(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"\xff\xff\xff\xff not a protobuf")
    for file in (bad, tmp_path / "absent.onnx"):
        with pytest.raises(InvalidModelError, match="not a readable ONNX file"):
            materialize(file, tmp_path / "out.onnx")
    with pytest.raises(InvalidModelError, match="not a recipe of the zoo"):
        reference(drawn_model(tmp_path))
