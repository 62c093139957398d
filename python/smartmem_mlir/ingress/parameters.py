"""Parameters in module text."""

from __future__ import annotations

import re

_GENERIC = re.compile(
    r'"smartmem\.parameter"\(\) (?:<\{|\{)key = ("(?:[^"\\]|\\.)*")(?:\}>|\}) : \(\) -> (tensor<[^>\n]*>)'
)


def print_parameters(text: str) -> str:
    """Write the generic `smartmem.parameter` operations of a context without the dialect in their own syntax."""
    return _GENERIC.sub(r"smartmem.parameter @\1 : \2", text)
