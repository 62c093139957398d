"""`smartmem-opt`: mlir-opt with the smartmem dialect and passes.

The driver is MLIR's own, so flags, diagnostics and exit codes are mlir-opt's. Added are `--list-passes`, which lists
the passes of this package alone, and the spelling `--pass{a=1 b=2}` of pass options.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence

PASS_WITH_OPTIONS = re.compile(r"(--?[a-z][\w-]*)\{(.*)\}\Z", re.DOTALL)


def rewrite_arguments(arguments: Sequence[str]) -> list[str]:
    """mlir-opt's arguments from ours: pass options in braces become `--pass=a=1 b=2`.

    Threads stay off, because passes in Python hold the interpreter lock.
    """
    rewritten = []
    for argument in arguments:
        match = PASS_WITH_OPTIONS.match(argument)
        rewritten.append(f"{match[1]}={match[2]}" if match else argument)
    if not any(argument.startswith(("--mlir-disable-threading", "-mlir-disable-threading")) for argument in arguments):
        rewritten.append("--mlir-disable-threading")
    return rewritten


def list_passes() -> str:
    """One line for each pass: its name and the first line of its docstring."""
    from smartmem_mlir.transforms.registry import get_passes

    passes = sorted(get_passes().items())
    width = max(len(argument) for argument, _ in passes)
    return "\n".join(f"{argument:{width}}  {cls.summary()}" for argument, cls in passes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs mlir-opt's main function; returns its exit code. `--help` and bad flags end the process."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "--list-passes" in arguments:
        print(list_passes())
        return 0
    from mlir._mlir_libs import get_dialect_registry

    import smartmem_mlir._smartmem as _smartmem
    from smartmem_mlir.transforms.registry import register_passes

    register_passes()
    # As for any filter: Python's handlers would run only after MLIR returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return _smartmem.opt_main(["smartmem-opt", *rewrite_arguments(arguments)], get_dialect_registry())


if __name__ == "__main__":
    sys.exit(main())
