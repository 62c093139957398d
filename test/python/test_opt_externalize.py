"""Constants out of the IR, as importers do it."""

from __future__ import annotations

import mlir.ir as ir
import numpy as np
import pytest

from smartmem_mlir.ir import make_context
from smartmem_mlir.signature import NUMPY_DTYPES
from smartmem_mlir.transforms.externalize_constants import externalize_constants, write_archive


@pytest.mark.parametrize("dtype", sorted(set(NUMPY_DTYPES) - {"ui8"}))
def test_values_of_every_type_survive(dtype):
    values = np.arange(40).reshape(5, 8).astype(NUMPY_DTYPES[dtype])
    text = np.array2string(values, separator=",", threshold=100).lower() if dtype == "i1" else str(values.tolist())
    with make_context():
        module = ir.Module.parse(f"%0 = arith.constant dense<{text}> : tensor<5x8x{dtype}>")
        found = externalize_constants(module.operation, min_elements=40)
        assert "smartmem.parameter @constant.0" in str(module)
        assert module.operation.verify()
    assert list(found) == ["constant.0"]
    assert found["constant.0"].dtype == values.dtype
    assert found["constant.0"].flags.c_contiguous
    np.testing.assert_array_equal(found["constant.0"], values)


def test_the_threshold_is_inclusive():
    with make_context():
        text = "%0 = arith.constant dense<[1, 2, 3]> : tensor<3xi32>"
        assert externalize_constants(ir.Module.parse(text).operation, min_elements=4) == {}
        assert list(externalize_constants(ir.Module.parse(text).operation, min_elements=3)) == ["constant.0"]


def test_values_outlive_the_module():
    with make_context():
        module = ir.Module.parse(
            "%0 = arith.constant dense_resource<r> : tensor<2xf32>\n"
            '{-# dialect_resources: { builtin: { r: "0x040000000000803F00000040" } } #-}'
        )
        values = externalize_constants(module.operation, min_elements=1)
        del module
    assert values["constant.0"].tolist() == [1.0, 2.0]


def test_an_archive_is_complete_or_absent(tmp_path):
    path = tmp_path / "weights.npz"
    write_archive(path, {"a/b": np.ones(3)})
    assert np.load(path)["a/b"].tolist() == [1, 1, 1]

    class Broken:
        def __array__(self, *args, **kwargs):
            raise MemoryError

    before = path.read_bytes()
    with pytest.raises(MemoryError):
        write_archive(path, {"a": Broken()})
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["weights.npz"]
