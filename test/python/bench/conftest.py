"""Fixtures of the harness's tests: engines that behave as told."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smartmem_mlir.bench.engines import Engine
from smartmem_mlir.bench.measure import Entrant
from smartmem_mlir.bench.reference import Workload

FAKE_PEER = Path(__file__).with_name("fake_peer.py")
OUTPUT = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    """One input and the output that a right engine gives."""
    np.save(tmp_path / "input.npy", np.zeros((2, 3), np.float32))
    np.save(tmp_path / "output.npy", OUTPUT)
    return Workload((tmp_path / "input.npy",), (OUTPUT,))


@pytest.fixture
def fake(tmp_path: Path, workload: Workload) -> Callable[..., Entrant]:
    """Make an entrant whose engine follows a plan; see :mod:`fake_peer`."""

    def make(name: str, *, backend: str = "cpu.*", python: Path = Path(sys.executable), **plan: Any) -> Entrant:
        artifact = tmp_path / f"{name}.json"
        plan = {"name": name, "outputs": [str(tmp_path / "output.npy")], **plan}
        artifact.write_text(json.dumps(plan))
        engine = Engine(name, name.title(), python, FAKE_PEER, {"cpu": backend}, converts=True, setup=f"setup {name}")
        return Entrant(engine, artifact)

    return make
