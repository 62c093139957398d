"""Lines of text in a SPIR-V binary that drivers ignore: MLIR has no operation for `OpModuleProcessed`."""

from __future__ import annotations

import struct
from collections.abc import Sequence

COPY_STEM = "to_image_"
"""How names of shaders begin that only copy a tensor into an image: they are data movement."""

_HEADER_WORDS = 5
_OP_MODULE_PROCESSED = 330
_OP_DECORATE, _OP_MEMBER_DECORATE = 71, 72


def with_lines(binary: bytes, lines: Sequence[str]) -> bytes:
    """A module with a line of text each: after its names and before its decorations, as SPIR-V wants them."""
    at = 4 * _first_decoration(struct.unpack(f"<{len(binary) // 4}I", binary))
    return binary[:at] + b"".join(map(_module_processed, lines)) + binary[at:]


def _first_decoration(words: Sequence[int]) -> int:
    at = _HEADER_WORDS
    while words[at] & 0xFFFF not in (_OP_DECORATE, _OP_MEMBER_DECORATE):
        at += words[at] >> 16
    return at


def _module_processed(line: str) -> bytes:
    text = line.encode() + b"\0"
    text += b"\0" * (-len(text) % 4)
    return struct.pack("<I", (1 + len(text) // 4) << 16 | _OP_MODULE_PROCESSED) + text
