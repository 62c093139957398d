"""A directory that `compile` wrote: run it, call it, verify it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smartmem_mlir.api.options import Progress
from smartmem_mlir.api.values import Array, flatten_named, like_inputs, to_array
from smartmem_mlir.iree.assumptions import VulkanAssumptions, refuse_other_device
from smartmem_mlir.iree.device import default_device, resolve_device
from smartmem_mlir.iree.image_layer import enable
from smartmem_mlir.report import directory
from smartmem_mlir.report.inputs import check_inputs
from smartmem_mlir.report.proofs import Proofs, check_directory
from smartmem_mlir.report.schema import Report

if TYPE_CHECKING:
    from smartmem_mlir.api.verification import VerifyResult


class CompiledModel:
    """A directory that `compile` wrote. Calling it runs one inference.

    >>> y = model(x)  # doctest: +SKIP
    >>> y, z = model(a, b)  # doctest: +SKIP
    >>> y = model(image=x)  # doctest: +SKIP

    Args:
        path: The directory.
        keep: A temporary directory that holds it and goes when the model goes.

    Raises:
        InvalidModelError: It is not ours, incomplete, or damaged.
    """

    def __init__(self, path: Path | str, keep: tempfile.TemporaryDirectory[str] | None = None) -> None:
        self.path = Path(path)
        self.report: Report = directory.read_directory(self.path)
        self._keep = keep
        self._loaded: dict[str, Any] = {}

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """One inference on the first device of the kind that the module is for.

        Args:
            inputs: NumPy arrays or torch tensors, in the model's order, or one mapping by name.
            named: The same, by the model's names.

        Returns:
            The output, or a tuple of several in the model's order: torch tensors if an input was one, else arrays.

        Raises:
            OptionError: An input does not fit. Nothing is converted.
            DeviceError: The device is missing or is not what the module was compiled for, or it failed.
        """
        given = flatten_named(inputs, named)
        values = list(given.values()) if isinstance(given, dict) else given
        outputs = like_inputs(self.run(given).values(), values)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], device: str | None = None) -> dict[str, Array]:
        """One inference.

        Args:
            inputs: Arrays or torch tensors by input name, or in order.
            device: `cpu`, `local-task`, `local-sync`, `vulkan`, `vulkan://1` or `vulkan://GPU-<uuid>`; by default the
                first device of the kind that the module is for.

        Returns:
            The outputs by name.

        Raises:
            OptionError: An input does not fit.
            DeviceError: The device is missing or is not what the module was compiled for, or it failed.
        """
        given = (
            {name: to_array(value, name) for name, value in inputs.items()}
            if isinstance(inputs, Mapping)
            else [to_array(value) for value in inputs]
        )
        arrays = check_inputs([info.spec for info in self.report.inputs], given)
        module = self.load_module(device or default_device(self.report.assumptions))
        return {info.name: values for info, values in zip(self.report.outputs, module(arrays), strict=True)}

    def verify(
        self,
        *,
        device: str | None = None,
        seeds: Sequence[int] = (0, 1, 2),
        model: Path | None = None,
        tolerance: float | None = None,
        trusted: bool = False,
        progress: Progress = lambda stage: None,
    ) -> VerifyResult:
        """Compare with the framework that the model came from, on random inputs.

        Args:
            device: As for :meth:`run`.
            seeds: Seeds of the inputs.
            model: The model file, if it has moved since.
            tolerance: Largest accepted relative L2 distance; by default by the floating-point type.
            trusted: Whether the model's file may run code while it is read, as `.pt2` archives can.
            progress: Told what happens next.

        Raises:
            InvalidModelError: The model file is missing or has changed.
            DeviceError: As for :meth:`run`.
        """
        from smartmem_mlir.api.verification import verify_model

        device = device or default_device(self.report.assumptions)
        return verify_model(self, device, seeds, model, tolerance, trusted, progress)

    def load_module(self, device: str) -> Any:
        """The module on a device that fits, loaded once; see `iree.runtime.LoadedModule`."""
        if device not in self._loaded:
            uri, properties = resolve_device(device)
            refuse_other_device(self.report.assumptions, properties)
            from smartmem_mlir.iree.runtime import LoadedModule, prove_images

            if isinstance(self.report.assumptions, VulkanAssumptions) and self.report.assumptions.images:
                enable()
                prove_images(self.path, uri)
            self._loaded[device] = LoadedModule(
                self.path / directory.VMFB,
                self.path / directory.PARAMETERS if self.report.weights else None,
                uri,
                [info.spec for info in self.report.inputs],
                [info.spec for info in self.report.outputs],
            )
        return self._loaded[device]


def check(path: Path | str, progress: Progress = lambda stage: None) -> Proofs:
    """Prove again that every rewrite of a compilation was right, from the text of its certificates alone.

    Raises:
        InvalidModelError: It is not a directory that :func:`compile` wrote.
        UnprovedRewriteError: A rewrite was wrong or could not be proved.
    """
    proofs = check_directory(Path(path), progress)
    CompiledModel(path)
    return proofs


def load(path: Path | str) -> CompiledModel:
    """Open a directory that :func:`compile` wrote."""
    return CompiledModel(path)


def run(path: Path | str, inputs: Mapping[str, Any] | Sequence[Any], device: str | None = None) -> dict[str, Array]:
    """One inference of a directory that :func:`compile` wrote; see :meth:`CompiledModel.run`."""
    return CompiledModel(path).run(inputs, device)
