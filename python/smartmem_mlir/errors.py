"""Errors a user can act on.

Everything that is the input's or the machine's fault is raised as a :class:`SmartMemError`; the command line prints
it as one message and exits with its `exit_code`. Anything else that escapes is a bug of ours.
"""

from __future__ import annotations

from pathlib import Path

EXIT_MISMATCH = 1
"""Exit code of `verify` when the numbers differ from the reference."""
EXIT_BAD_INPUT = 2
"""Exit code of every error that the user can mend: input, options, environment."""
EXIT_COMPILER_FAILED = 3
"""Exit code when iree-compile crashed, failed or timed out on IR that we consider valid."""


class SmartMemError(Exception):
    """One problem, said once: where, what is wrong, what to do.

    Args:
        what: What is wrong, without a full stop.
        hint: What the user can do about it, as an imperative.
        file: The file at fault, if any.
        node: The model's node (or tensor) at fault, by its own name and operator, if any.
    """

    exit_code = EXIT_BAD_INPUT

    def __init__(
        self, what: str, *, hint: str | None = None, file: Path | str | None = None, node: str | None = None
    ) -> None:
        self.what = what
        self.hint = hint
        self.file = str(file) if file is not None else None
        self.node = node
        super().__init__(self.message())

    def message(self) -> str:
        """The error as one line of text: `file: node: what; hint`."""
        where = "".join(f"{part}: " for part in (self.file, self.node) if part)
        return f"{where}{self.what}" + (f"; {self.hint}" if self.hint else "")


class InvalidModelError(SmartMemError):
    """The file is not a model we can read, or it is inconsistent."""


class UnsupportedModelError(SmartMemError):
    """The model is well formed but uses something we refuse to compile, rather than compile wrongly."""


class OptionError(SmartMemError):
    """A command-line option, target or pass option is unknown or does not fit the model."""


class DeviceError(SmartMemError):
    """The device is missing or is not what the module was compiled for."""


class DeviceLostError(DeviceError):
    """The driver lost the device, and with it everything that was loaded on it."""


class CompilerError(SmartMemError):
    """iree-compile failed, crashed or timed out; the message names the reproducer."""

    exit_code = EXIT_COMPILER_FAILED


def first_line(error: Exception) -> str:
    """The first line of another library's error, which says what is wrong; its type if it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
