"""Runs programs with tensors in images, in a process of its own: the layer is enabled with the first Vulkan device.

    run_images.py FOLDER

Each program is run twice in a row by shaders, so that there is a tensor between them that can be an image. Writes the
results to FOLDER/results.npz, and the lowered module to FOLDER/lowered.mlir.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import numpy as np
from compiled import CompiledPrograms, vulkan_device
from texel_programs import PROGRAMS, build

from smartmem_mlir.iree.image_layer import enable


def main() -> None:
    """Compiles and runs every program."""
    enable()
    folder = Path(sys.argv[1])
    device = {name: text.replace("prefers_images = false", "prefers_images = true") for name, text in _device().items()}
    programs = [build(name) for name in PROGRAMS]
    compiled = CompiledPrograms(programs, folder, device, "paper", "vulkan", "vulkan", "vulkan")
    (folder / "lowered.mlir").write_text(compiled.lowered)
    results = {program.name: compiled.run(program)[0] for program in programs}
    np.savez(folder / "results.npz", **results)  # type: ignore[arg-type]


def _device() -> dict[str, str]:
    return vulkan_device(1024)


if __name__ == "__main__":
    main()
