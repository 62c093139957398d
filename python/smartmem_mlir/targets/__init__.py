"""Targets and pipelines: data under `pipelines/`, validated when it is read."""

from smartmem_mlir.targets.description import CpuTarget, TargetDescription, VulkanMemoryRates, VulkanTarget
from smartmem_mlir.targets.pipeline import PassSpec, Pipeline, load_pipeline
from smartmem_mlir.targets.registry import load_target, target_names

__all__ = [
    "CpuTarget",
    "PassSpec",
    "Pipeline",
    "TargetDescription",
    "VulkanMemoryRates",
    "VulkanTarget",
    "load_pipeline",
    "load_target",
    "target_names",
]
