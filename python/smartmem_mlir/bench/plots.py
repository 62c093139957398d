"""A campaign as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from smartmem_mlir.bench.iree_variants import BASELINE, OURS
from smartmem_mlir.bench.results import Campaign, ModelResult, Peak
from smartmem_mlir.bench.tables import counted, engines_of, find, speed_up

matplotlib.use("Agg")

# Okabe and Ito's palette, which people with colour-blindness tell apart; ours and plain IREE always look the same.
_OURS, _BASELINE = "#d55e00", "#555555"
_OTHERS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#f0e442", "#7a5195", "#8c8c8c", "#b2df8a")
_MARKERS = "os^vD<>Phd"
_MAX_LABELLED_BARS = 60


def draw(campaign: Campaign, output: Path) -> list[Path]:
    """Draw what the campaign has data for; returns the files, in the order in which to show them."""
    figures: list[Path] = []
    for threads in campaign.settings.threads:
        for name, figure in (
            (f"speed-up-{threads}-threads", _speed_ups(campaign, threads)),
            (f"roofline-{threads}-threads", _roofline(campaign, threads)),
        ):
            if figure is not None:
                figures.append(_save(figure, output / f"{name}.png"))
    movement = _kernels(campaign)
    if movement is not None:
        figures.append(_save(movement, output / "kernels.png"))
    return figures


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=140, bbox_inches="tight")
    return path


def _color(engine: str, engines: Sequence[str]) -> str:
    if engine in (BASELINE, OURS):
        return _BASELINE if engine == BASELINE else _OURS
    others = [name for name in engines if name not in (BASELINE, OURS)]
    return _OTHERS[others.index(engine) % len(_OTHERS)]


def _threads(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def _speed_ups(campaign: Campaign, threads: int) -> Figure | None:
    """Bars: how many times faster than plain IREE at its best verified setting, with the median in ms on each."""
    engines = engines_of(campaign)
    models = [m for m in campaign.models if speed_up(m, BASELINE, threads) is not None]
    engines = [e for e in engines if any(speed_up(m, e, threads) is not None for m in models)]
    if not models or not engines:
        return None
    width = 0.84 / len(engines)
    figure = Figure(figsize=(max(6.0, 1.2 + len(models) * (0.5 + 0.42 * len(engines))), 4.4))
    axes = figure.subplots()
    labelled = len(models) * len(engines) <= _MAX_LABELLED_BARS
    for column, engine in enumerate(engines):
        heights = [speed_up(m, engine, threads) for m in models]
        places = np.arange(len(models)) + (column - (len(engines) - 1) / 2) * width
        bars = axes.bar(
            places, [h or 0.0 for h in heights], width * 0.92, color=_color(engine, engines), label=engine, zorder=2
        )
        for bar, height, model in zip(bars, heights, models, strict=True):
            cell = find(model, engine, threads)
            if height is not None and cell is not None and labelled:
                text = f"{height:.2g}x\n{cell.median_ms:.3g} ms"
                place = (bar.get_x() + bar.get_width() / 2, height)
                axes.annotate(text, place, (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=6)
    axes.axhline(1.0, color=_BASELINE, linewidth=0.8, zorder=1)
    axes.set_xticks(range(len(models)), [m.facts.name for m in models], rotation=20 if len(models) > 4 else 0)
    axes.set_ylabel("times faster than plain IREE\n(best verified setting)")
    axes.set_title(f"Speed-up, {campaign.settings.target}, {_threads(threads)}: higher is better", fontsize=10)
    axes.margins(y=0.16)
    _finish(axes)
    axes.legend(fontsize=7, ncols=min(len(engines), 5), loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
    return figure


def _roofline(campaign: Campaign, threads: int) -> Figure | None:
    """Achieved GFLOPS over arithmetic intensity, under the machine's measured limits.

    A model's intensity counts its weights, inputs and outputs once: the least that any engine can move. Hollow markers
    count what the kernels really read and write, where that is known.
    """
    peak = campaign.peak(threads)
    models = [m for m in campaign.models if m.facts.flops]
    if peak is None or not models:
        return None
    engines = [e for e in engines_of(campaign) if any(_median(m, e, threads) for m in models)]
    if not engines:
        return None
    figure = Figure(figsize=(6.6, 4.6))
    axes = figure.subplots()
    intensities: list[float] = []
    for index, model in enumerate(models):
        assert model.facts.flops is not None
        marker = _MARKERS[index % len(_MARKERS)]
        for engine in engines:
            cell = find(model, engine, threads)
            if cell is None or cell.median_ms is None:
                continue
            color, gflops = _color(engine, engines), model.facts.flops / cell.median_ms / 1e6
            intensity = model.facts.flops / model.facts.compulsory_bytes
            intensities.append(intensity)
            axes.scatter(intensity, gflops, color=color, marker=marker, s=34, zorder=3, linewidths=0.8)
            if cell.counts is not None and cell.counts.total_bytes:
                moved = model.facts.flops / cell.counts.total_bytes
                intensities.append(moved)
                axes.scatter(moved, gflops, facecolors="none", edgecolors=color, marker=marker, s=34, zorder=3)
    _ceilings(axes, peak, min(intensities), max(intensities))
    handles = [matplotlib.lines.Line2D([], [], color=_color(e, engines), lw=5, label=e) for e in engines]
    handles += [
        matplotlib.lines.Line2D([], [], color="black", marker=_MARKERS[i % len(_MARKERS)], ls="", label=m.facts.name)
        for i, m in enumerate(models)
    ]
    axes.legend(handles=handles, fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    axes.set_xlabel(
        "FLOP per byte (filled: weights, inputs, outputs once; hollow: all that kernels read and write)", fontsize=8
    )
    axes.set_ylabel("GFLOPS")
    axes.set_title(f"Roofline, {campaign.host.cpu}, {_threads(threads)}", fontsize=10)
    _finish(axes)
    return figure


def _median(model: ModelResult, engine: str, threads: int) -> float | None:
    cell = find(model, engine, threads)
    return cell.median_ms if cell is not None else None


def _ceilings(axes: Axes, peak: Peak, low: float, high: float) -> None:
    ridge = peak.gflops / peak.gbytes_per_s
    start, end = min(low, ridge) / 2, max(high, ridge) * 2
    axes.plot([start, ridge, end], [start * peak.gbytes_per_s, peak.gflops, peak.gflops], color="black", lw=1.2)
    axes.annotate(
        f"{peak.gflops:.0f} GFLOPS", (end, peak.gflops), (0, 3), textcoords="offset points", ha="right", fontsize=7
    )
    middle = (start * ridge) ** 0.5
    axes.annotate(
        f"{peak.gbytes_per_s:.0f} GB/s",
        (middle, middle * peak.gbytes_per_s),
        (-4, 4),
        textcoords="offset points",
        ha="right",
        fontsize=7,
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")


def _kernels(campaign: Campaign) -> Figure | None:
    """Bars: kernels of one inference, the data-movement ones below."""
    rows = [(model.facts.name, m.engine, m.counts) for model in campaign.models for m in counted(model)]
    if not rows:
        return None
    engines = engines_of(campaign)
    figure = Figure(figsize=(max(4.5, 1.5 + 0.6 * len(rows)), 4.0))
    axes = figure.subplots()
    for place, (_, engine, counts) in enumerate(rows):
        assert counts is not None
        color, kernels, movement = _color(engine, engines), counts.kernels, counts.movement_kernels
        axes.bar(place, movement, color=color, zorder=2)
        axes.bar(place, kernels - movement, bottom=movement, color=color, alpha=0.35, zorder=2)
        axes.annotate(
            f"{kernels}\n({movement})", (place, kernels), (0, 2), textcoords="offset points", ha="center", fontsize=7
        )
    axes.set_xticks(
        range(len(rows)),
        [f"{model}\n{engine}" for model, engine, _ in rows],
        fontsize=7,
        rotation=30 if len(rows) > 6 else 0,
    )
    axes.set_ylabel("kernels of one inference")
    axes.set_title("Kernels, and in brackets those that only move data (solid)", fontsize=10)
    axes.margins(y=0.14)
    _finish(axes)
    return figure


def _finish(axes: Axes) -> None:
    axes.grid(axis="y", color="#dddddd", linewidth=0.6, zorder=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
