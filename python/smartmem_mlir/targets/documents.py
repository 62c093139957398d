"""Reading YAML that people edit: every complaint names the file and the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from smartmem_mlir.errors import OptionError

MAX_DOCUMENT_BYTES = 1 << 20
"""A description is a page of text; anything larger is not one."""


class Document(BaseModel):
    """Base of all descriptions: immutable, unknown fields refused, no silent conversion between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


DocumentT = TypeVar("DocumentT", bound=Document)


def describe_validation_error(error: ValidationError) -> str:
    """All complaints of pydantic as one line, each with the dotted name of its field."""
    complaints = []
    for problem in error.errors():
        field = ".".join(str(part) for part in problem["loc"]) or "document"
        message = problem["msg"].removeprefix("Value error, ")
        complaints.append(f"field '{field}': {message[0].lower()}{message[1:]}")
    return "; ".join(complaints)


def read_yaml(path: Path, kind: str) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        OptionError: The file cannot be read, is not YAML, or is not a mapping.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
        if len(data) > MAX_DOCUMENT_BYTES:
            raise OptionError(f"not a {kind}: larger than {MAX_DOCUMENT_BYTES} bytes", file=path)
        content = yaml.safe_load(data)
    except OSError as error:
        raise OptionError(f"cannot read the {kind}: {error.strerror}", file=path) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"not valid YAML: {' '.join(str(error).split())}", file=path) from error
    if not isinstance(content, dict):
        raise OptionError(f"not a {kind}: expected a mapping of fields", file=path)
    return content


def parse_document(model: type[DocumentT], content: dict[str, Any], path: Path, kind: str) -> DocumentT:
    """Validate a mapping against its schema.

    Raises:
        OptionError: Naming every field that is missing, unknown or out of range.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise OptionError(f"bad {kind}: {describe_validation_error(error)}", file=path) from error
