"""Kernels for Vulkan: written with MLIR's arith, scf and vector operations against a layout, lowered to SPIR-V."""
