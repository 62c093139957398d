"""Layout pictures by value: where each element is, as text, SVG and PNG, and against the dialect's own arithmetic."""

from __future__ import annotations

import io
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import mlir.ir as ir
import numpy as np
import pytest
from PIL import Image

from smartmem_mlir.errors import OptionError
from smartmem_mlir.ir import make_context
from smartmem_mlir.report.pictures.drawing import PAD_COLOR, draw
from smartmem_mlir.report.pictures.layout import parse_shape, picture_of
from smartmem_mlir.report.pictures.png import _GLYPHS, render_png
from smartmem_mlir.report.pictures.svg import render_svg
from smartmem_mlir.report.pictures.text import describe, render_text

IMAGE = "(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image2d"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (IMAGE, (2, 13, 3, 4)),
        ("(d0, d1) -> (d1, d0), buffer", (3, 5)),
        ("(d0, d1) -> (d0, d1 mod 52), buffer, pad = -inf", (4, 49)),
        ("(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), texel_buffer", (3, 5)),
        ("(d0, d1, d2, d3) -> (d1 floordiv 4, d2, d3, d1 mod 4), image2d_array", (1, 9, 2, 3)),
        ("(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image3d", (2, 6, 2, 3)),
        ("(d0, d1) -> (0, d0 * 5 + d1 + 2, 0, 0 * d0, d1 floordiv 5), buffer", (2, 5)),
    ],
)
def test_extents_are_the_dialects(text: str, shape: tuple[int, ...]) -> None:
    picture = picture_of(text, shape)
    with make_context(), ir.Location.unknown():
        attr = ir.Attribute.parse(f"#smartmem.layout<{text}>")
        assert list(picture.physical_shape) == attr.physical_shape(shape)
        if picture.storage != "buffer":
            depth, height, width, _ = picture.places.shape
            if picture.storage == "texel_buffer":
                assert (width * height, 1, depth) == attr.texel_extents(shape)
            else:
                assert (width, height, depth) == attr.texel_extents(shape)
    assert np.count_nonzero(picture.places >= 0) == np.prod(shape)
    assert picture.padding == picture.places.size - np.prod(shape)


def test_every_element_is_where_the_map_says() -> None:
    picture = picture_of(f"#smartmem.layout<{IMAGE}>", (2, 13, 3, 4))
    for n, c, h, w in np.ndindex(2, 13, 3, 4):
        assert picture.place_of((n, c, h, w)) == (0, (n * 4 + c // 4) * 3 + h, w, c % 4)


def test_text() -> None:
    text = render_text(picture_of("(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), texel_buffer, pad = -inf", (2, 5)))
    assert text == (
        "2x5 in a texel_buffer of 2x2 texels (width x height); 6 of 16 places are padding (-inf)\n"
        "    x=0               x=1\n"
        "y=0 [0,0 0,1 0,2 0,3] [0,4   .   .   .]\n"
        "y=1 [1,0 1,1 1,2 1,3] [1,4   .   .   .]\n"
    )


def test_text_of_layers_and_of_what_is_left_out() -> None:
    picture = picture_of("(d0, d1, d2, d3) -> (d1 floordiv 4, d2, d3, d1 mod 4), image2d_array", (1, 8, 3, 3))
    lines = render_text(picture, rows=1, columns=2).splitlines()
    assert lines[0] == "1x8x3x3 in an image2d_array of 3x3 texels (width x height), 2 layers; no padding"
    assert lines[1] == "layer 0"
    assert lines[3] == "y=0 [0,0,0,0 0,1,0,0 0,2,0,0 0,3,0,0] [0,0,0,1 0,1,0,1 0,2,0,1 0,3,0,1] ..."
    assert lines[4] == "... 2 more rows"
    assert lines[5] == "layer 1"


def test_svg_holds_every_place_in_order() -> None:
    picture = picture_of("(d0, d1) -> (d1, d0 mod 4), buffer", (3, 2))
    root = ElementTree.fromstring(render_svg(draw(picture)))
    assert root.get("aria-label") == describe(picture) == "3x2 in a buffer of 2x4; 2 of 8 places are padding (0)"
    tips = [title.text for rect in root.findall(f"{SVG}rect") if (title := rect.find(f"{SVG}title")) is not None]
    assert tips == ["0,0", "1,0", "2,0", "padding", "0,1", "1,1", "2,1", "padding"]
    assert [text.text for text in root.findall(f"{SVG}text")].count("2,1") == 1


def test_png_has_the_drawings_colours_where_they_belong() -> None:
    drawing = draw(picture_of("(d0, d1) -> (d1, d0 mod 4), buffer", (3, 2)))
    image = Image.open(io.BytesIO(render_png(drawing)))
    image.load()
    assert image.size == (drawing.width, drawing.height)
    for box in drawing.rectangles:
        colours = {image.getpixel((box.x + 2, box.y + 2 + k)) for k in range(6)}
        assert box.fill in colours
        assert (box.fill == PAD_COLOR) == (box.logical == "")


def test_every_digit_of_the_font_differs() -> None:
    assert all(len(bytes.fromhex(glyph)) == 7 for glyph in _GLYPHS.values())
    assert len(set(_GLYPHS.values())) == len(_GLYPHS)


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("(d0) -> (d0)", (4,), "not a layout"),
        ("(d0) -> (d0), texture", (4,), "unknown storage 'texture'"),
        ("(d0) -> (d0), buffer", (4, 4), "does not fit the shape"),
        ("(d0) -> (d1), buffer", (4,), "does not fit the shape"),
        ("(d0) -> (d0 floordiv 2), buffer", (4,), r"not injective: elements \(0,\) and \(1,\) share a place"),
        ("(d0) -> (d0 - 1), buffer", (4,), "can be -1, which is negative"),
        ("(d0) -> (d0), image2d", (4,), "needs at least 3 physical dimensions, got 1"),
        ("(d0, d1) -> (d0, d1 mod 8), texel_buffer", (2, 8), "last physical dimension of extent 4, got 8"),
        ("(d0) -> (d0), buffer, pad = nan", (4,), "'nan' is no padding value"),
        ("(d0) -> (d0), buffer, pad = x", (4,), "'x' is no padding value"),
        ("(d0) -> (d0 * 1000000000), buffer", (4,), "too many for a picture"),
        ("(d0) -> (d0), buffer", (1 << 23,), "too large for a picture"),
    ],
)
def test_bad_layouts(text: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        picture_of(text, shape)


@pytest.mark.parametrize("text", ["", "1x", "0x4", "1x-2", "1x2x", "a"])
def test_bad_shapes(text: str) -> None:
    with pytest.raises(OptionError, match="is not a shape"):
        parse_shape(text)


def test_the_command_writes_what_the_name_says(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "smartmem_mlir.cli.app", "draw-layout", IMAGE, "--shape", "1x13x4x4"]
    for name, start in (("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.txt", b"1x13x4x4 in an image2d of 4x16")):
        subprocess.run([*command, "-o", str(tmp_path / name)], check=True)
        assert (tmp_path / name).read_bytes().startswith(start)
    failed = subprocess.run([*command[:-1], "4x4"], capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert failed.stderr.startswith("smartmem: error: the layout does not fit the shape")
