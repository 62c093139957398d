"""Export the benchmark models to ONNX: timm architectures with random weights from a seed.

    python benchmarks/export_models.py swin_t --exporter torchscript --opset 17 -o swin_t_torchscript.onnx

Needs torch, timm and onnxscript (not dependencies of the compiler). Weights are random because timing and layout do
not depend on their values, but every parameter and statistic is randomised, also the ones that initialise to zero or
one (LayerScale gammas, norm weights, biases, BatchNorm statistics): with the default initialisation a wrong branch or
a dropped bias would not change the output.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODELS = {
    "swin_t": "swin_tiny_patch4_window7_224",
    "vit_b": "vit_base_patch16_224",
    "resnet50": "resnet50",
    "convnext_t": "convnext_tiny",
}
"""Short names (also the stems of the exported files) of the timm architectures."""

IMAGE_SHAPE = (1, 3, 224, 224)
"""Batch, channels, height, width of the example input."""


class _StubType(type):
    """Metaclass of stub classes: every public attribute is another stub class, at any depth."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StubType(name, (), {})


class _StubModule(types.ModuleType):
    """A module in which every public name is a stub class."""

    __path__: Sequence[str] = ()
    __version__ = "0.0"

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        stub = _StubType(name, (), {})
        setattr(self, name, stub)
        return stub


class _ImageLibraryStub(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for torchvision and Pillow, which timm imports for its data loaders but not to build a network.

    Appended to `sys.meta_path`, so that an installed package is found before its stub.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in ("torchvision", "PIL"):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StubModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def build_model(architecture: str, seed: int) -> Any:
    """Build a timm network in eval mode with every parameter and statistic drawn from `seed`.

    Args:
        architecture: timm's name of the network.
        seed: Seed of the generator; the same seed gives the same weights.
    """
    import torch

    sys.meta_path.append(_ImageLibraryStub())
    import timm

    torch.manual_seed(seed)
    model = timm.create_model(architecture, pretrained=False).eval()
    generator = torch.Generator().manual_seed(seed)

    def uniform(tensor: torch.Tensor, low: float, high: float) -> None:
        tensor.copy_(torch.rand(tensor.shape, generator=generator) * (high - low) + low)

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gamma"):
                uniform(parameter, 0.1, 0.5)  # LayerScale: large enough that its branch counts
            elif parameter.ndim == 1 and name.endswith("weight"):
                uniform(parameter, 0.7, 1.3)
            elif parameter.ndim == 1:
                uniform(parameter, -0.2, 0.2)
            elif "relative_position_bias" in name or "pos_embed" in name or "cls_token" in name:
                uniform(parameter, -0.5, 0.5)
            else:
                # Variance 1/fan_in keeps activations near unit scale through any depth.
                bound = (3.0 / parameter[0].numel()) ** 0.5
                uniform(parameter, -bound, bound)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                uniform(buffer, -0.2, 0.2)
            elif name.endswith("running_var"):
                uniform(buffer, 0.7, 1.3)
    return model


def export(model: Any, output: Path, *, exporter: str, opset: int, seed: int) -> None:
    """Export a torch module to ONNX.

    Args:
        model: The module; called with one f32 image of shape `IMAGE_SHAPE`.
        output: The `.onnx` file to write, weights inside.
        exporter: `dynamo` (static shapes as literals) or `torchscript` (shapes as Shape/Gather/Concat arithmetic).
        opset: Opset of the default ONNX domain.
        seed: Seed of the example input.
    """
    import torch

    example = torch.randn(*IMAGE_SHAPE, generator=torch.Generator().manual_seed(seed + 1))
    if exporter == "torchscript":
        torch.onnx.export(
            model, (example,), str(output), dynamo=False, opset_version=opset,
            input_names=["input"], output_names=["output"],
        )  # fmt: skip
    else:
        torch.onnx.export(
            model, (example,), str(output), dynamo=True, opset_version=opset, external_data=False,
            input_names=["input"], output_names=["output"],
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help=f"{', '.join(MODELS)}, or any timm architecture")
    parser.add_argument("--exporter", choices=("dynamo", "torchscript"), default="dynamo")
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="default: MODEL.onnx")
    arguments = parser.parse_args()
    output = arguments.output or Path(f"{arguments.model}.onnx")
    model = build_model(MODELS.get(arguments.model, arguments.model), arguments.seed)
    export(model, output, exporter=arguments.exporter, opset=arguments.opset, seed=arguments.seed)
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
