"""A campaign as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smartmem_mlir.bench.iree_variants import BASELINE, OURS
from smartmem_mlir.bench.results import Campaign, Measurement, ModelResult
from smartmem_mlir.bench.timing import format_ms, geometric_mean, percentile

_MAX_ERROR = 600
_NOISY_LOAD = 0.5


def markdown(campaign: Campaign) -> str:
    """The whole report."""
    parts = [_heading(campaign)]
    for threads in campaign.settings.threads:
        parts += [_latency(campaign, threads), _speed_ups(campaign, threads)]
    parts += [_kernels(campaign), _details(campaign), _sweep(campaign), _failures(campaign)]
    return "\n\n".join(part for part in parts if part) + "\n"


def engines_of(campaign: Campaign) -> list[str]:
    """Engines in the order of their first appearance."""
    return list(dict.fromkeys(m.engine for model in campaign.models for m in model.measurements))


def find(model: ModelResult, engine: str, threads: int) -> Measurement | None:
    """One cell of the table."""
    return next((m for m in model.measurements if m.engine == engine and m.threads == threads), None)


def speed_up(model: ModelResult, engine: str, threads: int) -> float | None:
    """How many times faster than plain IREE at its best verified setting; None unless both verified."""
    ours, plain = find(model, engine, threads), find(model, BASELINE, threads)
    if ours is None or plain is None or ours.median_ms is None or plain.median_ms is None:
        return None
    return plain.median_ms / ours.median_ms


def _heading(campaign: Campaign) -> str:
    host, settings = campaign.host, campaign.settings
    peaks = "; ".join(
        f"{p.threads} thread{'s' if p.threads > 1 else ''}: {p.gflops:.0f} GFLOPS, {p.gbytes_per_s:.1f} GB/s"
        for p in campaign.peaks
    )
    lines = [
        "# Benchmark results",
        "",
        f"{campaign.started}, commit {campaign.commit or 'unknown'}, {host.cpu}, {host.cores} CPUs, {host.system}.",
        f"Measured limits of the machine: {peaks}.",
        f"Median of {settings.runs} runs over {settings.rounds} rounds in which the engines take turns; batch and "
        f"types as in the model; target {settings.target}."
        + (f" Slow engines have fewer: {settings.seconds:g} s of inference." if settings.seconds else ""),
        f"Every engine's output is compared with ONNX Runtime's; a relative L2 error over {settings.tolerance:g} is "
        "`wrong` and its time counts for nothing.",
    ]
    if host.load_before > _NOISY_LOAD:
        lines.append(
            f"**The machine was not quiet**: load {host.load_before:.1f} before the campaign. Compare within rows only."
        )
    return "\n".join(lines)


def _latency(campaign: Campaign, threads: int) -> str:
    engines = [name for name in engines_of(campaign) if any(find(m, name, threads) for m in campaign.models)]
    rows = []
    for model in campaign.models:
        cells = [find(model, engine, threads) for engine in engines]
        best = min((c.median_ms for c in cells if c is not None and c.median_ms is not None), default=None)
        rows.append([model.facts.name, *(latency_cell(cell, best) for cell in cells)])
    title = f"## Median latency in ms, {threads} thread{'s' if threads > 1 else ''}"
    return f"{title}\n\n{table(['model', *engines], rows)}"


def latency_cell(cell: Measurement | None, best: float | None) -> str:
    """Its median, in bold if it is the best, or how it ended."""
    if cell is None:
        return ""
    if cell.median_ms is None:
        return cell.status
    text = format_ms(cell.median_ms)
    return f"**{text}**" if cell.median_ms == best else text


def _speed_ups(campaign: Campaign, threads: int) -> str:
    engines = [name for name in engines_of(campaign) if name != BASELINE]
    columns = {e: [speed_up(model, e, threads) for model in campaign.models] for e in engines}
    columns = {e: values for e, values in columns.items() if any(v is not None for v in values)}
    if not columns:
        return ""
    rows = [
        [model.facts.name, *(_number(values[i], ".2f") for values in columns.values())]
        for i, model in enumerate(campaign.models)
    ]
    means = [geometric_mean([v for v in values if v is not None]) for values in columns.values()]
    rows.append(["geometric mean of those that run", *(f"{mean:.2f}" for mean in means)])
    title = f"### Speed-up over plain IREE at its best verified setting, {threads} thread{'s' if threads > 1 else ''}"
    return f"{title}\n\n{table(['model', *columns], rows)}"


def counted(model: ModelResult) -> list[Measurement]:
    """One measurement with counts for each engine.

    For plain IREE it is the one at our own setting, if that was tried: its fastest setting may form other kernels, and
    counts are to be compared like with like.
    """
    ours = next((m.setting for m in model.measurements if m.engine == OURS), None)
    like_ours = [m for m in model.sweep if m.engine == BASELINE and m.setting == ours]
    found: dict[str, Measurement] = {}
    for m in (*like_ours, *model.measurements):
        if m.counts is not None:
            found.setdefault(m.engine, m)
    return list(found.values())


def _kernels(campaign: Campaign) -> str:
    header = ["model", "engine", "kernels", "data-movement kernels", "their MB", "all kernels' MB", "copies' MB"]
    rows = []
    for model in campaign.models:
        for m in counted(model):
            assert m.counts is not None
            name = f"{m.engine} ({m.setting})" if m.setting else m.engine
            megabytes = [m.counts.movement_bytes, m.counts.total_bytes, m.counts.copy_bytes]
            numbers = [m.counts.kernels, m.counts.movement_kernels]
            rows.append([model.facts.name, name, *map(str, numbers), *(f"{b / 1e6:.2f}" for b in megabytes)])
    return f"## Kernels and bytes of one inference\n\n{table(header, rows)}" if rows else ""


def _details(campaign: Campaign) -> str:
    header = ["engine", "threads", "version", "backend", "setting", "median", "p5", "p95", "first", "GFLOPS", "of peak"]
    header += [
        "GB/s",
        "of peak",
        "convert or compile s",
        "load s",
        "peak RSS MB",
        "of it the model",
        "cores",
        "rel. L2",
    ]
    sections = []
    for model in campaign.models:
        facts = model.facts
        work = f"{facts.flops / 1e9:.2f} GFLOP, " if facts.flops is not None else ""
        intro = f"### {facts.name}\n\n{work}{facts.weight_bytes / 1e6:.1f} MB of weights, {facts.nodes} operators."
        rows = [_detail_row(m, model, campaign) for m in model.measurements if m.times_ms]
        sections.append(f"{intro}\n\n{table(header, rows)}")
    note = "GB/s counts the reads and writes of all kernels, where they can be counted. Times in ms."
    return "\n\n".join([f"## Details\n\n{note}", *sections]) if sections else ""


def _detail_row(m: Measurement, model: ModelResult, campaign: Campaign) -> list[str]:
    median = percentile(m.times_ms, 50)
    peak = campaign.peak(m.threads)
    flops, counts = model.facts.flops, m.counts
    gflops = flops / median / 1e6 if flops is not None else None
    gbytes = counts.total_bytes / median / 1e6 if counts is not None else None
    model_rss = None
    if m.peak_rss_bytes is not None and m.start_rss_bytes is not None:
        model_rss = (m.peak_rss_bytes - m.start_rss_bytes) / 1e6
    accuracy = m.accuracy.relative_l2 if m.accuracy is not None else None
    return [
        m.engine if m.status == "ok" else f"{m.engine} ({m.status})",
        str(m.threads),
        m.version or "",
        m.backend or "",
        m.setting or "",
        *(format_ms(percentile(m.times_ms, percent)) for percent in (50, 5, 95)),
        format_ms(m.first_ms) if m.first_ms is not None else "",
        _number(gflops, ".1f"),
        _number(gflops / peak.gflops if gflops is not None and peak is not None else None, ".0%"),
        _number(gbytes, ".2f"),
        _number(gbytes / peak.gbytes_per_s if gbytes is not None and peak is not None else None, ".0%"),
        _number(m.prepare_s, ".1f"),
        _number(m.load_s, ".2f"),
        _number(m.peak_rss_bytes / 1e6 if m.peak_rss_bytes is not None else None, ".0f"),
        _number(model_rss, ".0f"),
        _number(m.cores_used, ".2f"),
        _number(accuracy, ".1e"),
    ]


def _sweep(campaign: Campaign) -> str:
    rows = []
    for model in campaign.models:
        settings = list(dict.fromkeys(m.setting for m in model.sweep if m.setting is not None))
        for setting in settings:
            tried = {m.threads: m for m in model.sweep if m.setting == setting}
            compiled = next((m.prepare_s for m in tried.values()), None)
            cells = [latency_cell(tried.get(threads), None) for threads in campaign.settings.threads]
            counts = next((m.counts for m in tried.values()), None)
            kernels = f"{counts.kernels} ({counts.movement_kernels})" if counts is not None else ""
            rows.append([model.facts.name, setting, *cells, kernels, _number(compiled, ".0f")])
    if not rows:
        return ""
    header = ["model", "setting", *(f"ms, {t} threads" for t in campaign.settings.threads)]
    header += ["kernels (data movement)", "compile s"]
    return f"## Plain IREE by setting\n\nA few runs each, to choose the best verified one.\n\n{table(header, rows)}"


def _failures(campaign: Campaign) -> str:
    lines = [f"- {name}: {_one_line(error)}" for name, error in campaign.skipped.items()]
    for model in campaign.models:
        for m in _distinct_failures((*model.measurements, *model.sweep)):
            name = f"{m.engine} ({m.setting})" if m.setting else m.engine
            accuracy = f"relative L2 {m.accuracy.relative_l2:.2e}" if m.accuracy and m.accuracy.relative_l2 else ""
            lines.append(f"- {model.facts.name}, {name}: {m.status}: {_one_line(m.error or accuracy)}")
    return "\n".join(["## What did not run, or ran wrong", "", *lines]) if lines else ""


def _distinct_failures(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Failures without those that another number of threads repeats word for word."""
    found = {(m.engine, m.setting, m.status, m.error): m for m in measurements if m.status != "ok"}
    return list(found.values())


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_ERROR else f"{flat[:_MAX_ERROR]}..."


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
