"""What a pass is: a frozen dataclass whose fields are its options and whose docstring is its help.

A pass class names its `argument` and implements :meth:`Pass.run`. :mod:`smartmem_mlir.transforms.registry` lists the
classes and puts them into MLIR's registry, so `smartmem-opt`, :class:`mlir.passmanager.PassManager` and pipelines know
them by that name.
"""

from __future__ import annotations

import os
import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from typing import Any, ClassVar

import mlir.ir as ir

from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.transforms.evidence import during
from smartmem_mlir.transforms.pass_options import PassOption, convert_options, describe_options

DEBUG_VARIABLE = "SMARTMEM_DEBUG"
"""Environment variable that, when set, adds the traceback to the error of a pass that raised unexpectedly."""


class PassError(SmartMemError):
    """A pass cannot do its work on this IR.

    Args:
        what: What is wrong, without a full stop.
        op: The operation at fault; the diagnostic points to it.
        hint: What the user can do about it, as an imperative.
    """

    def __init__(self, what: str, *, op: ir.Operation | ir.OpView | None = None, hint: str | None = None) -> None:
        super().__init__(what, hint=hint)
        self.op = op.operation if op is not None else None


def option(default: Any, help: str) -> Any:
    """A dataclass field that is an option of a pass.

    Args:
        default: Its value when the pipeline does not give one. Every option has a default, so that a pass can be named
            without options; `None` where a pass needs a value and says so when it is missing.
        help: One line, shown by `smartmem-opt --help`.
    """
    return dataclass_field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Pass(ABC):
    """Base class of passes.

    Fields become options: `min_elements: int = option(1024, "...")` is spelled `min-elements=1024` in a pipeline. Types
    may be `bool`, `int`, `float`, `str`, a `Literal` of strings, a homogeneous `tuple[T, ...]`, and each of them
    `| None`. A `__post_init__` that raises :class:`~smartmem_mlir.errors.OptionError` rejects values.
    """

    argument: ClassVar[str]
    """Name in pipelines: `smartmem-...`."""
    anchor: ClassVar[str] = "builtin.module"
    """The operation that the pass runs on; empty for any."""
    dependent_dialects: ClassVar[tuple[str, ...]] = ("smartmem",)
    """Dialects whose operations the pass may create though the input has none of them."""
    example: ClassVar[str] = ""
    """Name of the lit test in `test/transforms/<argument without smartmem->/` that the documentation shows."""

    @abstractmethod
    def run(self, op: ir.Operation) -> None:
        """Transforms the IR below `op`, with its context active; raises :class:`PassError` when it cannot."""

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    @classmethod
    def options(cls) -> tuple[PassOption, ...]:
        """The options, in the order of the fields."""
        return describe_options(cls)

    @classmethod
    def from_text(cls, values: Mapping[str, Sequence[str]]) -> Pass:
        """The pass with option values as text, by option name.

        Raises:
            OptionError: A value is not of the option's type, or the pass rejects it.
        """
        return cls(**convert_options(cls, values))

    def to_pipeline(self) -> str:
        """The pass as a pipeline element, with the options that differ from their defaults."""
        given = [
            f"{opt.name}={opt.to_text(getattr(self, field.name))}"
            for opt, field in zip(self.options(), fields(self), strict=True)
            if getattr(self, field.name) != field.default
        ]
        return self.argument + ("{" + " ".join(given) + "}" if given else "")


class _Failures:
    """The exception of the last pass that failed, for callers in Python that want more than the diagnostic."""

    last: BaseException | None = None


def take_last_failure() -> BaseException | None:
    """The exception that made the last failing pass fail; forgotten once taken."""
    failure, _Failures.last = _Failures.last, None
    return failure


def check_options(cls: type[Pass], values: Mapping[str, Sequence[str]]) -> str:
    """What is wrong with option values, or an empty string (the callback that MLIR's registry wants)."""
    try:
        cls.from_text(values)
    except SmartMemError as error:
        return error.message()
    return ""


def run_pass(
    cls: type[Pass], values: Mapping[str, Sequence[str]], op: ir.Operation
) -> tuple[str, ir.Operation | None] | None:
    """Runs a pass; a failure becomes (message, operation at fault or None). Never raises."""
    try:
        with op.context, op.location, during(cls.argument):
            cls.from_text(values).run(op)
    except SmartMemError as error:
        _Failures.last = error
        return f"{cls.argument}: {error.message()}", error.op if isinstance(error, PassError) else None
    except BaseException as error:  # reported, kept for take_last_failure, and fails the pipeline
        _Failures.last = error
        text = f"{cls.argument}: {type(error).__name__}: {error}"
        if os.environ.get(DEBUG_VARIABLE):
            text += "\n" + "".join(traceback.format_exception(error)).rstrip()
        else:
            text += f" (a bug of the pass; set {DEBUG_VARIABLE}=1 for the traceback)"
        return text, None
    return None


ARGUMENT_PATTERN = re.compile(r"smartmem-[a-z0-9]+(-[a-z0-9]+)*\Z")
"""What an `argument` looks like."""
