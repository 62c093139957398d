"""How large the results of the source model's nodes are, from the text of the imported module."""

from __future__ import annotations

import re
from math import prod

from smartmem_mlir.transforms.evidence import source_name

_ALIAS = re.compile(r'^(#loc\d*) = loc\("((?:[^"\\]|\\.)*)"', re.MULTILINE)
_RESULT = re.compile(
    r'(?P<type>tensor<[^<>]*>) loc\((?:(?P<alias>#loc\d*)|"(?P<name>(?:[^"\\]|\\.)*)"(?:\([^()]*\))?)\)$'
)
_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]+)(\d*)>")


def result_bytes(module: str) -> dict[str, int]:
    """Bytes of what each node computes, by its name.

    An importer may write several operations for a node; the last one computes its result.

    Args:
        module: The imported module's text, with locations.
    """
    names = dict(_ALIAS.findall(module))
    found: dict[str, int] = {}
    for line in module.splitlines():
        match = _RESULT.search(line)
        if match is None:
            continue
        name = match["name"] if match["alias"] is None else names.get(match["alias"])
        size = tensor_bytes(match["type"])
        if name is not None and size is not None:
            found[source_name(name)] = size
    return found


def tensor_bytes(text: str) -> int | None:
    """Bytes of a tensor type of static shape, dense; None for any other type. Booleans take a byte."""
    match = _TENSOR.fullmatch(text)
    if match is None:
        return None
    bits = int(match[3]) if match[3] else 64
    return prod(int(extent) for extent in match[1].split("x")[:-1]) * ((bits + 7) // 8)
