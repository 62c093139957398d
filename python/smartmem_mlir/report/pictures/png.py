"""A drawing as PNG, with a font and an encoder of our own: pictures need no imaging library.

The font has 5x7 pixels a character in cells of 8x12.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from smartmem_mlir.report.pictures.drawing import CHARACTER_WIDTH, LINE_COLOR, PAPER, TEXT_COLOR, Drawing

Pixels = npt.NDArray[np.uint8]

# Seven rows of five bits each, the leftmost pixel in bit 4.
_GLYPHS: Final[dict[str, str]] = {
    "0": "0e11131519110e", "1": "040c040404040e", "2": "0e11010204081f", "3": "1f02040201110e", "4": "02060a121f0202",
    "5": "1f101e0101110e", "6": "0608101e11110e", "7": "1f010204080808", "8": "0e11110e11110e", "9": "0e11110f01020c",
    "a": "00000e010f110f", "b": "1010161911111e", "c": "00000e1010110e", "d": "01010d1311110f", "e": "00000e111f100e",
    "f": "0609081c080808", "g": "000f110f01110e", "h": "10101619111111", "i": "04000c0404040e", "j": "0200060202120c",
    "k": "10101214181412", "l": "0c04040404040e", "m": "00001a15151111", "n": "00001619111111", "o": "00000e1111110e",
    "p": "00001e111e1010", "q": "00000d130f0101", "r": "00001619101010", "s": "00000e100e011e", "t": "08081c08080906",
    "u": "0000111111130d", "v": "00001111110a04", "w": "0000111115150a", "x": "0000110a040a11", "y": "000011110f010e",
    "z": "00001f0204081f", "_": "0000000000001f", "-": "0000001f000000", "+": "0004041f040400", "=": "00001f001f0000",
    ",": "00000000040408", ".": "00000000000004", ";": "00000400040408", "(": "02040808080402", ")": "08040202020408",
    " ": "00000000000000",
}  # fmt: skip


def render_png(drawing: Drawing) -> bytes:
    """The drawing as an RGB image."""
    pixels = np.empty((drawing.height, drawing.width, 3), np.uint8)
    pixels[:] = PAPER
    for box in drawing.rectangles:
        area = pixels[box.y : box.y + box.height + 1, box.x : box.x + box.width + 1]
        area[:] = LINE_COLOR
        inside = area[1:-1, 1:-1]
        inside[:] = box.fill
        if box.hatched:
            rows, columns = np.indices(inside.shape[:2])
            inside[(rows + columns) % 6 == 0] = (153, 153, 153)
    for label in drawing.labels:
        for position, character in enumerate(label.text):
            _write(pixels, label.x + position * CHARACTER_WIDTH + 1, label.y + 2, character)
    return _encode(pixels)


def _write(pixels: Pixels, x: int, y: int, character: str) -> None:
    rows = bytes.fromhex(_GLYPHS.get(character.lower(), _GLYPHS["_"]))
    for row, bits in enumerate(rows):
        for column in range(5):
            if bits >> (4 - column) & 1 and y + row < pixels.shape[0] and x + column < pixels.shape[1]:
                pixels[y + row, x + column] = TEXT_COLOR


def _encode(pixels: Pixels) -> bytes:
    """PNG of 8-bit RGB without filters (RFC 2083)."""
    height, width, _ = pixels.shape
    raw = np.zeros((height, 1 + 3 * width), np.uint8)
    raw[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(raw.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
