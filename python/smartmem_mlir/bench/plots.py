"""A campaign as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from smartmem_mlir.bench.iree_variants import BASELINE, OURS
from smartmem_mlir.bench.results import Campaign, ModelResult, Peak
from smartmem_mlir.bench.tables import counted, engines_of, find, speed_up
from smartmem_mlir.bench.timing import format_ms

matplotlib.use("Agg")

# Okabe and Ito's palette, which people with colour-blindness tell apart; ours and plain IREE always look the same.
_OURS, _BASELINE = "#d55e00", "#555555"
_OTHERS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#f0e442", "#7a5195", "#8c8c8c", "#b2df8a")
_MODELS_A_ROW = 5


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
    models = [m for m in campaign.models if speed_up(m, BASELINE, threads) is not None]
    engines = [e for e in engines_of(campaign) if any(speed_up(m, e, threads) is not None for m in models)]
    if not models:
        return None
    rows = [models[i : i + _MODELS_A_ROW] for i in range(0, len(models), _MODELS_A_ROW)]
    widest = len(rows[0])
    figure = Figure(figsize=(max(6.0, 1.2 + widest * (0.5 + 0.34 * len(engines))), 0.8 + 3.2 * len(rows)))
    for axes, row in zip(figure.subplots(len(rows), squeeze=False)[:, 0], rows, strict=True):
        _speed_up_bars(axes, row, engines, threads)
        # Bars are as wide in a last row that is not full.
        axes.set_xlim(-0.6, widest - 0.4)
    top, bottom = figure.axes[0], figure.axes[-1]
    top.set_title(f"Speed-up, {campaign.settings.target}, {_threads(threads)}: higher is better", fontsize=10)
    _legend_below(bottom, [(engine, _color(engine, engines)) for engine in engines], 0.1)
    return figure


def _speed_up_bars(axes: Axes, models: Sequence[ModelResult], engines: Sequence[str], threads: int) -> None:
    width = 0.84 / len(engines)
    for column, engine in enumerate(engines):
        heights = [speed_up(m, engine, threads) for m in models]
        places = np.arange(len(models)) + (column - (len(engines) - 1) / 2) * width
        color = _color(engine, engines)
        axes.bar(places, [h or 0.0 for h in heights], width * 0.92, color=color, label=engine, zorder=2)
        for place, height, model in zip(places, heights, models, strict=True):
            cell = find(model, engine, threads)
            if height is None or cell is None or cell.median_ms is None:
                continue
            milliseconds = format_ms(cell.median_ms, 3)
            text = f"{height:.2g}x\n{milliseconds} ms" if len(models) == 1 else milliseconds
            axes.annotate(text, (place, height), (0, 2), textcoords="offset points", ha="center", fontsize=6)
    axes.axhline(1.0, color=_BASELINE, linewidth=0.8, zorder=1)
    axes.set_xticks(range(len(models)), [m.facts.name for m in models], fontsize=8)
    axes.set_ylabel("times faster than plain IREE\n(best verified setting); ms on top", fontsize=7)
    axes.margins(y=0.16)
    _finish(axes)


def _roofline(campaign: Campaign, threads: int) -> Figure | None:
    """Achieved GFLOPS over arithmetic intensity, under the machine's measured limits.

    A model's intensity counts its weights, inputs and outputs once: the least that any engine can move. Hollow markers
    count what the kernels really read and write, where that is known. Models are numbered.
    """
    peak = campaign.peak(threads)
    models = [m for m in campaign.models if m.facts.flops]
    engines = [e for e in engines_of(campaign) if any(_median(m, e, threads) for m in models)]
    if peak is None or not engines:
        return None
    figure = Figure(figsize=(7.0, 5.0))
    axes = figure.subplots()
    intensities: list[float] = []
    for number, model in enumerate(models, 1):
        flops = model.facts.flops or 0
        intensity = flops / model.facts.compulsory_bytes
        reached = []
        for engine in engines:
            cell = find(model, engine, threads)
            if cell is None or cell.median_ms is None:
                continue
            color, gflops = _color(engine, engines), flops / cell.median_ms / 1e6
            reached.append(gflops)
            axes.scatter(intensity, gflops, color=color, s=22, zorder=3, linewidths=0)
            if cell.counts is not None and cell.counts.total_bytes:
                moved = flops / cell.counts.total_bytes
                intensities.append(moved)
                axes.scatter(moved, gflops, facecolors="none", edgecolors=color, s=22, zorder=3)
        if reached:
            intensities.append(intensity)
            place = (intensity, max(reached))
            axes.annotate(str(number), place, (0, 5), textcoords="offset points", ha="center", fontsize=6)
    _ceilings(axes, peak, min(intensities), max(intensities))
    handles = [Line2D([], [], color=_color(e, engines), lw=5, label=e) for e in engines]
    handles += [Line2D([], [], ls="", label=f"{number}  {m.facts.name}") for number, m in enumerate(models, 1)]
    axes.legend(handles=handles, fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    axes.set_xlabel("FLOP per byte (filled: weights, inputs, outputs once; hollow: all that kernels move)", fontsize=8)
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
    models = [(model.facts.name, counted(model)) for model in campaign.models if counted(model)]
    if not models:
        return None
    engines = list(dict.fromkeys(m.engine for _, measurements in models for m in measurements))
    width = 0.84 / len(engines)
    figure = Figure(figsize=(max(4.5, 1.5 + 0.42 * len(engines) * len(models)), 4.0))
    axes = figure.subplots()
    for place, (_, measurements) in enumerate(models):
        for m in measurements:
            assert m.counts is not None
            color, kernels, movement = _color(m.engine, engines), m.counts.kernels, m.counts.movement_kernels
            x = place + (engines.index(m.engine) - (len(engines) - 1) / 2) * width
            axes.bar(x, movement, width * 0.92, color=color, zorder=2)
            axes.bar(x, kernels - movement, width * 0.92, bottom=movement, color=color, alpha=0.35, zorder=2)
            text = f"{kernels}\n({movement})"
            axes.annotate(text, (x, kernels), (0, 2), textcoords="offset points", ha="center", fontsize=6)
    names = [name for name, _ in models]
    axes.set_xticks(range(len(names)), names, fontsize=7, rotation=30 if len(names) > 5 else 0)
    axes.set_ylabel("kernels of one inference")
    axes.set_title("Kernels, and in brackets those that only move data (solid)", fontsize=10)
    _legend_below(axes, [(engine, _color(engine, engines)) for engine in engines], 0.22 if len(names) > 5 else 0.1)
    axes.margins(y=0.14)
    _finish(axes)
    return figure


def _legend_below(axes: Axes, entries: Sequence[tuple[str, str]], distance: float) -> None:
    handles = [Line2D([], [], color=color, lw=5, label=name) for name, color in entries]
    columns = min(len(entries), 5)
    axes.legend(
        handles=handles, fontsize=7, ncols=columns, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -distance)
    )


def _finish(axes: Axes) -> None:
    axes.grid(axis="y", color="#dddddd", linewidth=0.6, zorder=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
