"""Run the functions of a compiled batch: `execute.py FOLDER DEVICE`, a process of its own, since code may crash it.

FOLDER holds `module.vmfb`, `signatures.json` and `arguments.npz`; `results.npz` is written to it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from smartmem_mlir.iree.runtime import LoadedModule
from smartmem_mlir.signature import TensorSpec


def main(folder: Path, device: str) -> None:
    """Call each function once."""
    signatures = json.loads((folder / "signatures.json").read_text())
    module = None
    results = {}
    with np.load(folder / "arguments.npz") as arguments:
        for name, sides in signatures.items():
            inputs, outputs = (
                [TensorSpec(f"{i}", tuple(shape), element) for i, (element, shape) in enumerate(side)] for side in sides
            )
            if module is None:
                module = LoadedModule(folder / "module.vmfb", None, device, inputs, outputs, entry=name)
            else:
                module = module.with_entry(name, inputs, outputs)
            values = module([arguments[f"{name}/{spec.name}"] for spec in inputs])
            results |= {f"{name}/{i}": value for i, value in enumerate(values)}
    np.savez(folder / "results.npz", **results)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
