"""PyTorch programs. torch is not a dependency, so these tests run where it is installed (the torch job)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smartmem_mlir.errors import InvalidModelError, OptionError, UnsupportedModelError
from smartmem_mlir.ingress import ImportOptions, load

torch = pytest.importorskip("torch", reason="torch is optional: pip install torch onnxscript")
pytest.importorskip("onnxscript", reason="torch's ONNX exporter needs it: pip install onnxscript")


def network() -> object:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))


def test_module_with_example_inputs() -> None:
    module = network()
    imported = load((module, (torch.randn(2, 8),)))
    assert imported.kind == "torch"
    assert [s.shape for s in imported.inputs] == [(2, 8)]
    assert [s.shape for s in imported.outputs] == [(2, 4)]
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}  # type: ignore[attr-defined]
    assert set(imported.parameters) == {"0.weight", "0.bias", "2.weight"}  # the last bias is a literal
    for name, parameter in imported.parameters.items():
        np.testing.assert_array_equal(parameter.load(), weights[name])
        assert f'smartmem.parameter @"{name}"' in imported.module


def test_saved_program(tmp_path: Path) -> None:
    program = torch.export.export(network(), (torch.randn(2, 8),))
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    from_file, from_memory = load(path, ImportOptions(trusted=True)), load(program)
    assert from_file.name == "net"
    assert from_file.module == from_memory.module


def test_bad_sources(tmp_path: Path) -> None:
    damaged = tmp_path / "bad.pt2"
    damaged.write_bytes(b"not an archive")
    with pytest.raises(InvalidModelError, match="cannot load"):
        load(damaged, ImportOptions(trusted=True))
    with pytest.raises(OptionError, match="cannot import a int"):
        load(3)
    with pytest.raises(UnsupportedModelError, match=r"torch\.export fails"):
        load((network(), (torch.randn(3, 3, 3),)))
