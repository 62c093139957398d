"""The SPIR-V kernels inside a module: what they ask of a device, and the repair of those that race."""

from smartmem_mlir.iree.shaders.module import SpirvModule, find_modules
from smartmem_mlir.iree.shaders.needs import KernelNeeds, needs_of
from smartmem_mlir.iree.shaders.repair import Repair, repair_vmfb

__all__ = ["KernelNeeds", "Repair", "SpirvModule", "find_modules", "needs_of", "repair_vmfb"]
