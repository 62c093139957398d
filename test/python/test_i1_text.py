"""Boolean constants cross between MLIR 22 and LLVM 24 with every value in its place."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from mlir import ir

from smartmem_mlir.i1_text import pack_i1, unpack_i1
from smartmem_mlir.iree.toolchain import iree_compile

HEX_FROM = 101
"""Elements from which MLIR prints a constant as hexadecimal bytes."""

SIZES = (1, 2, 7, 8, 9, 100, HEX_FROM, 104, 127, 128, 129, 2401)


def values(elements: int) -> npt.NDArray[np.bool_]:
    return np.random.default_rng(elements).random(elements) < 0.5


def mlir_22(shape: tuple[int, ...], data: npt.NDArray[np.bool_]) -> str:
    """A constant as MLIR 22 prints it."""
    with ir.Context():
        i1 = ir.IntegerType.get_signless(1)
        elements = [ir.BoolAttr.get(bool(value)) for value in data.flat]
        return str(ir.DenseElementsAttr.get(elements, ir.RankedTensorType.get(shape, i1, loc=ir.Location.unknown())))


def llvm_24(shape: tuple[int, ...], data: npt.NDArray[np.bool_]) -> str:
    """A constant as torch-mlir prints it."""
    from torch_mlir import ir as newer

    with newer.Context(), newer.Location.unknown():
        i1 = newer.IntegerType.get_signless(1)
        elements = [newer.BoolAttr.get(bool(value)) for value in data.flat]
        return str(newer.DenseElementsAttr.get(elements, newer.RankedTensorType.get(shape, i1)))


@pytest.mark.parametrize("elements", SIZES)
@pytest.mark.parametrize("kind", ["random", "all", "none", "last"])
def test_each_release_prints_what_the_other_is_given(elements: int, kind: str) -> None:
    last = np.arange(elements) == elements - 1
    data = {"random": values(elements), "all": last | True, "none": last & False, "last": last}[kind]
    old, new = mlir_22((elements,), data), llvm_24((elements,), data)
    assert (old != new) == (elements >= HEX_FROM and kind in ("random", "last"))
    assert pack_i1(new) == old
    assert unpack_i1(old) == new


@pytest.mark.parametrize("shape", [(49, 49), (3, 5, 7, 1), (1, 1, 128)])
def test_shapes(shape: tuple[int, ...]) -> None:
    data = values(int(np.prod(shape))).reshape(shape)
    old, new = mlir_22(shape, data), llvm_24(shape, data)
    assert pack_i1(new) == old
    assert unpack_i1(old) == new
    with ir.Context():
        np.testing.assert_array_equal(np.array(ir.Attribute.parse(pack_i1(new))), data)


def test_translating_twice_changes_nothing() -> None:
    old = mlir_22((49, 49), values(2401).reshape(49, 49))
    assert pack_i1(pack_i1(old)) == old
    assert unpack_i1(unpack_i1(old)) == unpack_i1(old)


@pytest.mark.parametrize("kind", ["tensor<2401xi1, #enc>", "vector<2401xi1>"])
def test_encoded_tensors_and_vectors(kind: str) -> None:
    new = llvm_24((2401,), values(2401)).replace("tensor<2401xi1>", kind)
    assert pack_i1(new) == mlir_22((2401,), values(2401)).replace("tensor<2401xi1>", kind)
    assert unpack_i1(pack_i1(new)) == new


@pytest.mark.parametrize(
    "text",
    [
        'dense<"0x0001020304"> : tensor<5xi4>',
        'dense<"0x00010203"> : tensor<4xi16>',
        'dense<"0x00010203"> : tensor<4xi11>',
        'dense<"0x0102"> : tensor<301xi1>',
        'dense<"0x01"> : tensor<1xi1>',
        'dense<"0x"> : tensor<0xi1>',
        "dense_resource<blob> : tensor<4xi1>",
        r'"op"() {note = "dense<\220x00010001\22> : tensor<4xi1>"}',
    ],
)
def test_what_is_alike_in_both_or_wrong_in_both_stays(text: str) -> None:
    assert pack_i1(text) == text
    assert unpack_i1(text) == text


def test_i4_is_alike_in_both() -> None:
    """The other type that is narrower than a byte: stored in whole bytes, so its text needs no translation."""
    from torch_mlir import ir as newer

    text = f'dense<"0x{bytes(i % 16 for i in range(301)).hex().upper()}"> : tensor<301xi4>'
    with ir.Context():
        assert str(ir.Attribute.parse(text)) == text
    with newer.Context():
        assert str(newer.Attribute.parse(text)) == text


def test_iree_reads_unpacked_and_refuses_packed(tmp_path: Path) -> None:
    """The reason for `unpack_i1`; when IREE changes, this says so."""
    old = mlir_22((2401,), values(2401))
    codes = []
    for constant in (old, unpack_i1(old)):
        source = tmp_path / "module.mlir"
        source.write_text(
            f"func.func @main() -> tensor<2401xi1> {{ %0 = arith.constant {constant} return %0 : tensor<2401xi1> }}"
        )
        command = [str(iree_compile()), str(source), "--compile-to=input", "-o", str(tmp_path / "out.mlir")]
        codes.append(subprocess.run(command, capture_output=True, check=False).returncode)
    assert codes == [1, 0]
