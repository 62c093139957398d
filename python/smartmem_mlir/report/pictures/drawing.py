"""A layout as rectangles and labels, which SVG and PNG both draw."""

from __future__ import annotations

from dataclasses import dataclass

from smartmem_mlir.report.pictures.layout import PADDING, LayoutPicture
from smartmem_mlir.report.pictures.text import describe

Color = tuple[int, int, int]
PAD_COLOR: Color = (222, 222, 222)
LINE_COLOR: Color = (60, 60, 60)
TEXT_COLOR: Color = (20, 20, 20)
PAPER: Color = (255, 255, 255)
CHARACTER_WIDTH, LINE_HEIGHT, MARGIN = 8, 12, 8
"""Pixels of one character of the built-in font at its drawn size, of a line, and around the drawing."""


@dataclass(frozen=True)
class Rectangle:
    """A filled box in pixels; `logical` is what stands there, for tools that read the picture."""

    x: int
    y: int
    width: int
    height: int
    fill: Color
    hatched: bool = False
    heavy: bool = False
    logical: str = ""


@dataclass(frozen=True)
class Label:
    """Text whose left end, and upper edge, is at (x, y)."""

    x: int
    y: int
    text: str


@dataclass(frozen=True)
class Drawing:
    """What to draw, on paper of this size in pixels; `title` says it in words."""

    width: int
    height: int
    rectangles: tuple[Rectangle, ...]
    labels: tuple[Label, ...]
    title: str


def draw(picture: LayoutPicture, rows: int = 32, columns: int = 16) -> Drawing:
    """Lays a picture out on paper.

    Args:
        picture: What to draw.
        rows: Rows of each layer that are drawn.
        columns: Places (texels) of each row that are drawn.
    """
    depth, height, width, lanes = picture.places.shape
    largest = ",".join(str(extent - 1) for extent in picture.shape)
    cell_width, cell_height = max(len(largest), 2) * CHARACTER_WIDTH + 6, LINE_HEIGHT + 8
    shown_rows, shown_columns = min(height, rows), min(width, columns)
    gap = 6 if lanes > 1 else 0
    left = MARGIN + CHARACTER_WIDTH * len(f"y={height - 1}") + 8
    top = MARGIN + LINE_HEIGHT + 10
    boxes, labels = [], [Label(MARGIN, MARGIN, describe(picture))]
    for layer in range(depth):
        if depth > 1:
            labels.append(Label(MARGIN, top, f"{'z' if picture.storage == 'image3d' else 'layer'} {layer}"))
            top += LINE_HEIGHT + 4
        for x in range(shown_columns):
            labels.append(Label(left + x * (lanes * cell_width + gap) + 3, top, f"x={x}"))
        if width > shown_columns:
            labels.append(Label(left + shown_columns * (lanes * cell_width + gap), top, f"+{width - shown_columns}"))
        top += LINE_HEIGHT + 4
        for y in range(shown_rows):
            labels.append(Label(MARGIN, top + 4, f"y={y}"))
            for x in range(shown_columns):
                for lane in range(lanes):
                    place = int(picture.places[layer, y, x, lane])
                    at = left + x * (lanes * cell_width + gap) + lane * cell_width
                    name = "" if place == PADDING else ",".join(map(str, picture.index(place)))
                    fill = PAD_COLOR if place == PADDING else _shade(place, picture)
                    boxes.append(Rectangle(at, top, cell_width, cell_height, fill, place == PADDING, logical=name))
                    if name:
                        labels.append(Label(at + (cell_width - CHARACTER_WIDTH * len(name)) // 2 + 1, top + 5, name))
            top += cell_height + (2 if lanes > 1 else 0)
        if height > shown_rows:
            labels.append(Label(left, top + 2, f"+{height - shown_rows} rows"))
            top += LINE_HEIGHT + 4
        top += 8
    right = max(
        left + shown_columns * (lanes * cell_width + gap) + (40 if width > shown_columns else 0),
        MARGIN + CHARACTER_WIDTH * len(labels[0].text),
    )
    return Drawing(right + MARGIN, top + MARGIN, tuple(boxes), tuple(labels), describe(picture))


def _shade(place: int, picture: LayoutPicture) -> Color:
    """From yellow to blue in logical row-major order, all light enough for black text."""
    count = 1
    for extent in picture.shape:
        count *= extent
    share = place / max(count - 1, 1)
    first, last = (255, 243, 176), (150, 190, 255)
    return tuple(round(a + (b - a) * share) for a, b in zip(first, last, strict=True))  # type: ignore[return-value]
