"""Options of passes: dataclass fields on one side, the text of MLIR's pipelines on the other."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from smartmem_mlir.errors import OptionError

Kind = Literal["flag", "scalar", "list"]


@dataclass(frozen=True)
class PassOption:
    """One option.

    Args:
        name: As pipelines spell it (`min-elements`).
        kind: `flag` may stand without a value, `list` takes `{a,b}` or `a,b`.
        type: The Python type of the value, of an element for a list.
        optional: Whether no value (an empty one, in text) means None.
        default: The value when none is given.
        help: One line.
    """

    name: str
    kind: Kind
    type: Any
    optional: bool
    default: Any
    help: str

    @property
    def type_name(self) -> str:
        """The type as documentation shows it."""
        if get_origin(self.type) is Literal:
            return " \\| ".join(get_args(self.type))
        return f"list of {self.type.__name__}" if self.kind == "list" else str(self.type.__name__)

    @property
    def default_text(self) -> list[str]:
        """The default as pipelines would give it: one element, or any number for a list."""
        if self.kind == "list":
            return [_scalar_text(value) for value in self.default or ()]
        return [_scalar_text(self.default)]

    def to_text(self, value: Any) -> str:
        """A value as pipelines spell it."""
        if self.kind == "list":
            return "{" + ",".join(_quote(_scalar_text(element)) for element in value) + "}"
        return _quote(_scalar_text(value))

    def from_text(self, texts: Sequence[str]) -> Any:
        """The value of text; raises ValueError saying what is expected."""
        if self.kind == "list":
            return tuple(_convert(self.type, text) for text in texts)
        (text,) = texts
        return None if self.optional and text == "" else _convert(self.type, text)


def _scalar_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _quote(text: str) -> str:
    """Text as one value of MLIR's option syntax, which knows quotes but no escapes."""
    if not any(c in " \t\n,'\"{}" for c in text):
        return text
    if "{" in text or "}" in text or ("'" in text and '"' in text):
        raise OptionError(f"a pipeline cannot spell the value {text!r}", hint="avoid braces, and one kind of quotes")
    return f'"{text}"' if "'" in text else f"'{text}'"


def _convert(kind: Any, text: str) -> Any:
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError(f"one of {', '.join(get_args(kind))}")
        return text
    if kind is bool:
        if text not in ("true", "false"):
            raise ValueError("true or false")
        return text == "true"
    if kind is str:
        return text
    try:
        value = kind(text)
    except ValueError:
        raise ValueError("an integer" if kind is int else "a number") from None
    if kind is float and math.isnan(value):
        raise ValueError("a number")
    return value


def _split_type(hint: Any) -> tuple[Kind, Any, bool]:
    """Kind, (element) type and whether None is allowed."""
    optional = False
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        optional = len(parts) < len(get_args(hint))
        if len(parts) != 1:
            raise TypeError(f"an option has one type, got {hint}")
        (hint,) = parts
    if get_origin(hint) is tuple:
        element, ellipsis = get_args(hint)
        if ellipsis is not Ellipsis:
            raise TypeError(f"a list option is tuple[T, ...], got {hint}")
        return "list", element, optional
    if hint not in (bool, int, float, str) and get_origin(hint) is not Literal:
        raise TypeError(f"an option cannot be of type {hint}")
    return ("flag" if hint is bool and not optional else "scalar"), hint, optional


def describe_options(cls: type[Any]) -> tuple[PassOption, ...]:
    """The options of a pass class, one for each dataclass field."""
    hints = get_type_hints(cls)
    options = []
    for field in fields(cls):
        if field.default is MISSING:
            raise TypeError(f"{cls.__name__}.{field.name} needs a default")
        kind, element, optional = _split_type(hints[field.name])
        options.append(
            PassOption(
                field.name.replace("_", "-"), kind, element, optional, field.default, field.metadata.get("help", "")
            )
        )
    return tuple(options)


def convert_options(cls: type[Any], values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Constructor arguments from option values as text.

    Raises:
        OptionError: An unknown option, or a value that is not of its type.
    """
    by_name = {option.name: option for option in describe_options(cls)}
    arguments: dict[str, Any] = {}
    for name, texts in values.items():
        option = by_name.get(name)
        if option is None:
            legal = f"its options are {', '.join(by_name)}" if by_name else "it has no options"
            raise OptionError(f"no option '{name}'", hint=legal)
        try:
            arguments[name.replace("-", "_")] = option.from_text(texts)
        except ValueError as error:
            raise OptionError(f"option '{name}' must be {error}, got '{','.join(texts)}'") from None
    return arguments
