"""How well a model of time agrees with times: do they rank alike, and by how much is it off."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Rank correlation, equal values sharing their mean rank; None for fewer than two values or only equal ones."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} values and {len(second)}")
    if len(first) < 2:
        return None
    a, b = _ranks(first), _ranks(second)
    if len(set(a)) == 1 or len(set(b)) == 1:
        return None
    return statistics.correlation(a, b)


def median_relative_error(modelled: Sequence[float], measured: Sequence[float]) -> float | None:
    """Median of |modelled - measured| / measured; None without values."""
    errors = [abs(a - b) / b for a, b in zip(modelled, measured, strict=True)]
    return statistics.median(errors) if errors else None


def median_ratio(modelled: Sequence[float], measured: Sequence[float]) -> float | None:
    """Median of measured / modelled: the one factor that puts half of the values above and half below."""
    ratios = [b / a for a, b in zip(modelled, measured, strict=True)]
    return statistics.median(ratios) if ratios else None


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for i in order[start:end]:
            ranks[i] = (start + end - 1) / 2
        start = end
    return ranks
