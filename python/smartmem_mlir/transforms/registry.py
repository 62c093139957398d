"""The passes of this package, by the module and class that implement them.

To add a pass, write its module and add a line to :data:`PASSES`. A pass module is imported when the passes are
registered, so it must import quickly: what a pass needs beyond `mlir.ir` is imported in its `run`.
"""

from __future__ import annotations

import importlib
from functools import cache, partial

import mlir.ir as ir
from mlir.passmanager import PassManager

import smartmem_mlir._smartmem as _smartmem
import smartmem_mlir.dialects  # noqa: F401 (registers the dialect)
from smartmem_mlir.errors import OptionError
from smartmem_mlir.transforms.attribute_cache import forget
from smartmem_mlir.transforms.pass_base import (
    ARGUMENT_PATTERN,
    Pass,
    check_options,
    run_pass,
    take_last_failure,
)

PASSES: tuple[str, ...] = (
    "absorb_views.AbsorbViews",
    "classify.Classify",
    "compose_views.ComposeViews",
    "convert_to_iree.ConvertToIree",
    "drop_unit_dims.DropUnitDims",
    "drop_unused_results.DropUnusedResults",
    "externalize_constants.ExternalizeConstants",
    "fold_layouts.FoldLayouts",
    "fold_parameter_views.FoldParameterViews",
    "fold_uniform_sums.FoldUniformSums",
    "fold_views.FoldViews",
    "form_groups.FormGroups",
    "generalize_convolutions.GeneralizeConvolutions",
    "hoist_views.HoistViews",
    "materialize_views.MaterializeViews",
    "pin_epilogues.PinEpilogues",
    "print_cost.PrintCost",
    "raise_views.RaiseViews",
    "recompute_elementwise.RecomputeElementwise",
    "select_layouts.SelectLayouts",
    "share_borders.ShareBorders",
    "sink_scales.SinkScales",
    "sink_views.SinkViews",
    "split_sums.SplitSums",
)
"""`module.Class` below `smartmem_mlir.transforms`, in alphabetical order."""

KERNEL_PASSES: tuple[str, ...] = ("cpu.lower_groups.LowerGroupsToCpu", "spirv.lower_groups.LowerGroupsToVulkan")
"""`module.Class` below `smartmem_mlir.kernels`: passes that know a target; named here, imported when registered."""


@cache
def get_passes() -> dict[str, type[Pass]]:
    """The pass classes by argument."""
    classes = []
    entries = [f"transforms.{entry}" for entry in PASSES] + [f"kernels.{entry}" for entry in KERNEL_PASSES]
    for entry in entries:
        module, name = entry.rsplit(".", 1)
        classes.append(getattr(importlib.import_module(f"smartmem_mlir.{module}"), name))
    return {cls.argument: cls for cls in classes}


def register_pass(cls: type[Pass]) -> None:
    """Puts one pass into MLIR's registry, for the life of the process.

    Raises:
        ValueError: A pass of this argument exists.
    """
    if not ARGUMENT_PATTERN.match(cls.argument):
        raise ValueError(f"a pass is called smartmem-<words>, not '{cls.argument}'")
    _smartmem.register_pass(
        argument=cls.argument,
        name=cls.__name__,
        summary=cls.summary(),
        anchor=cls.anchor,
        options=[(opt.kind, opt.name, opt.help, opt.default_text) for opt in cls.options()],
        dependent_dialects=list(cls.dependent_dialects),
        check=partial(check_options, cls),
        run=partial(run_pass, cls),
    )


@cache
def register_passes() -> None:
    """Puts every pass into MLIR's registry. Afterwards `PassManager.parse` knows them; may be called again."""
    for cls in get_passes().values():
        register_pass(cls)


def run_pipeline(op: ir.Operation | ir.OpView | ir.Module, pipeline: str) -> None:
    """Runs a pass pipeline.

    Args:
        op: What to run on, in place.
        pipeline: As for `--pass-pipeline`: `builtin.module(canonicalize,smartmem-fold-layouts)`.

    Raises:
        OptionError: The pipeline does not parse.
        SmartMemError: A pass of ours failed; another exception if it has a bug.
        mlir.ir.MLIRError: A pass of MLIR failed, or the IR is invalid.
    """
    register_passes()
    operation = op.operation
    with operation.context:
        try:
            manager = PassManager.parse(pipeline)
        except ValueError as error:
            raise OptionError(f"cannot parse the pipeline '{pipeline}': {error}") from None
        take_last_failure()
        try:
            manager.run(operation)
        except ir.MLIRError:
            cause = take_last_failure()
            if cause is None:
                raise
            raise cause from None
        finally:
            forget()
