"""How fast a target moves and computes, as far as layouts matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any


@dataclass(frozen=True)
class Rates:
    """Measured on one core of the target by `benchmarks/layout_rates.py`; the defaults, on an AVX-512 core of a server.

    Args:
        vector_lanes: f32 elements of a vector.
        cache_line_bytes: Bytes that one access brings in.
        stream_bytes_per_ns: Contiguous reads and writes, caches of the last level included.
        strided_element_ns: An element whose neighbour in the loop is not its neighbour in memory.
        kernel_launch_ns: Starting one more kernel.
        kernel_macs_per_ns: Multiply-adds of a generated kernel: an element times vectors.
        unpacked_kernel_macs_per_ns: Multiply-adds of such a kernel whose vectors come from a tensor that is computed,
            not from packed weights (a convolution whose image is stored channels first).
        vector_product_macs_per_ns: Multiply-adds of a generated kernel that has a vector to load for each vector of
            them (depthwise).
        fallback_matmul_macs_per_ns: Multiply-adds of IREE's kernel where no generator takes a product of matrices.
        fallback_window_macs_per_ns: Multiply-adds of IREE's kernel where no generator takes a convolution.
    """

    vector_lanes: int = 16
    cache_line_bytes: int = 64
    stream_bytes_per_ns: float = 37.0
    strided_element_ns: float = 0.15
    kernel_launch_ns: float = 4000.0
    kernel_macs_per_ns: float = 27.0
    unpacked_kernel_macs_per_ns: float = 9.0
    vector_product_macs_per_ns: float = 16.0
    fallback_matmul_macs_per_ns: float = 15.0
    fallback_window_macs_per_ns: float = 6.8

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isfinite(value) or value <= 0:
                raise ValueError(f"{field.name} is {value}, not a positive number")

    @staticmethod
    def of(given: Mapping[str, float]) -> Rates:
        """The rates with some fields given and the others at their defaults."""
        whole = {"vector_lanes", "cache_line_bytes"}
        values: dict[str, Any] = {name: int(value) if name in whole else value for name, value in given.items()}
        return Rates(**values)
