"""What `-v` shows: stages with their times; given twice, the log of the package as well."""

from __future__ import annotations

import logging
import sys

PACKAGE = "smartmem_mlir"


def show_log(verbosity: int) -> None:
    """Writes the package's log to stderr if `-v` was given at least twice."""
    if verbosity < 2:
        return
    log = logging.getLogger(PACKAGE)
    log.setLevel(logging.DEBUG)
    for handler in list(log.handlers):
        log.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(relativeCreated)6d ms %(name)s: %(message)s"))
    log.addHandler(handler)
