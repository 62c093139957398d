"""How large each model is: counted once with PyTorch, kept beside the code so that nothing needs torch to know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("sizes.yaml")


@dataclass(frozen=True)
class Size:
    """How large a model is.

    Args:
        params: Number of parameters; tied ones count once, buffers do not count.
        macs: Multiply-accumulates of convolutions and matrix products (attention included) for one inference.
    """

    params: int
    macs: int


@cache
def load() -> dict[tuple[str, bool], Size]:
    """The size of each model by (name, small)."""
    import yaml

    data = yaml.safe_load(FILE.read_text())
    return {
        (name, variant == "small"): Size(**numbers)
        for name, variants in data.items()
        for variant, numbers in variants.items()
    }
