"""Inputs for a run: random ones that make sense for the model, or the user's own, checked against the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import OptionError
from smartmem_mlir.signature import MLIR_DTYPES, TensorSpec

Array = npt.NDArray[np.generic]

DEFAULT_INTEGER_BOUND = 2
"""Exclusive upper bound of integers about which the model says nothing: 0 and 1 suit masks and most indices."""


def random_inputs(specs: Sequence[TensorSpec], seed: int, bounds: Mapping[str, int] | None = None) -> list[Array]:
    """Random inputs: standard normal floats, fair booleans, integers from zero to below a bound.

    Args:
        specs: The inputs.
        seed: Seed; an input's values depend on it and on the input's position alone.
        bounds: Exclusive upper bounds of integer inputs by name, such as the rows of the table they index.
    """
    arrays = []
    for position, spec in enumerate(specs):
        rng = np.random.default_rng((seed, position))
        dtype = spec.numpy_dtype
        values: Array
        if dtype.kind == "f":
            values = rng.standard_normal(spec.shape).astype(dtype)
        elif dtype.kind == "b":
            values = rng.integers(0, 2, spec.shape).astype(dtype)
        else:
            bound = (bounds or {}).get(spec.name, 256 if dtype == np.uint8 else DEFAULT_INTEGER_BOUND)
            limit = min(bound, np.iinfo(dtype.name).max)
            values = rng.integers(0, max(limit, 1), spec.shape).astype(dtype)
        arrays.append(values)
    return arrays


def check_inputs(specs: Sequence[TensorSpec], given: Mapping[str, Array] | Sequence[Array]) -> list[Array]:
    """The inputs in the order of the model's, if they fit.

    Args:
        specs: What the model takes.
        given: Arrays by input name, or in order.

    Raises:
        OptionError: One is missing, unknown, or of another shape or type; says which, what the model takes and what
            was given. Nothing is converted silently.
    """
    if not isinstance(given, Mapping):
        if len(given) != len(specs):
            raise OptionError(f"{len(given)} inputs were given, the model takes {len(specs)}", hint=_takes(specs))
        given = {spec.name: values for spec, values in zip(specs, given, strict=True)}
    known = {spec.name for spec in specs}
    for name in given:
        if name not in known:
            raise OptionError("the model has no such input", node=name, hint=_takes(specs))
    arrays = []
    for spec in specs:
        if spec.name not in given:
            raise OptionError("the input is missing", node=spec.name, hint=f"give it as {spec}")
        values = np.asarray(given[spec.name])
        if values.shape != spec.shape or values.dtype != spec.numpy_dtype:
            raise OptionError(f"expected {_describe(spec)}, given {_describe_array(values)}", node=spec.name)
        arrays.append(values)
    return arrays


def _describe(spec: TensorSpec) -> str:
    return "x".join(map(str, (*spec.shape, spec.dtype)))


def _describe_array(values: Array) -> str:
    return "x".join(map(str, (*values.shape, MLIR_DTYPES.get(values.dtype, values.dtype))))


def _takes(specs: Sequence[TensorSpec]) -> str:
    return "the model takes " + (", ".join(map(str, specs)) or "no inputs")
