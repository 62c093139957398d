"""`smartmem`: the command line. Each command is a thin layer over `smartmem_mlir.api`."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from smartmem_mlir.bench.command import bench_models
from smartmem_mlir.cli import (
    check_command,
    compile_command,
    demo_command,
    doctor,
    draw_command,
    explain_command,
    inspect_command,
    run_command,
    verify_command,
)
from smartmem_mlir.cli.examples import epilog
from smartmem_mlir.cli.termination import clean_termination
from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.zoo.command import app as zoo_app

EXIT_BUG = 70
"""Exit code of an error that is ours (EX_SOFTWARE of sysexits.h)."""

app = typer.Typer(
    name="smartmem",
    help="Compile neural networks with the fewest layout transformations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("compile", epilog=epilog("compile"))(compile_command.compile_model)
app.command("run", epilog=epilog("run"))(run_command.run_model)
app.command("verify", epilog=epilog("verify"))(verify_command.verify_model)
app.command("inspect", epilog=epilog("inspect"))(inspect_command.inspect_model)
app.command("explain", epilog=epilog("explain"))(explain_command.explain_model)
app.command("draw-layout", epilog=epilog("draw-layout"))(draw_command.draw_layout)
app.command("check", epilog=epilog("check"))(check_command.check_model)
app.command("doctor", epilog=epilog("doctor"))(doctor.doctor)
app.command("demo")(demo_command.run_demo)
app.command("bench")(bench_models)
app.add_typer(zoo_app, name="zoo")


@app.callback()
def _root() -> None:
    """Compile neural networks with the fewest layout transformations."""


def main() -> None:
    """Entry point of the `smartmem` script: errors become one line on stderr and an exit code."""
    debug = "--debug" in sys.argv
    try:
        with clean_termination():
            app()
    except SmartMemError as error:
        if debug:
            traceback.print_exc()
        # One line, whatever a library put into its message.
        print(f"smartmem: error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe has gone; keep Python from complaining again when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if debug:
            traceback.print_exc()
        hint = "" if debug else "; add --debug for the traceback"
        print(f"smartmem: internal error: {type(error).__name__}: {error}{hint}", file=sys.stderr)
        sys.exit(EXIT_BUG)


if __name__ == "__main__":
    main()
