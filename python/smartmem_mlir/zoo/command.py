"""`smartmem zoo`: list the models, build one, put the weights of a committed graph back.

The command line mounts :data:`app`. torch is imported only by `build` and `recipe`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from smartmem_mlir.zoo.card import ModelCard
from smartmem_mlir.zoo.cards import CARDS

app = typer.Typer(
    help="The models of the paper, with random weights, as ONNX.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class ExporterName(str, Enum):
    """The exporters of PyTorch."""

    dynamo = "dynamo"
    torchscript = "torchscript"


Name = Annotated[str, typer.Argument(help="Model, as `smartmem zoo list` names it.", show_default=False)]
Out = Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)]
Small = Annotated[bool, typer.Option("--small", help="The variant of 1-3 M parameters, all its kinds of blocks.")]
Opset = Annotated[int, typer.Option(help="ONNX operator set: dynamo 18-23, torchscript 14-20.")]
WithExporter = Annotated[ExporterName, typer.Option("--exporter", help="torchscript keeps shape arithmetic.")]
Seed = Annotated[int, typer.Option(help="Seed of the weights and test inputs.")]


@app.command("list")
def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="Every field of every card, for scripts.")] = False,
) -> None:
    """List the models: parameters and MACs as measured, and as the paper gives them."""
    from smartmem_mlir.zoo.sizes import load

    if as_json:
        cards = [asdict(card) | {"size": asdict(load()[name, False])} for name, card in CARDS.items()]
        typer.echo(json.dumps(cards, indent=2))
        return
    rows: list[tuple[str, ...]] = [("name", "model", "type", "input", "params M", "(paper)", "GMACs", "(paper)")]
    rows += [_row(card) for card in CARDS.values()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if column >= 4 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        typer.echo("  ".join(cells).rstrip())


def _row(card: ModelCard) -> tuple[str, ...]:
    from smartmem_mlir.zoo.sizes import load

    size, paper = load()[card.name, False], card.paper
    inputs = ", ".join("x".join(map(str, spec.shape)) for spec in card.inputs)
    return (
        card.name,
        card.title,
        card.family,
        inputs,
        f"{size.params / 1e6:.1f}",
        "-" if paper is None or paper.params is None else f"{paper.params:.1f}",
        f"{size.macs / 1e9:.1f}",
        "-" if paper is None else f"{paper.gmacs:.1f}",
    )


@app.command("build")
def build_model(
    name: Name,
    output: Out,
    small: Small = False,
    opset: Opset = 18,
    exporter: WithExporter = ExporterName.dynamo,
    seed: Seed = 0,
    batch: Annotated[int, typer.Option(min=1, help="Examples in one inference.")] = 1,
) -> None:
    """Build a model in PyTorch and write it as ONNX. Models over 1 GiB also get `<output>.data`."""
    from smartmem_mlir.zoo.build import build

    build(name, output, small=small, opset=opset, exporter=exporter.value, seed=seed, batch=batch)


@app.command("recipe")
def build_recipe_file(
    name: Name,
    output: Out,
    small: Small = False,
    opset: Opset = 18,
    exporter: WithExporter = ExporterName.dynamo,
    seed: Seed = 0,
) -> None:
    """Like build, but write the graph without weights, for `materialize`: small enough to commit."""
    from smartmem_mlir.zoo.build import build_recipe

    build_recipe(name, output, small=small, opset=opset, exporter=exporter.value, seed=seed)


@app.command("materialize")
def materialize_recipe(
    recipe: Annotated[Path, typer.Argument(help="A graph without weights.", show_default=False)],
    output: Out,
    external: Annotated[bool, typer.Option("--external", help="Weights to <output>.data, one at a time.")] = False,
) -> None:
    """Put the weights of a recipe back, without torch."""
    from smartmem_mlir.zoo.recipe import materialize

    materialize(recipe, output, external=external)
