"""`smartmem draw-layout`."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from smartmem_mlir.cli.options import Debug


class PictureFormat(str, Enum):
    """What a picture can be."""

    TEXT = "text"
    SVG = "svg"
    PNG = "png"


def draw_layout(
    layout: Annotated[
        str,
        typer.Argument(
            metavar="LAYOUT", help="As the dialect writes it: '(d0, d1) -> (d1, d0), buffer'.", show_default=False
        ),
    ],
    shape: Annotated[str, typer.Option(metavar="1x13x4x4", help="The tensor's logical extents.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; stdout by default.", show_default=False)
    ] = None,
    format_: Annotated[
        PictureFormat | None,
        typer.Option("--format", help="By default what the file's name ends in, else text.", show_default=False),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of each layer that are shown.")] = 32,
    columns: Annotated[int, typer.Option(min=1, help="Places, or texels, of each row that are shown.")] = 16,
    debug: Debug = False,
) -> None:
    """Draw a layout: which logical index is in which x, y, layer and lane; padding is marked."""
    from smartmem_mlir.report.directory import explain_os_errors
    from smartmem_mlir.report.pictures.drawing import draw
    from smartmem_mlir.report.pictures.layout import parse_shape, picture_of
    from smartmem_mlir.report.pictures.png import render_png
    from smartmem_mlir.report.pictures.svg import render_svg
    from smartmem_mlir.report.pictures.text import render_text

    picture = picture_of(layout, parse_shape(shape))
    suffix = output.suffix.lower() if output is not None else ""
    kind = format_ or {".svg": PictureFormat.SVG, ".png": PictureFormat.PNG}.get(suffix, PictureFormat.TEXT)
    if kind is PictureFormat.TEXT:
        content = render_text(picture, rows, columns).encode()
    elif kind is PictureFormat.SVG:
        content = render_svg(draw(picture, rows, columns)).encode()
    else:
        content = render_png(draw(picture, rows, columns))
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with explain_os_errors(output):
        output.write_bytes(content)
