"""Kernels for CPUs, as MLIR that IREE compiles into its executables."""
