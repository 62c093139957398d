"""Which node a kernel of the page is called after, and what `explain` says of a border that a kernel copies."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_mlir as sm
from smartmem_mlir.api.graphs import graphs_of

RANDOM = np.random.default_rng(3)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> sm.CompiledModel:
    """An image with a border of its own, a convolution whose result the next one reads with a border, and that one."""
    shapes = {"w1": (32, 3, 3, 3), "w2": (24, 32, 3, 3)}
    weights = [numpy_helper.from_array(RANDOM.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()]
    weights.append(numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "border"))
    nodes = [
        helper.make_node("Pad", ["image", "border"], ["a"], "around"),
        helper.make_node("Conv", ["a", "w1"], ["b"], "stem", strides=[2, 2]),
        helper.make_node("Relu", ["b"], ["c"], "positive"),
        helper.make_node("Conv", ["c", "w2"], ["d"], "second", strides=[2, 2], pads=[1, 1, 1, 1]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, 64, 64))
    result = helper.make_tensor_value_info("d", TensorProto.FLOAT, (1, 24, 16, 16))
    graph = helper.make_graph(nodes, "convolutions", [image], [result], weights)
    path = tmp_path_factory.mktemp("names") / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return sm.compile(path, path.parent / "out", target="cpu")


def test_a_kernel_is_called_after_what_it_computes(compiled: sm.CompiledModel) -> None:
    """Not after the convolution for which it writes a border."""
    graphs, error = graphs_of(compiled)
    assert error is None
    before, after = graphs["before"], graphs["after"]
    # The third transposes the result for the caller.
    assert [node.label for node in after.nodes if node.kind == "kernel"][:2] == ["positive", "second"]
    computed = {node.name: node.computed_by for node in before.nodes if node.kind == "operator" and not node.verdict}
    assert computed == {"stem": "positive", "positive": "positive", "second": "second"}


def test_what_a_kernel_copies_inside_is_not_called_free(compiled: sm.CompiledModel) -> None:
    (border,) = compiled.report.movements
    assert border.node == "around"
    assert border.how.startswith("copied inside the kernel that reads it")
    # Every element of the image at least once.
    assert int(border.how.partition("(")[2].split()[0]) >= 4 * 3 * 64 * 64
    assert compiled.verify().matches
