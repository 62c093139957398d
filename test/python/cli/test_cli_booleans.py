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
def test_mlir_masks(tmp_path: Path, written: str) -> None:
    sizes = (8, 104, 2401, PARAMETER)
    types = {n: f"tensor<{n}xi1>" for n in sizes}
    lines = []
    for n in sizes:
        packed = f'dense<"0x{np.packbits(mask(n), bitorder="little").tobytes().hex()}"> : {types[n]}'
        constant = {
            "packed": packed,
            "unpacked": unpack_i1(packed),
            "resource": f"dense_resource<blob{n}> : {types[n]}",
        }[written]
        lines += [f"%m{n} = arith.constant {constant}", f"%y{n} = arith.xori %x{n}, %m{n} : {types[n]}"]
    arguments = ", ".join(f"%x{n}: {types[n]}" for n in sizes)
    results = ", ".join(f"%y{n}" for n in sizes)
    body = "\n          ".join(lines)
    blobs = ", ".join(f'blob{n}: "0x01000000{mask(n).tobytes().hex()}"' for n in sizes)
    path = tmp_path / "masks.mlir"
    path.write_text(
        f"""
        func.func @main({arguments}) -> ({", ".join(types.values())}) {{
          {body}
          return {results} : {", ".join(types.values())}
        }}
        {{-# dialect_resources: {{ builtin: {{ {blobs} }} }} #-}}
        """
    )
    compiled = sm.compile(path, tmp_path / "out")
    assert compiled.report.weights == 1, "the mask that is large"
    assert compiled.report.weight_bytes >= PARAMETER
    given = [mask(n + 1)[:n] for n in sizes]
    for n, x, y in zip(sizes, given, compiled.run(given).values(), strict=True):
        np.testing.assert_array_equal(y, x ^ mask(n), err_msg=f"{n} elements")
