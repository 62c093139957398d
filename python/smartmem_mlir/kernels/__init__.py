"""Kernels generated for the layout that their operands have."""
