"""Summaries of repeated timings."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, floor, log


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile with linear interpolation between the two nearest ranks.

    Args:
        values: At least one value, in any order.
        percent: From 0 to 100.
    """
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of at least one positive value: the mean that suits ratios."""
    return exp(sum(log(value) for value in values) / len(values))


def format_ms(value: float, digits: int = 4) -> str:
    """A time with so many significant digits, but never in scientific notation."""
    return f"{value:.{digits}g}" if value < 10 ** (digits - 1) else f"{value:.0f}"
