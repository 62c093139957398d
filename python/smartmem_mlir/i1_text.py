"""Boolean constants in module text, which two releases of MLIR write in two ways.

MLIR prints a `dense` constant of more than 100 elements as the hexadecimal bytes of its storage. MLIR 22 stores `i1`
as bits, eight to a byte, the first lowest; LLVM 24, on which torch-mlir and IREE build, stores one byte each. Neither
reads the other's ("elements hex data size is invalid"), so text is translated wherever it crosses. Every other
element type, `i4` included, is stored in whole bytes in both, splats and short constants are words in both, and
`dense_resource` blobs hold one byte each in both.
"""

from __future__ import annotations

import re
from math import prod

# `"0x` opens no other string literal after `dense<`, and inside a string literal the quote is escaped.
_HEX = re.compile(r'dense<"0x([0-9A-Fa-f]+)">(\s*:\s*(?:tensor|vector)<((?:\d+x)+)i1\b)')
_BIT = [1 << bit for bit in range(8)]


def pack_i1(text: str) -> str:
    """Module text of LLVM 24 as MLIR 22 reads it; what is packed already, or of the wrong size, is left alone."""
    return _HEX.sub(_packed, text)


def unpack_i1(text: str) -> str:
    """Module text of MLIR 22 as LLVM 24 reads it; what is unpacked already, or of the wrong size, is left alone."""
    return _HEX.sub(_unpacked, text)


def _packed(match: re.Match[str]) -> str:
    data, elements = bytes.fromhex(match[1]), _elements(match)
    if len(data) != elements or elements == 1:
        return match[0]
    packed = bytearray((elements + 7) // 8)
    for position, value in enumerate(data):
        if value:
            packed[position // 8] |= _BIT[position % 8]
    return f'dense<"0x{packed.hex().upper()}">{match[2]}'


def _unpacked(match: re.Match[str]) -> str:
    data, elements = bytes.fromhex(match[1]), _elements(match)
    if len(data) != (elements + 7) // 8 or elements == 1:
        return match[0]
    values = bytes(data[position // 8] & _BIT[position % 8] != 0 for position in range(elements))
    return f'dense<"0x{values.hex().upper()}">{match[2]}'


def _elements(match: re.Match[str]) -> int:
    return prod(int(extent) for extent in match[3].split("x") if extent)
