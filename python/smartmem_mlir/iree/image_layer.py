"""The Vulkan layer that gives IREE images: where it is, how it is enabled, and the proof that it is there.

A shader with images is undefined behaviour without the layer: lavapipe crashes, others return zeros. So a module that
has such shaders comes with two small ones, and nothing else of it is loaded before they have answered rightly.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import DeviceError, SmartMemError
from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile

NAME = "VK_LAYER_SMARTMEM_image_memory"
VERSION = 1
"""Interface version of the layer that kernels are generated for."""
MARK = b"smartmem.image.v1 "
"""What a module with image kernels contains."""
CANARIES = {"version": "image_version.vmfb", "mirror": "image_mirror.vmfb"}
"""The modules that ask for the layer, by the name of their source."""
Call = Callable[[Sequence[npt.NDArray[np.generic]]], list[npt.NDArray[np.generic]]]


def layer_directory() -> Path:
    """Where the layer and its manifest are.

    Raises:
        SmartMemError: The installation has none.
    """
    # Beside the extension module, which an editable installation keeps apart from the sources.
    extension = importlib.util.find_spec("smartmem_mlir._smartmem")
    roots = [Path(__file__).parents[1], *([Path(extension.origin).parent] if extension and extension.origin else [])]
    for root in roots:
        if (root / "_image_layer" / "VkLayer_smartmem_image_memory.json").is_file():
            return root / "_image_layer"
    raise SmartMemError(
        "the image layer is not installed", hint="install smartmem-mlir from a wheel, or run make setup"
    )


def enable() -> None:
    """Makes the Vulkan loader put the layer into every instance that this process creates from now on."""
    layers = [name for name in os.environ.get("VK_INSTANCE_LAYERS", "").split(os.pathsep) if name]
    if NAME not in layers:
        # First, so that others, such as validation, see what the layer makes of IREE's calls.
        os.environ["VK_INSTANCE_LAYERS"] = os.pathsep.join([NAME, *layers])
    paths = [path for path in os.environ.get("VK_ADD_LAYER_PATH", "").split(os.pathsep) if path]
    if str(layer_directory()) not in paths:
        os.environ["VK_ADD_LAYER_PATH"] = os.pathsep.join([*paths, str(layer_directory())])


def uses_images(vmfb: Path) -> bool:
    """Whether a module has image kernels."""
    return MARK in vmfb.read_bytes()


def compile_canaries(folder: Path, options: CompilerOptions) -> None:
    """Puts the modules that ask for the layer into a directory.

    Raises:
        CompilerError: iree-compile failed.
    """
    for name, file in CANARIES.items():
        source = layer_directory() / "canary" / f"{name}.mlir"
        run_iree_compile(source, folder / file, ["--iree-hal-target-device=vulkan"], options)


def prove_layer(call_version: Call, load_mirror: Callable[[], Call]) -> None:
    """Asks the device for the layer.

    Args:
        call_version: The function `layer_version`, which any device can run.
        load_mirror: Loads the function `mirror`, which only a device with the layer can.

    Raises:
        DeviceError: There is no layer, another one, or it does not do its work.
    """
    (version,) = call_version([])
    if int(version[0]) != VERSION:
        found = f"version {int(version[0])} of the image layer" if int(version[0]) else "no image layer"
        raise DeviceError(
            f"the module keeps tensors in images, and the device has {found} (version {VERSION} is needed)",
            hint="run it in a process that has not used Vulkan before: the layer is enabled with the first device",
        )
    values = np.random.default_rng().standard_normal((4, 8, 4)).astype(np.float32)
    (mirrored,) = load_mirror()([values])
    if not np.array_equal(mirrored, values[::-1, ::-1]):
        raise DeviceError("the image layer does not read back what was written", hint="report the device and driver")
