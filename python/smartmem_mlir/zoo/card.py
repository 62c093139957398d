"""What the zoo knows of a model without building it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from smartmem_mlir.zoo.draw import Draw

Family = Literal["Transformer", "Hybrid", "ConvNet"]
Exporter = Literal["dynamo", "torchscript"]

EXPORTERS: tuple[Exporter, ...] = ("dynamo", "torchscript")


@dataclass(frozen=True)
class InputSpec:
    """One input of a model.

    Args:
        name: Name in the exported graph.
        shape: Static extents, batch first.
        low: Smallest test value.
        high: Upper bound of test values, excluded for integers (a vocabulary's size, say).
        dtype: NumPy name of the element type.
    """

    name: str
    shape: tuple[int, ...]
    low: float = -1.7
    high: float = 1.7
    dtype: str = "float32"

    def draw(self, seed: int) -> Draw:
        """The test values of this input."""
        return Draw(f"input/{self.name}", self.shape, self.low, self.high, seed, self.dtype)


@dataclass(frozen=True)
class PaperFigures:
    """A model's row in Tables 1 and 7 of the SmartMem paper.

    Args:
        params: Parameters, millions; None where the paper gives none.
        gmacs: Multiply-accumulates of one inference, 10^9.
        operators: Operators of the unoptimised graph; None where the paper gives none.
    """

    params: float | None
    gmacs: float
    operators: int | None


@dataclass(frozen=True)
class ModelCard:
    """One model of the zoo.

    Args:
        name: What the command line calls it.
        title: The network and size that we take the paper's model to be.
        family: The paper's column "type".
        builder: Module under `smartmem_mlir.zoo.models`; its `build(small)` returns the `torch.nn.Module`.
        packages: Packages beyond torch that it is built from; none where it is written here.
        reference: The publication that defines the network.
        inputs: Inputs at full size.
        small_inputs: Inputs of the small variant.
        output: Name of the (only) output.
        paper: The paper's figures; None for models outside it.
        gain: See :func:`smartmem_mlir.zoo.randomize.draws`.
        note: Why a figure differs from the paper's, or how the model was identified.
    """

    name: str
    title: str
    family: Family
    builder: str
    packages: tuple[str, ...]
    reference: str
    inputs: tuple[InputSpec, ...]
    small_inputs: tuple[InputSpec, ...]
    output: str
    paper: PaperFigures | None
    gain: float = 1.0
    note: str = ""

    def at_batch(self, batch: int) -> ModelCard:
        """The same model with `batch` times as many examples in one inference."""
        inputs, small_inputs = (
            tuple(replace(spec, shape=(batch * spec.shape[0], *spec.shape[1:])) for spec in specs)
            for specs in (self.inputs, self.small_inputs)
        )
        return replace(self, inputs=inputs, small_inputs=small_inputs)

    def input_specs(self, small: bool) -> tuple[InputSpec, ...]:
        """The inputs of the chosen variant."""
        return self.small_inputs if small else self.inputs
