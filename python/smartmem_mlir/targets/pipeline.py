"""Pass pipelines as data: an ordered list of passes with their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from smartmem_mlir.errors import OptionError
from smartmem_mlir.targets.documents import Document, parse_document, read_yaml
from smartmem_mlir.targets.resources import pipelines_dir

OptionValue = bool | int | float | str


def _expand_name(value: object) -> object:
    """A bare pass name is short for a pass without options."""
    return {"pass": value} if isinstance(value, str) else value


def _expand_names(value: object) -> object:
    return tuple(map(_expand_name, value)) if isinstance(value, list) else value


class PassSpec(Document):
    """One pass of a pipeline.

    Args:
        name: The pass as `smartmem-opt --list-passes` prints it (YAML key `pass`).
        options: Option values by the pass's own option names.
        anchor: Operation that the pass runs on, nested below the module.
    """

    name: Annotated[str, Field(alias="pass", pattern=r"^[a-z0-9][a-z0-9-]*$")]
    options: dict[Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")], OptionValue] = Field(default_factory=dict)
    anchor: Annotated[str, Field(pattern=r"^[a-z_]+\.[a-z_]+$")] = "builtin.module"

    def text(self) -> str:
        """The pass in MLIR's textual pipeline syntax, nested under its anchor."""
        options = " ".join(f"{name}={_option_text(value)}" for name, value in self.options.items())
        text = f"{self.name}{{{options}}}" if options else self.name
        return text if self.anchor == "builtin.module" else f"{self.anchor}({text})"


class Pipeline(Document):
    """The passes between ingress and IREE.

    Args:
        name: The pipeline's name.
        summary: What it does, in a sentence.
        passes: In order.
    """

    name: str
    summary: str
    passes: Annotated[tuple[PassSpec, ...], BeforeValidator(_expand_names)]

    def text(self) -> str:
        """The pipeline in MLIR's textual syntax, as `--pass-pipeline` takes it."""
        return f"builtin.module({','.join(spec.text() for spec in self.passes)})"

    def with_option(self, pass_name: str, option: str, value: OptionValue) -> Pipeline:
        """The pipeline with one option of a pass changed, wherever that pass runs.

        Raises:
            OptionError: The pipeline does not run the pass.
        """
        if all(spec.name != pass_name for spec in self.passes):
            raise OptionError(
                f"pipeline '{self.name}' has no pass '{pass_name}'",
                hint=f"choose one that has it, or leave {option} out",
            )
        passes = [
            spec.model_copy(update={"options": {**spec.options, option: value}}) if spec.name == pass_name else spec
            for spec in self.passes
        ]
        return self.model_copy(update={"passes": tuple(passes)})


def load_pipeline(name_or_path: str = "default") -> Pipeline:
    """A pipeline by the name of a file under `pipelines/`, or by path.

    Raises:
        OptionError: There is no such pipeline, or its description is invalid.
    """
    named = "/" not in name_or_path and not name_or_path.endswith((".yaml", ".yml"))
    path = pipelines_dir() / f"{name_or_path}.yaml" if named else Path(name_or_path)
    if not path.is_file():
        known = ", ".join(sorted(entry.stem for entry in pipelines_dir().glob("*.yaml")))
        raise OptionError(f"unknown pipeline '{name_or_path}'", hint=f"pipelines: {known}")
    return parse_document(Pipeline, read_yaml(path, "pipeline"), path, "pipeline")


def _option_text(value: OptionValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
