"""`smartmem bench`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from smartmem_mlir.cli.options import Debug, parse_dims
from smartmem_mlir.cli.progress import StageProgress
from smartmem_mlir.errors import EXIT_BAD_INPUT, OptionError


def bench_models(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL...", help="ONNX files.", show_default=False, exists=True, dir_okay=False),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for results.json, results.md and plots.", show_default=False)
    ],
    target: Annotated[
        str, typer.Option("--target", "-t", help="Targets, comma separated; ours is the first, plain IREE tries all.")
    ] = "cpu",
    threads: Annotated[str, typer.Option(help="Numbers of CPU threads, comma separated.")] = "1,2",
    peers: Annotated[str, typer.Option(help="Rivals, comma separated; all: those that are installed; none.")] = "all",
    variants: Annotated[
        str,
        typer.Option(help="What to compile, comma separated: baseline, smartmem, other pipelines (an ablation); none."),
    ] = "baseline,smartmem",
    iree_settings: Annotated[
        str | None,
        typer.Option(help="Settings of plain IREE to try, comma separated, such as O3,O3+im2col; all by default."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=100_000, help="Timed inferences of each engine.")] = 50,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Turns that they are spread over.")] = 5,
    time_limit: Annotated[
        float, typer.Option(min=0.1, help="Seconds that an engine has to convert or compile, to load, for one turn.")
    ] = 600.0,
    tolerance: Annotated[float, typer.Option(min=0.0, help="Largest relative L2 error that counts as right.")] = 1e-3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the inputs.")] = 0,
    dim: Annotated[
        list[str], typer.Option(metavar="NAME=SIZE", help="Size of a symbolic dimension; repeat as needed.")
    ] = [],  # noqa: B006 - typer copies it
    peers_dir: Annotated[
        Path | None, typer.Option(help="Folder of the rivals' adapters; the checkout's by default.", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds of inference an engine has in a race.", show_default="no limit"),
    ] = None,
    convert_limit: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds a rival's converter has.", show_default="--time-limit")
    ] = None,
    model_limit: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds one model has in all.", show_default="no limit")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep compiled modules and converted models, and use those that were kept.")
    ] = False,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Convert and compile only, which needs no quiet machine; implies --keep.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the results.json in the folder: its models stay.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Time models on plain IREE, on ours and on rivals, each verified, side by side."""
    from smartmem_mlir.bench import report
    from smartmem_mlir.bench.campaign import CampaignOptions, run_campaign
    from smartmem_mlir.bench.engines import Device, choose_peers, load_peers, peers_folder
    from smartmem_mlir.bench.iree_variants import find_variant
    from smartmem_mlir.targets import load_target

    targets = tuple(load_target(name) for name in _names("--target", target))
    device: Device = "cpu" if targets[0].cpu is not None else "vulkan"
    if len({found.backend for found in targets}) > 1:
        raise OptionError(f"--target {target}: the targets are for different devices", hint="run one after the other")
    chosen = (
        () if peers == "none" else choose_peers(_names("--peers", peers), load_peers(peers_folder(peers_dir)), device)
    )
    options = CampaignOptions(
        targets=targets,
        threads=tuple(_thread_count(text) for text in _names("--threads", threads)),
        peers=tuple(chosen),
        variants=tuple(find_variant(name) for name in _names("--variants", variants) if variants != "none"),
        iree_settings=None if iree_settings is None else tuple(_names("--iree-settings", iree_settings)),
        runs=runs,
        rounds=rounds,
        time_limit=time_limit,
        convert_limit=convert_limit or math.inf,
        seconds=seconds or math.inf,
        model_limit=model_limit or math.inf,
        tolerance=tolerance,
        seed=seed,
        dims=parse_dims(dim),
        keep=keep or prepare,
        prepare_only=prepare,
    )
    report.prepare_folder(output)
    done = report.read_json(output / report.JSON) if resume and (output / report.JSON).exists() else None
    with StageProgress() as progress:
        campaign = run_campaign(
            models, options, output, progress, lambda partial: report.write_json(partial, output), done
        )
        if prepare:
            return
        progress("drawing")
        report.write(campaign, output)
    typer.echo(f"wrote {output / report.MARKDOWN}")
    if campaign.skipped:
        for name, error in campaign.skipped.items():
            typer.echo(f"smartmem: {name} was skipped: {error}", err=True)
        raise typer.Exit(EXIT_BAD_INPUT)


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise OptionError(f"{option}: nothing is named")
    if len(set(names)) < len(names):
        raise OptionError(f"{option} {text}: a name is given twice")
    return names


def _thread_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 1024:
        raise OptionError(f"--threads {text}: expected a small positive number")
    return int(text)
