"""The part of a compilation that runs in MLIR: parse, passes, emit."""

from __future__ import annotations

from mlir.ir import (
    Attribute,
    BoolAttr,
    DenseI64ArrayAttr,
    DictAttr,
    F64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Location,
    MLIRError,
    Module,
    StringAttr,
)

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.i1_text import unpack_i1
from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.archive import SCOPE
from smartmem_mlir.iree.cpu import vector_registers
from smartmem_mlir.iree.device_target import device_targets_attr, executable_target
from smartmem_mlir.iree.entry import public_functions, take_storage
from smartmem_mlir.iree.index_arithmetic import guard_divisions
from smartmem_mlir.iree.storage import Entry
from smartmem_mlir.kernels.cpu.lower_groups import ATTRIBUTE as CPU_VECTORS
from smartmem_mlir.kernels.spirv.lower_groups import ATTRIBUTE as VULKAN_DEVICE
from smartmem_mlir.kernels.spirv.vectors import WIDTH as TEXEL_WIDTH
from smartmem_mlir.targets import Pipeline, TargetDescription, VulkanMemoryRates, VulkanTarget
from smartmem_mlir.transforms.convert_to_iree import ConvertToIree
from smartmem_mlir.transforms.fold_parameter_views import read_parameters
from smartmem_mlir.transforms.registry import run_pipeline
from smartmem_mlir.transforms.select_layouts import RATES as LAYOUT_RATES


def run_passes(
    module_text: str, pipeline: Pipeline, target: TargetDescription
) -> tuple[str, dict[str, dict[str, str] | None]]:
    """Run a pipeline on a module in our dialect.

    Args:
        module_text: MLIR 22 text.
        pipeline: The passes.
        target: What kernels are made for.

    Returns:
        The module and the key of each parameter that it reads; for a view of another parameter, `source` and `view`.

    Raises:
        OptionError: The pipeline names a pass or an option that there is not.
        SmartMemError: A pass of ours cannot do its work.
        CompilerError: A pass of MLIR failed, or the module does not parse.
    """
    # Kernels of ours are operations of IREE, which MLIR does not have.
    with make_context(allow_unregistered_dialects=True):
        module = _parse(module_text)
        if target.cpu is not None:
            lanes, registers = vector_registers(target.cpu)
            module.operation.attributes[CPU_VECTORS] = DenseI64ArrayAttr.get([lanes, registers])
            module.operation.attributes[LAYOUT_RATES] = _rates_attr(target, lanes)
        if target.vulkan is not None:
            module.operation.attributes[VULKAN_DEVICE] = vulkan_attr(target, target.vulkan)
            module.operation.attributes[LAYOUT_RATES] = _rates_attr(target, TEXEL_WIDTH)
        if pipeline.passes:
            try:
                run_pipeline(module, pipeline.text())
            except MLIRError as error:
                raise CompilerError(f"pipeline '{pipeline.name}' failed: {_first_diagnostic(error)}") from error
        for name in (CPU_VECTORS, VULKAN_DEVICE, LAYOUT_RATES):
            if name in module.operation.attributes:
                del module.operation.attributes[name]
        return _print(module), read_parameters(module.operation)


def emit_iree(module_text: str, target: TargetDescription, entry: Entry = "plain") -> str:
    """A module in our dialect as iree-compile reads it.

    Args:
        module_text: MLIR 22 text with `smartmem.parameter` operations.
        target: Its limits are recorded on the module where iree-compile has no flags for them.
        entry: Who provides memory for the results and intermediates of its public functions.
    """
    with make_context(allow_unregistered_dialects=True) as context:
        module = _parse(module_text)
        ConvertToIree(scope=SCOPE).run(module.operation)
        guard_divisions(module.operation)
        if entry == "in-place":
            for operation in public_functions(module.body):
                take_storage(operation)
        device_targets = device_targets_attr(target)
        if device_targets is not None:
            module.operation.attributes["hal.device.targets"] = Attribute.parse(device_targets, context=context)
        return unpack_i1(_print(module))


def vulkan_attr(target: TargetDescription, vulkan: VulkanTarget) -> DictAttr:
    """What generators of shaders must know of the device."""
    i64 = IntegerType.get_signless(64)
    numbers = {
        "invocations": min(vulkan.max_workgroup_invocations, vulkan.max_workgroup_size[0]),
        "shared_bytes": vulkan.max_shared_memory_bytes,
        "lanes": vulkan.lanes,
        "registers": vulkan.registers,
    }
    with Location.unknown():
        return DictAttr.get(
            {
                **{name: IntegerAttr.get(i64, number) for name, number in numbers.items()},
                "workgroups": DenseI64ArrayAttr.get(list(vulkan.max_workgroup_count[:2])),
                "spirv_version": StringAttr.get(vulkan.spirv_version),
                "executable_target": StringAttr.get(executable_target(target)),
                "image_extent": IntegerAttr.get(i64, vulkan.max_image_extent),
                "image_layers": IntegerAttr.get(i64, vulkan.max_image_layers),
                "texel_elements": IntegerAttr.get(i64, vulkan.max_texel_buffer_elements),
                "half": BoolAttr.get("b16" in vulkan.storage),
                **({"matrices": _matrices_attr(vulkan)} if vulkan.cooperative_matrices else {}),
                **({"memory_rates": _memory_rates_attr(vulkan.memory_rates)} if vulkan.memory_rates else {}),
            }
        )


def _matrices_attr(vulkan: VulkanTarget) -> DictAttr:
    i64 = IntegerType.get_signless(64)
    numbers = {**vulkan.cooperative_matrices.model_dump(), "subgroup": vulkan.subgroup_sizes[0]}  # type: ignore[union-attr]
    extents = {name: IntegerAttr.get(i64, number) for name, number in numbers.items()}
    return DictAttr.get({**extents, "emulated": BoolAttr.get(False)})


def _memory_rates_attr(rates: VulkanMemoryRates) -> DictAttr:
    """GB/s are bytes a nanosecond. A texel buffer that nobody has measured is as fast as a buffer."""
    numbers = {
        "buffer": rates.buffer,
        "image": rates.image,
        "texel_buffer": rates.buffer if rates.texel_buffer is None else rates.texel_buffer,
        "dispatch_ns": rates.dispatch_ns,
        **({} if rates.window_image is None else {"window_image": rates.window_image}),
    }
    return DictAttr.get({name: FloatAttr.get(F64Type.get(), float(number)) for name, number in numbers.items()})


def _rates_attr(target: TargetDescription, lanes: int) -> DictAttr:
    rates = {"vector_lanes": lanes, **(target.rates.model_dump(exclude_none=True) if target.rates else {})}
    f64 = F64Type.get()
    with Location.unknown():
        return DictAttr.get({name: FloatAttr.get(f64, float(value)) for name, value in rates.items()})


def _print(module: Module) -> str:
    """With locations, which carry the names of the source model's nodes as far as IREE's flow IR."""
    return str(module.operation.get_asm(enable_debug_info=True))


def _parse(text: str) -> Module:
    try:
        return Module.parse(text)
    except MLIRError as error:
        raise CompilerError(f"the module does not parse: {_first_diagnostic(error)}") from error


def _first_diagnostic(error: MLIRError) -> str:
    diagnostics = error.error_diagnostics
    return str(diagnostics[0].message) if diagnostics else " ".join(str(error).split())
