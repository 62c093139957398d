"""The smartmem dialect in Python.

Importing this package registers the dialect: every :class:`mlir.ir.Context` made afterwards has it.
"""

from __future__ import annotations

import sys
from types import ModuleType

import mlir.ir  # noqa: F401 (loads the library that the extension links to; must come first)
from mlir._mlir_libs import get_dialect_registry
from mlir._mlir_libs._mlir import globals as _globals

import smartmem_mlir._smartmem as _smartmem

_smartmem.register_dialects(get_dialect_registry())
# Where MLIR looks for the Python classes of operations; without it they come back as plain OpView.
_globals.append_dialect_search_prefix("smartmem_mlir.dialects")
# Of IREE's dialects there are none. At each of their operations MLIR would search all over for a module that is not
# there, which took a tenth of the passes' time; an empty one it finds once.
for _name in ("flow", "hal", "iree_tensor_ext", "stream", "util"):
    sys.modules[f"{__name__}.{_name}"] = ModuleType(_name)
