"""Export models at full size and compare ONNX Runtime with PyTorch on them.

Run as `python -m smartmem_mlir.zoo.full_check NAME ...`; results go to `benchmarks/zoo_checks.yaml`, which the table
of models shows. Needs the memory of the largest model about twice.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import yaml

from smartmem_mlir.zoo.build import build
from smartmem_mlir.zoo.randomize import DEFAULT_SEED, randomize
from smartmem_mlir.zoo.recipe import load_recipe
from smartmem_mlir.zoo.registry import create, find
from smartmem_mlir.zoo.verify import run_onnx

RESULTS = Path("benchmarks/zoo_checks.yaml")


@dataclass(frozen=True)
class Check:
    """What one export came to.

    Args:
        nodes: Nodes of the ONNX graph, Constant nodes not counted.
        megabytes: Size of the file, with its data file.
        deviation: Largest difference from PyTorch, in standard deviations of the output.
    """

    nodes: int
    megabytes: int
    deviation: float


def check(name: str, scratch: Path) -> Check:
    """Build the model at full size with the default exporter, run it both ways."""
    card = find(name)
    file = build(name, scratch / f"{name}.onnx")
    inputs = {spec.name: spec.draw(DEFAULT_SEED).values() for spec in card.inputs}
    actual = run_onnx(file, inputs)
    module = create(card, small=False)
    randomize(module, DEFAULT_SEED, card.gain)
    import torch

    with torch.no_grad():
        expected = module(*(torch.from_numpy(value) for value in inputs.values())).numpy()
    nodes = [node for node in load_recipe(file).graph.node if node.op_type != "Constant"]
    size = sum(path.stat().st_size for path in scratch.glob(f"{name}.onnx*"))
    deviation = float(np.abs(actual - expected).max() / expected.std())
    return Check(len(nodes), round(size / 1e6), float(f"{deviation:.1e}"))


def results() -> dict[str, Check]:
    """The recorded checks by model name."""
    return {name: Check(**fields) for name, fields in (yaml.safe_load(RESULTS.read_text()) or {}).items()}


def main(names: list[str]) -> None:
    """Check the named models one after the other and record each at once."""
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            found = check(name, Path(scratch))
        recorded = {known: asdict(entry) for known, entry in results().items()} if RESULTS.exists() else {}
        recorded[name] = asdict(found)
        RESULTS.write_text(
            "# Written by smartmem_mlir.zoo.full_check.\n" + yaml.safe_dump(dict(sorted(recorded.items())))
        )


if __name__ == "__main__":
    main(sys.argv[1:])
