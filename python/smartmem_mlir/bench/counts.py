"""The regression guard: kernels and bytes of small models, exact, against a committed table."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from smartmem_mlir.bench.iree_variants import counts_from
from smartmem_mlir.bench.results import Counts
from smartmem_mlir.errors import CompilerError, InvalidModelError
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.toolchain import COMPILER_PACKAGE, package_version

TARGET = "cpu"
VARIANTS = ("baseline", "smartmem")


class Entry(BaseModel):
    """What one model costs in one variant: counts, or the compiler's error for a model that does not compile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    counts: Counts | None = None
    error: str | None = None


class Table(BaseModel):
    """The committed table.

    Args:
        compiler: Version of iree-compile that the counts are from; another version forms other kernels.
        target: The target.
        models: Entries by model and variant.
        opt_level: IREE's optimisation level; the target's own if None.
        full: Whether the models are at full size.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    compiler: str
    target: str
    models: dict[str, dict[str, Entry]]
    opt_level: str | None = None
    full: bool = False


def read_table(path: Path) -> Table:
    """Read a table.

    Raises:
        InvalidModelError: It is missing or malformed.
    """
    try:
        return Table.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise InvalidModelError(f"not a table of counts: {error}", file=path) from error


def small_models(recipes: Path) -> dict[str, Callable[[Path], None]]:
    """What is counted: the demo network and the small variants of the zoo, by name, each a function that writes it.

    Args:
        recipes: Folder with the recipes of the small variants.
    """
    from smartmem_mlir.zoo.demo import save_demo
    from smartmem_mlir.zoo.recipe import materialize

    def writer(recipe: Path) -> Callable[[Path], None]:
        return lambda out: materialize(recipe, out)

    return {"demo": save_demo, **{path.stem: writer(path) for path in sorted(recipes.glob("*.onnx"))}}


def full_models(folder: Path) -> dict[str, Callable[[Path], None]]:
    """The models of the zoo that have a file `NAME.onnx` in a folder, as :func:`small_models` gives the small ones."""
    from smartmem_mlir.zoo.cards import CARDS

    def linker(source: Path) -> Callable[[Path], None]:
        def link(out: Path) -> None:
            _link_or_copy(source, out)
            data = source.with_name(f"{source.name}.data")
            if data.exists():
                _link_or_copy(data, out.with_name(data.name))

        return link

    files = {name: folder.resolve() / f"{name}.onnx" for name in CARDS}
    return {name: linker(file) for name, file in files.items() if file.exists()}


def _link_or_copy(source: Path, out: Path) -> None:
    # No symbolic link: weights are read from the model's own directory only.
    try:
        out.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, out)


def measure(
    models: Mapping[str, Callable[[Path], None]],
    say: Callable[[str], None],
    target: str = TARGET,
    opt_level: str | None = None,
) -> Table:
    """Count every model in every variant.

    Nothing is compiled beyond the IR that kernels are counted on: whether each fits the target's memory is not asked.

    Args:
        models: See :func:`small_models`.
        say: Told what happens next.
        target: Whose pipeline to use.
        opt_level: IREE's optimisation level; the target's own if None.
    """
    measured = {}
    for name, write in models.items():
        say(name)
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / f"{name}.onnx"
            write(model)
            measured[name] = {variant: _count(model, variant, Path(folder), target, opt_level) for variant in VARIANTS}
    return Table(compiler=str(package_version(COMPILER_PACKAGE)), target=target, models=measured, opt_level=opt_level)


def regressions(committed: Table, fresh: Table) -> list[str]:
    """What got worse, one sentence each; empty if nothing did.

    Plain IREE must not change at all: it is what everything is compared with.
    """
    if committed.compiler != fresh.compiler:
        return [f"the table is from {COMPILER_PACKAGE} {committed.compiler}, installed is {fresh.compiler}"]
    found = []
    for name, variant, new in _entries(fresh):
        old = committed.models.get(name, {}).get(variant)
        label = f"{name}, {variant}"
        if old is None:
            found.append(f"{label}: not in the table")
        elif new.counts is None:
            if old.counts is not None:
                found.append(f"{label}: does not compile any more: {new.error}")
        elif old.counts is not None:
            found += [f"{label}: {change}" for change in _changes(old.counts, new.counts, variant)]
    return found


def improvements(committed: Table, fresh: Table) -> list[str]:
    """What got better, one sentence each."""
    found = []
    for name, variant, new in _entries(fresh):
        old = committed.models.get(name, {}).get(variant)
        if old is None or new.counts is None or variant == "baseline":
            continue
        if old.counts is None:
            found.append(f"{name}, {variant}: compiles now")
            continue
        for field, before, after in _fields(old.counts, new.counts):
            if after < before:
                found.append(f"{name}, {variant}: {field} {_exact(before)} -> {_exact(after)}")
    return found


def above_baseline(table: Table) -> list[str]:
    """Where ours costs more than plain IREE, one sentence each: what the passes still owe.

    Bytes are those of kernels and of copies outside them together, because passes may turn one into the other.
    """
    found = []
    for name, variants in table.models.items():
        plain, ours = (variants[variant].counts if variant in variants else None for variant in VARIANTS)
        if plain is None or ours is None:
            continue
        pairs = {
            "kernels": (plain.kernels, ours.kernels),
            "data-movement kernels": (plain.movement_kernels, ours.movement_kernels),
            "bytes": (plain.total_bytes + plain.copy_bytes, ours.total_bytes + ours.copy_bytes),
        }
        found += [f"{name}: {what} {before} -> {after}" for what, (before, after) in pairs.items() if after > before]
    return found


def markdown(table: Table) -> str:
    """The table for people: kernels, data-movement kernels and MB moved by all kernels and copies, before and after."""
    level = f" --opt-level {table.opt_level}" if table.opt_level else ""
    level += " --models FOLDER" if table.full else ""
    size = "Models at full size" if table.full else "Small models"
    lines = [
        f"# {size}, {table.target} at {table.opt_level or 'its level'}: plain IREE {table.compiler} -> SmartMem",
        "",
        f"Written by `benchmarks/check.py --target {table.target}{level} --update`, as the JSON file of the same name.",
        "Counted on the flow IR; data movement is what moves elements without arithmetic, copies outside kernels too.",
        "",
        "| model | kernels | data-movement kernels | data movement, MB | all reads and writes, MB |",
        "|---|---|---|---|---|",
    ]
    for name, variants in table.models.items():
        plain, ours = (variants[variant].counts if variant in variants else None for variant in VARIANTS)
        if plain is None or ours is None:
            lines.append(f"| {name} | does not compile | | | |")
            continue
        cells = [
            (str(plain.kernels), str(ours.kernels)),
            (str(plain.movement_kernels), str(ours.movement_kernels)),
            *(
                (f"{before / 1e6:.2f}", f"{after / 1e6:.2f}")
                for before, after in (
                    (plain.movement_bytes + plain.copy_bytes, ours.movement_bytes + ours.copy_bytes),
                    (plain.total_bytes + plain.copy_bytes, ours.total_bytes + ours.copy_bytes),
                )
            ),
        ]
        lines.append(f"| {name} | " + " | ".join(f"{before} -> {after}" for before, after in cells) + " |")
    return "\n".join(lines) + "\n"


def _changes(old: Counts, new: Counts, variant: str) -> Iterator[str]:
    for field, before, after in _fields(old, new):
        if after > before or (variant == "baseline" and after != before):
            yield f"{field} {_exact(before)} -> {_exact(after)}"


def _fields(old: Counts, new: Counts) -> Iterator[tuple[str, float, float]]:
    """Fields that both have, with their values."""
    for field in Counts.model_fields:
        before, after = getattr(old, field), getattr(new, field)
        if before is not None and after is not None:
            yield field.replace("_", " "), before, after


def _exact(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _entries(table: Table) -> Iterator[tuple[str, str, Entry]]:
    for name, variants in table.models.items():
        for variant, entry in variants.items():
            yield name, variant, entry


def _count(model: Path, variant: str, folder: Path, target: str, opt_level: str | None) -> Entry:
    from smartmem_mlir import api
    from smartmem_mlir.iree.build import compile_to_flow
    from smartmem_mlir.targets import load_target

    try:
        text = api.emit(model, "iree", target=target, baseline=variant == "baseline")
        source = folder / f"{variant}.mlir"
        source.write_text(text)
        with _discarded_reproducer() as reproducer:
            options = CompilerOptions(reproducer=reproducer)
            flow = compile_to_flow(source, folder / f"{variant}.flow.mlir", load_target(target), opt_level, options)
    except CompilerError as error:
        return Entry(error=error.what)
    return Entry(counts=counts_from(flow))


@contextmanager
def _discarded_reproducer() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "reproducer"
