"""Boolean constants of any size, written in ONNX or MLIR, compile and keep their values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_mlir as sm
from smartmem_mlir.i1_text import unpack_i1

PARAMETER = 70_000
"""Elements above which a boolean constant is a parameter and no literal."""


def mask(elements: int) -> np.ndarray:
    return np.random.default_rng(elements).random(elements) < 0.5


@pytest.mark.parametrize("baseline", [True, False], ids=["baseline", "ours"])
@pytest.mark.parametrize("splat", [False, True], ids=["random", "splat"])
def test_onnx_masks(tmp_path: Path, baseline: bool, splat: bool) -> None:
    sizes = (1, 5, 100, 101, 128, 2401, PARAMETER)
    masks = {f"m{n}": np.ones(n, np.bool_) if splat else mask(n) for n in sizes}
    graph = helper.make_graph(
        [helper.make_node("Where", [f"m{n}", f"x{n}", f"z{n}"], [f"y{n}"]) for n in sizes],
        "masks",
        [helper.make_tensor_value_info(f"{v}{n}", TensorProto.FLOAT, [n]) for n in sizes for v in "xz"],
        [helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, [n]) for n in sizes],
        [numpy_helper.from_array(values, name) for name, values in masks.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = tmp_path / "masks.onnx"
    path.write_bytes(model.SerializeToString())
    compiled = sm.compile(path, tmp_path / "out", baseline=baseline)
    assert compiled.report.weights == 1
    result = compiled.verify(seeds=(0,))
    assert result.matches
    assert max(d.relative_l2 for d in result.by_seed[0]) == 0.0


@pytest.mark.parametrize("written", ["packed", "unpacked", "resource"])
@pytest.mark.parametrize("elements", [8, 104, 2401, PARAMETER])
def test_mlir_masks(tmp_path: Path, written: str, elements: int) -> None:
    values = mask(elements)
    packed = f'dense<"0x{np.packbits(values, bitorder="little").tobytes().hex()}"> : tensor<{elements}xi1>'
    constant = {
        "packed": packed,
        "unpacked": unpack_i1(packed),
        "resource": f"dense_resource<blob> : tensor<{elements}xi1>",
    }[written]
    path = tmp_path / "mask.mlir"
    path.write_text(
        f"""
        func.func @main(%x: tensor<{elements}xi1>) -> tensor<{elements}xi1> {{
          %m = arith.constant {constant}
          %0 = arith.xori %x, %m : tensor<{elements}xi1>
          return %0 : tensor<{elements}xi1>
        }}
        {{-# dialect_resources: {{ builtin: {{ blob: "0x01000000{values.tobytes().hex()}" }} }} #-}}
        """
    )
    compiled = sm.compile(path, tmp_path / "out")
    assert compiled.report.weights == (1 if elements == PARAMETER else 0)
    given = mask(elements + 1)[:elements]
    np.testing.assert_array_equal(compiled.run([given])["output0"], given ^ values)
